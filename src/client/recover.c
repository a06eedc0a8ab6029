/* recover.c - `caisson recover SLOT`: has a quarantined slot recovered by its keeper. */
#include <inttypes.h>
#include <unistd.h>

#include "client/client.h"
#include "print/output.h"
#include "print/page.h"

int client_recover(struct client *client, struct err *err)
{
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	JSON_AUTO json_t *document = NULL;
	PAGE_AUTO struct page page = PAGE_INIT;

	http_call_set(&call, "POST", "/v1/workers/%" PRId64 "/recover", client->request->slot);

	int result = client_ask(client, &call, &document, err);

	if (result)
		return result;

	bool recovered = json_is_true(json_object_get(document, "recovered"));

	if (client->request->json)
		result = print_json(STDOUT_FILENO, document, err);
	else {
		page_add(&page, "slot %" PRId64 " %s\n", client->request->slot,
		         recovered ? "is verified empty, and available again" : "could not be recovered: it stays quarantined");
		result = page_print(&page, STDOUT_FILENO, err);
	}
	return result ? result : recovered ? CLIENT_OK : CLIENT_NO;
}
