/* wait.c - `caisson wait RUN`: what `caisson run` would have said at its end. */
#include <poll.h>

#include "client/backoff.h"
#include "client/client.h"
#include "client/outcome.h"

int client_await(struct client *client, const char *run_id, struct err *err)
{
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;

	for (;;) {
		JSON_AUTO json_t *state = NULL;

		http_call_set(&call, "GET", "/v1/runs/%s?wait_ms=%d", run_id, CLIENT_WAIT_MS);
		call.wait_ms = CLIENT_WAIT_MS;

		int result = client_ask(client, &call, &state, err);

		if (result)
			return result;
		if (outcome_known(state)) {
			result = outcome_show(state, client->request, err);
			return result ? result : outcome_status(state);
		}
		poll(NULL, 0, BACKOFF_FIRST_MS); /* also when it did not wait */
	}
}

int client_wait(struct client *client, struct err *err)
{
	char run_id[ID_SIZE];
	int result = client_find_run(client, run_id, err);

	return result ? result : client_await(client, run_id, err);
}
