/* admission.h - may this plan run? A pure decision over policy, plan, approval, budget, readiness and epoch; never a start.
 *
 * Reasons come from a fixed vocabulary; each has a remedy. Every reason that holds is given, not the first alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "manifest/plan.h"

enum admission_reason {
	ADMISSION_POLICY_PROFILE,    /* "policy_profile": the policy does not allow this profile */
	ADMISSION_POLICY_NETWORK,    /* "policy_network": network other than none, which needs an approval that this version cannot give */
	ADMISSION_POLICY_LIMIT,      /* "policy_limit": a limit above the policy's maximum */
	ADMISSION_UNSUPPORTED,       /* "unsupported": a requested feature this version does not have (scratch disk, image, …) */
	ADMISSION_APPROVAL_MISSING,  /* "approval_missing" */
	ADMISSION_BUDGET,            /* "budget_exceeded" */
	ADMISSION_READINESS_STALE,   /* "readiness_stale": older than 30 s, or none */
	ADMISSION_NO_SAFE_WORKER,    /* "no_safe_worker": readiness says that a required property is missing */
	ADMISSION_REQUIRE,           /* "require_unmet": something in `require` is not available here; detail names it */
	ADMISSION_EPOCH,             /* "epoch_changed" */
	ADMISSION_REASON_COUNT
};

enum { ADMISSION_DETAIL_MAX = 192, ADMISSION_READINESS_MAX_AGE_S = 30 };

/* The policy document: a digest-identified, canonical JSON text. The built-in one is admission_policy_default(). */
struct policy {
	const char *text;
	struct digest digest;
	const char *profiles[4]; /* NULL-terminated */
	int64_t max_wall_ms, max_memory_bytes; /* -1: no maximum */
	bool approval_required;
};

struct readiness {
	int64_t at_ns;              /* CLOCK_BOOTTIME when it was observed */
	bool ready;                 /* every required property of the profile is there */
	const char *missing;        /* which is not; NULL when ready */
	const char *const *features;/* NULL-terminated: names, or "landlock=7" with a level; what `require` is compared with. NULL: unknown, and
	                             * every `require` is then left to enroll, which refuses what is not in its evidence */
};

struct admission_request {
	const struct policy *policy;
	const struct plan *plan;
	const struct manifest *manifest;
	struct readiness readiness;
	int64_t now_ns;             /* CLOCK_BOOTTIME */
	int64_t budget_left_ms;     /* of the owner; -1: no budget */
	struct digest epoch, epoch_now;
	bool have_approval;
};

struct admission_finding {
	enum admission_reason reason;
	char detail[ADMISSION_DETAIL_MAX];
};

struct admission_decision {
	bool admit;
	struct admission_finding findings[ADMISSION_REASON_COUNT];
	size_t finding_count;
	struct digest digest; /* over {policy, plan, epoch, admit, reasons} */
};

const struct policy *admission_policy_default(void);
int admission_decide(const struct admission_request *request, struct admission_decision *ret, struct err *err);
const char *admission_reason_name(enum admission_reason reason);
const char *admission_remedy(enum admission_reason reason);
