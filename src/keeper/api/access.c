/* access.c - who may see what, and the arguments of a question. */
#include <string.h>

#include "base/clock.h"
#include "keeper/api/api_internal.h"

bool peer_may_see(const struct peer *peer, const char *principal)
{
	return peer->admin || strcmp(peer->principal, principal) == 0;
}

/* The same words for what is not there and for what is somebody else's. */
int access_refused(struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "there is no such run");
}

int access_denied(struct call *call, const char *why, struct err *err)
{
	call->refused = true;
	return err_set(err, ERR_PERMISSION, "%s", why);
}

static void argument(const struct call *call, const char *name, struct json_at *ret)
{
	struct json_at root;
	json_at_root(call->arguments, &root);
	json_at_key(&root, name, ret);
}

int argument_number(const struct call *call, const char *name, int64_t max, int64_t *ret, struct err *err)
{
	struct json_at at;
	argument(call, name, &at);
	return json_read_int(&at, 0, max, ret, err);
}

int argument_text(const struct call *call, const char *name, size_t max, const char **ret, struct err *err)
{
	struct json_at at;
	*ret = NULL;
	argument(call, name, &at);
	return json_read_string(&at, max, ret, err);
}

int argument_waits(struct call *call, bool *ret_over, struct err *err)
{
	int64_t wait_ms = 0, now_ns = clock_mono_ns();
	int result = argument_number(call, "wait_ms", WIRE_WAIT_MAX_MS, &wait_ms, err);
	if (result)
		return result;
	if (call->deadline_ns == 0)
		call->deadline_ns = now_ns + wait_ms * NS_PER_MS;
	*ret_over = now_ns >= call->deadline_ns;
	return 0;
}

int access_run_id(struct call *call, struct err *err)
{
	const char *run_id;
	int result = argument_text(call, "run", ID_SIZE, &run_id, err);
	if (result)
		return result;
	if (!run_id || !id_valid("run", run_id))
		return access_refused(err);
	memcpy(call->run_id, run_id, strlen(run_id) + 1);
	return 0;
}

int access_run(struct call *call, struct ledger_run_state *ret, struct err *err)
{
	struct ledger *ledger = call->api->options.ledger;
	int result = access_run_id(call, err);
	if (result)
		return result;
	call->seen = schedule_changes(call->api, call->run_id);
	result = ledger->ops->run_state(ledger, call->run_id, ret, err);
	if (result == ERR_NOT_FOUND || (result == 0 && !peer_may_see(call->peer, ret->principal)))
		return access_refused(err);
	return result;
}
