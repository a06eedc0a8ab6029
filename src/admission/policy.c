/* policy.c - the built-in policy, and the vocabulary of reasons with their remedies. */
#include "admission/admission.h"

/* The document and its digest are constants that belong together; the unit test recomputes one from the other. */
static const struct policy default_policy = {
	.text = "{\"approval_required\":false,\"max_memory_bytes\":null,\"max_wall_ms\":null,\"network\":[\"none\"],"
	        "\"profiles\":[\"linux\",\"recording\"],\"version\":\"caisson.policy/v1\"}",
	.digest = {.bytes = {
		0x8d, 0x42, 0x2d, 0xaa, 0x93, 0x06, 0x9c, 0x91, 0x32, 0xb9, 0xc4, 0x84, 0x9e, 0xe7, 0x81, 0xef,
		0xa3, 0x05, 0xcf, 0xd9, 0xa9, 0x20, 0xff, 0x60, 0x36, 0xd0, 0xce, 0x54, 0xe1, 0x60, 0x6c, 0x54,
	}},
	.profiles = {"linux", "recording", NULL},
	.max_wall_ms = -1,
	.max_memory_bytes = -1,
	.approval_required = false,
};

const struct policy *admission_policy_default(void)
{
	return &default_policy;
}

struct word {
	const char *name, *remedy;
};

static const struct word words[ADMISSION_REASON_COUNT] = {
	[ADMISSION_POLICY_PROFILE] = {"policy_profile", "choose a profile that the policy allows"},
	[ADMISSION_POLICY_NETWORK] = {"policy_network", "leave network.mode at \"none\""},
	[ADMISSION_POLICY_LIMIT] = {"policy_limit", "ask for no more than the policy's maximum"},
	[ADMISSION_UNSUPPORTED] = {"unsupported", "leave the named field out"},
	[ADMISSION_APPROVAL_MISSING] = {"approval_missing", "have this exact plan approved first"},
	[ADMISSION_BUDGET] = {"budget_exceeded", "ask for less wall time, or have the budget raised"},
	[ADMISSION_READINESS_STALE] = {"readiness_stale", "let a worker of this profile be verified again, then retry"},
	[ADMISSION_NO_SAFE_WORKER] = {"no_safe_worker", "run `caisson doctor` and provide what it says is missing"},
	[ADMISSION_REQUIRE] = {"require_unmet", "run where the named feature is available, or do not require it"},
	[ADMISSION_EPOCH] = {"epoch_changed", "the keeper was restarted: submit again"},
};

const char *admission_reason_name(enum admission_reason reason)
{
	return (unsigned)reason < ADMISSION_REASON_COUNT ? words[reason].name : "unknown";
}

const char *admission_remedy(enum admission_reason reason)
{
	return (unsigned)reason < ADMISSION_REASON_COUNT ? words[reason].remedy : "";
}
