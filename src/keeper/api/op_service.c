/* op_service.c - how the keeper is: alive, ready, and in figures. */
#include "keeper/api/api_internal.h"
#include "keeper/api/stats_internal.h"

static int handle_health(struct call *call, struct err *err)
{
	return reply_json(call, json_pack("{s:b}", "alive", 1), err);
}

const struct operation operation_health = {.name = "health", .handle = handle_health};

static int handle_readiness(struct call *call, struct err *err)
{
	const struct api_core *core = call->api->options.core;
	char reason[API_REASON_MAX] = "";
	bool ready = core->ready(core->context, reason);
	call->reply.ok = json_pack("{s:b}", "ready", (int)ready);
	return reply_json(call, json_pack("{s:b, s:s*}", "ready", (int)ready, "reason", ready ? NULL : reason), err);
}

const struct operation operation_readiness = {.name = "readiness", .handle = handle_readiness};

static int handle_metrics(struct call *call, struct err *err)
{
	struct api *api = call->api;
	struct api_stats stats = {0};
	api->options.core->stats(api->options.core->context, &stats);
	pthread_mutex_lock(&api->lock);
	size_t connections = api->connection_count, parked = api->parked_count;
	pthread_mutex_unlock(&api->lock);
	return metrics_render(&stats, connections, parked, &call->reply.body, err);
}

const struct operation operation_metrics = {.name = "metrics", .handle = handle_metrics};
