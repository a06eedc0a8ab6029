/* watch.c - what a keeper has seen of the leases of others, round by round. */
#include "keeper/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lease/lease.h"

enum { WATCH_GROWTH = 64 };

struct watched {
	char attempt_id[ID_SIZE];
	struct lease_watch lease;
	bool looked_at; /* in this round */
};

struct keeper_watch {
	struct watched *list;
	size_t count, capacity;
};

struct keeper_watch *keeper_watch_new(void)
{
	return calloc(1, sizeof(struct keeper_watch));
}

void keeper_watch_free(struct keeper_watch *watch)
{
	if (!watch)
		return;
	free(watch->list);
	free(watch);
}

/* Attempts of other living keepers of one machine: a few dozen. */
static struct watched *find_or_add(struct keeper_watch *watch, const char *attempt_id)
{
	for (size_t i = 0; i < watch->count; i++)
		if (strcmp(watch->list[i].attempt_id, attempt_id) == 0)
			return &watch->list[i];
	if (watch->count == watch->capacity) {
		struct watched *larger = reallocarray(watch->list, watch->capacity + WATCH_GROWTH, sizeof(*larger));
		if (!larger)
			return NULL;
		watch->list = larger;
		watch->capacity += WATCH_GROWTH;
	}
	struct watched *added = &watch->list[watch->count++];
	*added = (struct watched){.looked_at = false};
	memcpy(added->attempt_id, attempt_id, ID_SIZE);
	return added;
}

bool watch_look(struct keeper_watch *watch, const struct ledger_attempt *attempt)
{
	struct watched *watched = find_or_add(watch, attempt->attempt_id);
	int64_t now_ns = clock_boot_ns();
	if (!watched)
		return false;
	watched->looked_at = true;
	lease_observe(&watched->lease, attempt->generation, attempt->renewals, now_ns);
	return lease_may_take_over(&watched->lease, false, attempt->ttl_ms, now_ns);
}

void watch_end_round(struct keeper_watch *watch)
{
	size_t kept = 0;
	for (size_t i = 0; i < watch->count; i++) {
		if (!watch->list[i].looked_at)
			continue;
		watch->list[kept] = watch->list[i];
		watch->list[kept++].looked_at = false;
	}
	watch->count = kept;
}
