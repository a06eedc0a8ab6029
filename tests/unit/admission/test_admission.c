/* test_admission.c - every reason of admission is reachable, all that hold are given, and the decision's digest binds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admission/admission.h"
#include "admission/require.h"
#include "base/clock.h"

struct scene {
	struct manifest manifest;
	struct plan plan;
	struct policy policy;
	struct admission_request request;
	struct admission_decision decision;
};

static char profile_linux[] = "linux", profile_docker[] = "docker", image[] = "debian", landlock[] = "landlock>=3", vm[] = "vm";

/* A scene in which everything holds. */
static void set_up(struct scene *scene)
{
	*scene = (struct scene){
		.policy = *admission_policy_default(),
		.plan = {.profile = profile_linux, .limits = {.wall_ms = 10000, .memory_bytes = 1 << 20}},
	};
	scene->plan.policy = scene->policy.digest;
	digest_of("manifest", 8, &scene->manifest.digest);
	scene->plan.manifest = scene->manifest.digest;
	digest_of("plan", 4, &scene->plan.digest);
	scene->request = (struct admission_request){
		.policy = &scene->policy,
		.plan = &scene->plan,
		.manifest = &scene->manifest,
		.readiness = {.at_ns = 100 * NS_PER_S, .ready = true},
		.now_ns = 110 * NS_PER_S,
		.budget_left_ms = -1,
	};
	digest_of("epoch", 5, &scene->request.epoch);
	scene->request.epoch_now = scene->request.epoch;
}

static void decide(struct scene *scene)
{
	struct err err = ERR_INIT;
	assert_int_equal(admission_decide(&scene->request, &scene->decision, &err), 0);
}

static void assert_refused(struct scene *scene, enum admission_reason reason, const char *detail)
{
	decide(scene);
	assert_false(scene->decision.admit);
	assert_int_equal(scene->decision.finding_count, 1);
	assert_int_equal(scene->decision.findings[0].reason, reason);
	assert_string_equal(scene->decision.findings[0].detail, detail);
}

static void default_policy_digest_is_of_its_text(void **state)
{
	(void)state;
	const struct policy *policy = admission_policy_default();
	struct digest digest;
	digest_of(policy->text, strlen(policy->text), &digest);
	assert_true(digest_equal(&digest, &policy->digest));
}

static void plain_plan_is_admitted(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene);
	decide(&scene);
	assert_true(scene.decision.admit);
	assert_int_equal(scene.decision.finding_count, 0);
}

static void policy_decides_over_profile_network_limits_and_approval(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene);
	scene.plan.profile = profile_docker;
	assert_refused(&scene, ADMISSION_POLICY_PROFILE, "docker");
	set_up(&scene);
	scene.plan.network = NETWORK_ALLOWLIST;
	assert_refused(&scene, ADMISSION_POLICY_NETWORK, "$.network.mode");
	set_up(&scene);
	scene.policy.max_wall_ms = 9999;
	assert_refused(&scene, ADMISSION_POLICY_LIMIT, "$.limits.wall_ms: 10000 of at most 9999");
	set_up(&scene);
	scene.policy.max_memory_bytes = 10;
	assert_refused(&scene, ADMISSION_POLICY_LIMIT, "$.limits.memory_bytes: 1048576 of at most 10");
	set_up(&scene);
	scene.policy.approval_required = true;
	decide(&scene);
	assert_int_equal(scene.decision.findings[0].reason, ADMISSION_APPROVAL_MISSING);
	scene.request.have_approval = true;
	decide(&scene);
	assert_true(scene.decision.admit);
}

static void unsupported_features_are_named_by_path(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene);
	scene.plan.limits.scratch = SCRATCH_DISK;
	decide(&scene);
	assert_true(scene.decision.admit);
	scene.manifest.image = image;
	scene.plan.profile = profile_docker;
	scene.policy.profiles[0] = profile_docker;
	assert_refused(&scene, ADMISSION_UNSUPPORTED, "$.image; $.limits.scratch");
}

static void budget_counts_up_to_the_last_millisecond(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene);
	scene.request.budget_left_ms = 10000;
	decide(&scene);
	assert_true(scene.decision.admit);
	scene.request.budget_left_ms = 9999;
	assert_refused(&scene, ADMISSION_BUDGET, "10000 ms asked for, 9999 ms left");
}

static void readiness_must_exist_be_fresh_and_good(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene);
	scene.request.now_ns = scene.request.readiness.at_ns + 30 * NS_PER_S;
	decide(&scene);
	assert_true(scene.decision.admit);
	scene.request.now_ns++;
	assert_refused(&scene, ADMISSION_READINESS_STALE, "the last verification is older than 30 s");
	scene.request.now_ns = scene.request.readiness.at_ns - 1;
	assert_refused(&scene, ADMISSION_READINESS_STALE, "the last verification is older than 30 s");
	set_up(&scene);
	scene.request.readiness.at_ns = 0;
	assert_refused(&scene, ADMISSION_READINESS_STALE, "no worker of this profile was verified");
	set_up(&scene);
	scene.request.readiness.ready = false;
	scene.request.readiness.missing = "cgroup.memory";
	assert_refused(&scene, ADMISSION_NO_SAFE_WORKER, "cgroup.memory");
}

static void require_is_compared_with_known_features_only(void **state)
{
	(void)state;
	struct scene scene;
	char *require[] = {landlock, vm, NULL};
	const char *old[] = {"landlock=2", NULL}, *good[] = {"landlock=7", "vm", NULL};
	set_up(&scene);
	scene.plan.require = require;
	scene.plan.require_count = 2;
	decide(&scene);
	assert_true(scene.decision.admit); /* unknown: enroll decides */
	scene.request.readiness.features = old;
	assert_refused(&scene, ADMISSION_REQUIRE, "landlock>=3; vm");
	scene.request.readiness.features = good;
	decide(&scene);
	assert_true(scene.decision.admit);
}

static void malformed_levels_meet_nothing(void **state)
{
	(void)state;
	const char *features[] = {"landlock=x", "landlockish=9", "seccomp", NULL};
	assert_false(admission_require_met("landlock>=1", features));
	assert_false(admission_require_met("landlock", features));
	assert_false(admission_require_met("seccomp>=", features));
	assert_false(admission_require_met("seccomp>=1", features));
	assert_false(admission_require_met("seccomp>=-1", features));
	assert_false(admission_require_met("secc", features));
	assert_true(admission_require_met("seccomp", features));
	assert_true(admission_require_met("seccomp>=0", features));
}

static void another_epoch_refuses(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene);
	digest_of("later", 5, &scene.request.epoch_now);
	assert_refused(&scene, ADMISSION_EPOCH, "the runtime epoch is another one now");
}

static void every_reason_that_holds_is_given(void **state)
{
	(void)state;
	struct scene scene;
	const char *none[] = {NULL};
	char *require[] = {vm, NULL};
	set_up(&scene);
	scene.plan.profile = profile_docker;
	scene.plan.network = NETWORK_ALLOWLIST;
	scene.policy.max_wall_ms = 1;
	scene.policy.approval_required = true;
	scene.plan.limits.scratch = SCRATCH_DISK;
	scene.request.budget_left_ms = 0;
	scene.request.readiness = (struct readiness){.features = none};
	scene.plan.require = require;
	scene.plan.require_count = 1;
	digest_of("later", 5, &scene.request.epoch_now);
	decide(&scene);
	assert_int_equal(scene.decision.finding_count, ADMISSION_REASON_COUNT);
	for (int reason = 0; reason < ADMISSION_REASON_COUNT; reason++) {
		assert_string_not_equal(admission_reason_name((enum admission_reason)reason), "unknown");
		assert_string_not_equal(admission_remedy((enum admission_reason)reason), "");
	}
}

static void digest_binds_plan_and_outcome(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene);
	decide(&scene);
	struct digest first = scene.decision.digest;
	decide(&scene);
	assert_true(digest_equal(&first, &scene.decision.digest));
	digest_of("plan 2", 6, &scene.plan.digest);
	decide(&scene);
	assert_false(digest_equal(&first, &scene.decision.digest));
	set_up(&scene);
	scene.request.budget_left_ms = 0;
	decide(&scene);
	assert_false(digest_equal(&first, &scene.decision.digest));
}

static void plan_of_another_policy_or_manifest_is_a_conflict(void **state)
{
	(void)state;
	struct scene scene;
	struct err err = ERR_INIT;
	set_up(&scene);
	digest_of("other", 5, &scene.plan.policy);
	assert_int_equal(admission_decide(&scene.request, &scene.decision, &err), ERR_CONFLICT);
	set_up(&scene);
	digest_of("other", 5, &scene.plan.manifest);
	assert_int_equal(admission_decide(&scene.request, &scene.decision, &err), ERR_CONFLICT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(default_policy_digest_is_of_its_text),
		cmocka_unit_test(plain_plan_is_admitted),
		cmocka_unit_test(policy_decides_over_profile_network_limits_and_approval),
		cmocka_unit_test(unsupported_features_are_named_by_path),
		cmocka_unit_test(budget_counts_up_to_the_last_millisecond),
		cmocka_unit_test(readiness_must_exist_be_fresh_and_good),
		cmocka_unit_test(require_is_compared_with_known_features_only),
		cmocka_unit_test(malformed_levels_meet_nothing),
		cmocka_unit_test(another_epoch_refuses),
		cmocka_unit_test(every_reason_that_holds_is_given),
		cmocka_unit_test(digest_binds_plan_and_outcome),
		cmocka_unit_test(plan_of_another_policy_or_manifest_is_a_conflict),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
