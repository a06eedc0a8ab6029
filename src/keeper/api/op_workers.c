/* op_workers.c - who drives runs, and the recovery of a slot. */
#include <limits.h>

#include "keeper/api/api_internal.h"

struct listing {
	const struct peer *peer;
	json_t *rows;
};

static int add_worker(void *context, const struct api_worker *worker)
{
	struct listing *listing = context;
	bool shows = *worker->run_id && peer_may_see(listing->peer, worker->principal);
	json_t *row = json_pack("{s:i, s:s, s:s, s:s*, s:s*}", "slot", worker->slot, "profile", worker->profile, "state",
	                        stats_worker_name(worker->state), "reason", *worker->reason ? worker->reason : NULL, "run",
	                        shows ? worker->run_id : NULL);
	return row && json_array_append_new(listing->rows, row) == 0 ? 0 : ERR_NO_MEMORY;
}

static int handle_workers(struct call *call, struct err *err)
{
	const struct api_core *core = call->api->options.core;
	JSON_AUTO json_t *rows = json_array();
	struct listing listing = {.peer = call->peer, .rows = rows};
	int result = core->workers(core->context, add_worker, &listing, err);
	return result ? err_context(err, result, "list the workers") : reply_json(call, json_pack("{s:O}", "workers", rows), err);
}

const struct operation operation_workers = {.name = "workers", .handle = handle_workers};

static int handle_recover(struct call *call, struct err *err)
{
	const struct api_core *core = call->api->options.core;
	int64_t slot = -1;
	bool recovered = false;
	int result = argument_number(call, "slot", INT_MAX, &slot, err);
	if (result)
		return result;
	if (!call->peer->admin)
		return access_denied(call, "slots are recovered by the keeper's own user, or root", err);
	result = core->recover(core->context, (int)slot, &recovered, err);
	if (result)
		return result;
	return reply_json(call, json_pack("{s:I, s:b}", "slot", (json_int_t)slot, "recovered", (int)recovered), err);
}

static const char *const recover_keys[] = {"slot", NULL};

const struct operation operation_recover = {.name = "recover", .keys = recover_keys, .handle = handle_recover};
