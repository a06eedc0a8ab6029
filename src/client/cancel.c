/* cancel.c - `caisson cancel RUN`. */
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "client/reply.h"
#include "print/output.h"
#include "print/page.h"

static int say(const struct client *client, const char *run_id, bool sealed, struct err *err)
{
	PAGE_AUTO struct page page = PAGE_INIT;

	if (client->request->json)
		page_add(&page, "{\"run\":\"%s\",\"sealed\":%s}\n", run_id, sealed ? "true" : "false");
	else if (sealed)
		page_add(&page, "%s is sealed: a cancellation changes nothing any more\n", run_id);
	else
		page_add(&page, "%s is being cancelled\n", run_id);
	return page_print(&page, STDOUT_FILENO, err);
}

int client_cancel(struct client *client, struct err *err)
{
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	char run_id[ID_SIZE];
	int result = client_find_run(client, run_id, err);

	if (result)
		return result;
	http_call_set(&call, "POST", "/v1/runs/%s/cancel", run_id);
	result = client_ask(client, &call, NULL, err);
	if (result && result != ERR_CONFLICT)
		return result;

	bool sealed = result == ERR_CONFLICT;

	result = say(client, run_id, sealed, err);
	return result ? result : sealed ? CLIENT_NO : CLIENT_OK;
}
