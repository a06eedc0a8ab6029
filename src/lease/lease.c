/* lease.c - may somebody else's lease be taken over? */
#include "lease/lease.h"

#include "base/clock.h"

void lease_observe(struct lease_watch *watch, int64_t generation, int64_t renewals, int64_t now_ns)
{
	if (watch->seen && watch->generation == generation && watch->renewals == renewals && now_ns >= watch->since_ns)
		return;
	*watch = (struct lease_watch){.seen = true, .generation = generation, .renewals = renewals, .since_ns = now_ns};
}

bool lease_may_take_over(const struct lease_watch *watch, bool owner_gone, int64_t ttl_ms, int64_t now_ns)
{
	return owner_gone || (watch->seen && now_ns >= watch->since_ns && (now_ns - watch->since_ns) / NS_PER_MS >= ttl_ms);
}
