/* admission.c - the decision: every reason against a plan, one finding each, and a digest that binds it. */
#include "admission/admission.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "admission/require.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"

enum { DECISION_MAX_BYTES = 4096 };

/* One finding a reason: a second place with the same reason is put behind the first one's detail. */
static void find(struct admission_decision *decision, enum admission_reason reason, const char *detail)
{
	struct admission_finding *finding = NULL;
	for (size_t i = 0; i < decision->finding_count; i++) {
		if (decision->findings[i].reason == reason)
			finding = &decision->findings[i];
	}
	if (!finding) {
		finding = &decision->findings[decision->finding_count++];
		*finding = (struct admission_finding){.reason = reason};
	}
	size_t used = strlen(finding->detail);
	snprintf(finding->detail + used, sizeof(finding->detail) - used, "%s%s", used ? "; " : "", detail);
}

static void judge_policy(const struct admission_request *request, struct admission_decision *decision)
{
	const struct policy *policy = request->policy;
	const struct plan *plan = request->plan;
	char text[ADMISSION_DETAIL_MAX];
	bool allowed = false;
	for (size_t i = 0; policy->profiles[i]; i++)
		allowed = allowed || !strcmp(policy->profiles[i], plan->profile);
	if (!allowed)
		find(decision, ADMISSION_POLICY_PROFILE, plan->profile);
	if (plan->network != NETWORK_NONE)
		find(decision, ADMISSION_POLICY_NETWORK, "$.network.mode");
	if (policy->max_wall_ms >= 0 && plan->limits.wall_ms > policy->max_wall_ms) {
		snprintf(text, sizeof(text), "$.limits.wall_ms: %lld of at most %lld", (long long)plan->limits.wall_ms,
		         (long long)policy->max_wall_ms);
		find(decision, ADMISSION_POLICY_LIMIT, text);
	}
	if (policy->max_memory_bytes >= 0 && plan->limits.memory_bytes > policy->max_memory_bytes) {
		snprintf(text, sizeof(text), "$.limits.memory_bytes: %lld of at most %lld", (long long)plan->limits.memory_bytes,
		         (long long)policy->max_memory_bytes);
		find(decision, ADMISSION_POLICY_LIMIT, text);
	}
	if (policy->approval_required && !request->have_approval)
		find(decision, ADMISSION_APPROVAL_MISSING, "the policy asks for an approval of this exact plan");
}

/* What the shapes allow and this version does not have: refused by name, never ignored. */
static void judge_support(const struct admission_request *request, struct admission_decision *decision)
{
	if (request->manifest->image)
		find(decision, ADMISSION_UNSUPPORTED, "$.image");
	if (request->plan->limits.scratch == SCRATCH_DISK && strcmp(request->plan->profile, "docker") == 0)
		find(decision, ADMISSION_UNSUPPORTED, "$.limits.scratch");
}

static void judge_budget(const struct admission_request *request, struct admission_decision *decision)
{
	if (request->budget_left_ms < 0 || request->plan->limits.wall_ms <= request->budget_left_ms)
		return;
	char text[ADMISSION_DETAIL_MAX];
	snprintf(text, sizeof(text), "%lld ms asked for, %lld ms left", (long long)request->plan->limits.wall_ms,
	         (long long)request->budget_left_ms);
	find(decision, ADMISSION_BUDGET, text);
}

static void judge_readiness(const struct admission_request *request, struct admission_decision *decision)
{
	const struct readiness *readiness = &request->readiness;
	int64_t age_ns = request->now_ns - readiness->at_ns;
	if (readiness->at_ns <= 0)
		find(decision, ADMISSION_READINESS_STALE, "no worker of this profile was verified");
	else if (age_ns < 0 || age_ns > ADMISSION_READINESS_MAX_AGE_S * NS_PER_S)
		find(decision, ADMISSION_READINESS_STALE, "the last verification is older than 30 s");
	if (!readiness->ready)
		find(decision, ADMISSION_NO_SAFE_WORKER,
		     readiness->missing ? readiness->missing : "a required property is missing");
	if (!readiness->features)
		return;
	for (size_t i = 0; i < request->plan->require_count; i++) {
		if (!admission_require_met(request->plan->require[i], readiness->features))
			find(decision, ADMISSION_REQUIRE, request->plan->require[i]);
	}
}

static int digest_decision(const struct admission_request *request, struct admission_decision *decision, struct err *err)
{
	char plan[DIGEST_TEXT_SIZE], policy[DIGEST_TEXT_SIZE], epoch[DIGEST_TEXT_SIZE];
	json_t *reasons JSON_AUTO = json_array();
	for (size_t i = 0; i < decision->finding_count; i++) {
		json_t *name = json_string(admission_reason_name(decision->findings[i].reason));
		if (json_array_append_new(reasons, name) < 0)
			return err_set(err, ERR_NO_MEMORY, "admission decision");
	}
	json_t *document JSON_AUTO =
		json_pack("{s:s, s:s, s:s, s:b, s:O}", "plan", digest_text(&request->plan->digest, plan), "policy",
	                  digest_text(&request->policy->digest, policy), "epoch", digest_text(&request->epoch, epoch), "admit",
	                  (int)decision->admit, "reasons", reasons);
	if (!document)
		return err_set(err, ERR_NO_MEMORY, "admission decision");
	struct buf text BUF_AUTO = BUF_INIT(DECISION_MAX_BYTES);
	int rc = json_canonical(document, &text, err);
	if (rc < 0)
		return rc;
	digest_of(text.data, text.len, &decision->digest);
	return 0;
}

int admission_decide(const struct admission_request *request, struct admission_decision *ret, struct err *err)
{
	if (!digest_equal(&request->plan->policy, &request->policy->digest))
		return err_set(err, ERR_CONFLICT, "the plan was compiled under another policy");
	if (!digest_equal(&request->plan->manifest, &request->manifest->digest))
		return err_set(err, ERR_CONFLICT, "the plan was compiled from another manifest");

	struct admission_decision decision = {.admit = false};
	judge_policy(request, &decision);
	judge_support(request, &decision);
	judge_budget(request, &decision);
	judge_readiness(request, &decision);
	if (!digest_equal(&request->epoch, &request->epoch_now))
		find(&decision, ADMISSION_EPOCH, "the runtime epoch is another one now");
	decision.admit = decision.finding_count == 0;
	int rc = digest_decision(request, &decision, err);
	if (rc == 0)
		*ret = decision;
	return rc;
}
