/* lease.h - may somebody else's lease be taken over? The rule, pure: no absolute time is stored, compared or sent.
 *
 * A lease is (generation, renewals). Whoever wants it looks at it again and again, with a boot-time clock of its own; when it has itself
 * seen both unchanged for ttl_ms, the owner is taken for dead or stopped. A free flock, on the same machine, says at once that it is dead;
 * a held one says only that there is a process, which may be stopped for ever. The takeover itself is the ledger's (take_over and expire
 * in ledger.h), which fences the old owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What one observer has seen of one lease. Zero-initialise, then observe. */
struct lease_watch {
	bool seen;
	int64_t generation, renewals;
	int64_t since_ns; /* CLOCK_BOOTTIME (base/clock.h) of the first look at which it was as it is */
};

/* One look. now_ns: CLOCK_BOOTTIME; a look with an earlier time than the one before begins anew. */
void lease_observe(struct lease_watch *watch, int64_t generation, int64_t renewals, int64_t now_ns);

/* owner_gone: its flock is free, on this machine. */
bool lease_may_take_over(const struct lease_watch *watch, bool owner_gone, int64_t ttl_ms, int64_t now_ns);
