/* router.c - never a weaker profile, never a worker whose verification is old. */
#include "keeper/router.h"

#include <string.h>

#include "base/clock.h"

static bool is_fresh(const struct router_worker *worker, int64_t now_ns)
{
	int64_t age_ns = now_ns - worker->verified_at_ns;
	return age_ns >= 0 && age_ns <= ROUTER_FRESH_S * NS_PER_S;
}

/* Is there a worker that will be able to take it without anybody's doing? An old verification is renewed by the worker itself. */
static bool is_hope(const struct router_worker *worker)
{
	switch (worker->state) {
	case STATS_AVAILABLE:
	case STATS_BUSY:
		return true;
	case STATS_UNVERIFIED:
		return worker->verifying;
	case STATS_QUARANTINED:
	case STATS_WORKER_COUNT:
		break;
	}
	return false;
}

enum route router_choose(const struct router_worker *workers, size_t count, const char *profile, const char *owner, int64_t now_ns,
                         size_t *ret_index)
{
	bool found = false, hope = false;
	for (size_t i = 0; i < count; i++) {
		const struct router_worker *worker = &workers[i];
		if (strcmp(worker->profile, profile) != 0)
			continue;
		hope = hope || is_hope(worker);
		if (worker->state != STATS_AVAILABLE || !is_fresh(worker, now_ns))
			continue;
		bool preferred = strcmp(worker->last_owner, owner) == 0;
		if (!found || preferred)
			*ret_index = i;
		found = true;
		if (preferred)
			break;
	}
	if (found)
		return ROUTE_TAKEN;
	return hope ? ROUTE_WAIT : ROUTE_NONE;
}
