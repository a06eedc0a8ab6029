/* workers.c - `caisson workers`: the keeper's workers, and why one is not to be had. */
#include <unistd.h>

#include "client/client.h"
#include "print/output.h"
#include "print/page.h"

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "";
}

static int print_table(const json_t *workers, struct err *err)
{
	PAGE_AUTO struct page page = PAGE_INIT;

	for (size_t i = 0; i < json_array_size(workers); i++) {
		const json_t *worker = json_array_get(workers, i);
		long long slot = json_integer_value(json_object_get(worker, "slot"));

		page_add(&page, "%-4lld %-9s %-12s %-20s %s\n", slot, text(worker, "profile"), text(worker, "state"),
		         text(worker, "run"), text(worker, "reason"));
	}
	return page_print(&page, STDOUT_FILENO, err);
}

int client_workers(struct client *client, struct err *err)
{
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	JSON_AUTO json_t *document = NULL;

	http_call_set(&call, "GET", "/v1/workers");

	int result = client_ask(client, &call, &document, err);

	if (result)
		return result;

	const json_t *workers = json_object_get(document, "workers");

	if (!json_is_array(workers))
		return err_set(err, ERR_PROTOCOL, "the keeper's answer has no workers");
	return client->request->json ? print_json(STDOUT_FILENO, workers, err) : print_table(workers, err);
}
