/* client.c - asks a keeper, and again when the answer was lost. */
#include "client/client.h"

#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "client/backoff.h"
#include "client/reply.h"

/* Why a call has failed. */
static int error_of(const struct http_call *call, struct err *err)
{
	struct refusal refusal;

	refusal_of_call(call, &refusal);
	if (err)
		*err = refusal.err;
	return refusal.err.code;
}

int client_lost(struct client *client, const struct http_call *call, struct losses *losses, struct err *err)
{
	int64_t now_ns = clock_mono_ns();

	if (losses->count++ == 0)
		losses->since_ns = now_ns;
	if ((call->refused && !client->met) || now_ns - losses->since_ns > client->request->patience_ms * NS_PER_MS)
		return error_of(call, err);
	client->met = true;
	poll(NULL, 0, (int)backoff_ms(losses->count));
	return 0;
}

int client_ask(struct client *client, struct http_call *call, json_t **ret, struct err *err)
{
	struct losses losses = {0};
	int result = http_perform(client->http, call, err);

	while (client_may_retry(call)) {
		result = client_lost(client, call, &losses, err);
		if (result)
			return result;
		result = http_perform(client->http, call, err);
	}
	if (result)
		return result;
	client->met = true;
	if (ret)
		return reply_document(call, ret, err);
	return reply_good(call) ? 0 : error_of(call, err);
}

/* The one run of a list. none: what is said when it is empty. */
static int find_in_list(struct client *client, const char *target, const char *none, char ret_run_id[static ID_SIZE], struct err *err)
{
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	JSON_AUTO json_t *document = NULL;

	http_call_set(&call, "GET", "%s", target);

	int result = client_ask(client, &call, &document, err);

	if (result)
		return result;

	const json_t *runs = json_object_get(document, "runs");
	const char *run = json_string_value(json_object_get(json_array_get(runs, 0), "run"));

	if (!run || !id_valid("run", run))
		return err_set(err, ERR_NOT_FOUND, "%s", none);
	if (json_array_size(runs) > 1)
		return err_set(err, ERR_CONFLICT, "more than one run begins with %s", client->request->run);
	memcpy(ret_run_id, run, ID_SIZE);
	return 0;
}

int client_find_run(struct client *client, char ret_run_id[static ID_SIZE], struct err *err)
{
	const char *name = client->request->run;

	if (!name)
		return err_set(err, ERR_INVALID, "$.run: missing");
	if (strcmp(name, "latest") == 0)
		return find_in_list(client, "/v1/runs?limit=1", "there is no run yet", ret_run_id, err);
	if (id_valid("run", name)) {
		memcpy(ret_run_id, name, ID_SIZE);
		return 0;
	}
	if (!id_begins("run", name))
		return err_set(err, ERR_INVALID, "\"%s\" is not the id of a run (run-…), nor the beginning of one, nor \"latest\"", name);

	char target[sizeof "/v1/runs?limit=2&run=" + ID_SIZE], none[sizeof "there is no run " + ID_SIZE];

	snprintf(target, sizeof target, "/v1/runs?limit=2&run=%s", name);
	snprintf(none, sizeof none, "there is no run %s", name);
	return find_in_list(client, target, none, ret_run_id, err);
}
