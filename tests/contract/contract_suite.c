/* contract_suite.c - the contract of a boundary under the runner, on a real ledger; one suite, run on every boundary.
 *
 * The fixture that it is linked with (fixture_*.c) says which. A shim between runner and boundary sees the calls, makes one fail,
 * and looks around just before one. */
#include "suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { SKIP_STATUS = 77 }; /* what meson takes for a skip */

struct boundary *open_boundary(void)
{
	const struct boundary_provider *provider = fixture.provider();
	struct boundary *boundary = NULL;
	struct err err = ERR_INIT;
	if (provider->ops->open(provider->context, &boundary, &err) < 0)
		fail_msg("open: %s", err.text);
	return boundary;
}

void begin_with(struct scene *scene, struct scene_run *run, struct shim *shim, enum story story, const char *limits)
{
	scene_plan(scene, fixture.profile, fixture.tell(story), limits, run);
	scene_accept(run);
	shim_init(shim, open_boundary());
	run->boundary = &shim->base;
}

void begin(struct stage *stage, enum story story, const char *limits)
{
	scene_open(&stage->scene);
	begin_with(&stage->scene, &stage->run, &stage->shim, story, limits);
}

void end(struct stage *stage)
{
	scene_run_done(&stage->run);
	scene_close(&stage->scene);
	assert_string_equal(fixture.violation(), "");
}

void drive(struct stage *stage)
{
	scene_drive(&stage->run);
	if (stage->run.rc < 0)
		fail_msg("runner: %s", stage->run.err.text);
}

void assert_verdict(const struct scene_run *run, enum verdict_kind kind, const char *reason)
{
	const struct verdict *verdict = &run->result.verdict;
	if (verdict->kind != kind || strcmp(verdict->reason, reason) != 0)
		fail_msg("%s/%s (%s) instead of %s/%s", verdict_name(verdict->kind), verdict->reason, verdict->detail,
		         verdict_name(kind), reason);
}

void assert_receipt(const struct runner_result *result, const char *path, const char *json)
{
	char *value = scene_receipt_get(result, path);
	if (strcmp(value, json) != 0)
		fail_msg("receipt %s is %s instead of %s", path, value, json);
	free(value);
}

void assert_kinds(struct stage *stage, const char *expected)
{
	char kinds[SCENE_KINDS_MAX];
	assert_string_equal(scene_kinds(&stage->scene, stage->run.attempt.attempt_id, kinds), expected);
}

bool is_recorded(struct stage *stage, const char *kind)
{
	char kinds[SCENE_KINDS_MAX];
	return strstr(scene_kinds(&stage->scene, stage->run.attempt.attempt_id, kinds), kind) != NULL;
}

void assert_sealed_and_gone(struct stage *stage)
{
	struct ledger_attempt row;
	assert_false(stage->run.result.provisional);
	assert_non_null(stage->run.result.receipt);
	assert_false(scene_find(&stage->scene, stage->run.attempt.attempt_id, &row));
	assert_receipt(&stage->run.result, "boundary.verified_empty", "true");
	assert_int_equal(fixture.members(&stage->run.identity), 0);
	assert_false(fixture.exists(&stage->run.identity));
}

int main(void)
{
	if (fixture.set_up() != 0)
		return getenv("CAISSON_TEST_MUST_RUN") ? EXIT_FAILURE : SKIP_STATUS;
	int failed = run_life_tests() + run_recovery_tests();
	fixture.tear_down();
	return failed;
}
