/* router.h - which worker gets a run: one that is free, of its profile, and whose isolation was verified a moment ago (contract R16). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keeper/api/stats.h"

enum {
	ROUTER_FRESH_S = 30,   /* so long a verification holds */
	ROUTER_VERIFY_S = 20,  /* so old it is renewed, while nothing else is to be done */
};

struct router_worker {
	const char *profile;
	enum stats_worker state;
	bool verifying;          /* unverified, and about to be verified: there is hope */
	int64_t verified_at_ns;  /* CLOCK_BOOTTIME; of a state that was verified at all */
	const char *last_owner;  /* whose run it had last; "" for none */
};

enum route {
	ROUTE_TAKEN, /* *ret_index is the one */
	ROUTE_WAIT,  /* those that fit are busy, or being verified */
	ROUTE_NONE,  /* no_safe_worker: none that fits will be there without a recovery */
};

/* The preferred worker is the one that had this owner's last run: what it keeps warm is theirs. */
enum route router_choose(const struct router_worker *workers, size_t count, const char *profile, const char *owner, int64_t now_ns,
                         size_t *ret_index);
