/* test_refuse.c - a refusal is sealed like any other end, and nothing of a boundary exists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "stage.h"

static void refuse(struct stage *stage, const struct plan *plan, const char *reason)
{
	struct runner_refusal refusal = {
		.ledger = stage->scene.ledger,
		.key = stage->scene.key,
		.plan = plan,
		.attempt = stage->run.attempt,
		.manifest = stage->run.manifest->digest,
		.principal = "uid:0",
		.reason = reason,
		.detail = "wanted: \x1b[31m\xff",
	};
	stage->run.rc = runner_refuse(&refusal, &stage->run.result, &stage->run.err);
}

static void assert_receipt(const struct stage *stage, const char *path, const char *json)
{
	char *value = scene_receipt_get(&stage->run.result, path);
	assert_string_equal(value, json);
	free(value);
}

static void refusal_by_admission_is_sealed(void **state)
{
	struct stage stage;
	struct ledger_attempt row;
	char kinds[SCENE_KINDS_MAX];
	(void)state;
	stage_open(&stage, "{}");
	scene_accept(&stage.run);
	refuse(&stage, stage.run.plan, "policy_network");
	stage_assert_verdict(&stage, VERDICT_REFUSED, "policy_network");
	assert_false(scene_find(&stage.scene, stage.run.attempt.attempt_id, &row));
	assert_string_equal(scene_kinds(&stage.scene, stage.run.attempt.attempt_id, kinds), "accepted refused rows");
	assert_receipt(&stage, "verdict", "\"refused\"");
	assert_receipt(&stage, "exit_code", "null");
	assert_receipt(&stage, "usage.wall_ms", "null");
	assert_receipt(&stage, "boundary.survivors_killed", "null");
	assert_receipt(&stage, "times.launched_at", "null");
	assert_string_equal(recording_world_trace(stage.world), "");
	stage_close(&stage);
}

static void refusal_by_the_compiler_has_no_plan(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{}");
	scene_accept(&stage.run);
	refuse(&stage, NULL, "limit_unenforceable");
	stage_assert_verdict(&stage, VERDICT_REFUSED, "limit_unenforceable");
	assert_receipt(&stage, "plan", "null");
	assert_receipt(&stage, "limits", "null");
	stage_close(&stage);
}

static void text_that_a_terminal_would_obey_is_made_harmless(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{}");
	scene_accept(&stage.run);
	refuse(&stage, stage.run.plan, "unsupported");
	assert_string_equal(stage.run.result.verdict.detail, "wanted: ?[31m?");
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusal_by_admission_is_sealed),
		cmocka_unit_test(refusal_by_the_compiler_has_no_plan),
		cmocka_unit_test(text_that_a_terminal_would_obey_is_made_harmless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
