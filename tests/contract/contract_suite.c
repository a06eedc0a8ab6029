/* contract_suite.c - the contract of a boundary under the runner, on a real ledger; one suite, run on every boundary.
 *
 * The fixture that it is linked with (fixture_*.c) says which. A shim between runner and boundary sees the calls, makes one fail,
 * and looks around just before one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "scene.h"
#include "shim.h"

enum {
	SKIP_STATUS = 77,    /* what meson takes for a skip */
	READY_ASKED_MS = 50, /* how often a guest is asked whether it is ready */
};

/* One test's stage: a ledger, and one run on it behind a shim. */
struct stage {
	struct scene scene;
	struct scene_run run;
	struct shim shim;
};

static struct boundary *open_boundary(void)
{
	const struct boundary_provider *provider = fixture.provider();
	struct boundary *boundary = NULL;
	struct err err = ERR_INIT;
	if (provider->ops->open(provider->context, &boundary, &err) < 0)
		fail_msg("open: %s", err.text);
	return boundary;
}

/* A run of this story, accepted, with a boundary behind the shim, not yet driven. */
static void begin_with(struct scene *scene, struct scene_run *run, struct shim *shim, enum story story, const char *limits)
{
	scene_plan(scene, fixture.profile, fixture.tell(story), limits, run);
	scene_accept(run);
	shim_init(shim, open_boundary());
	run->boundary = &shim->base;
}

static void begin(struct stage *stage, enum story story, const char *limits)
{
	scene_open(&stage->scene);
	begin_with(&stage->scene, &stage->run, &stage->shim, story, limits);
}

static void end(struct stage *stage)
{
	scene_run_done(&stage->run);
	scene_close(&stage->scene);
	assert_string_equal(fixture.violation(), "");
}

static void drive(struct stage *stage)
{
	scene_drive(&stage->run);
	if (stage->run.rc < 0)
		fail_msg("runner: %s", stage->run.err.text);
}

static void assert_verdict(const struct scene_run *run, enum verdict_kind kind, const char *reason)
{
	const struct verdict *verdict = &run->result.verdict;
	if (verdict->kind != kind || strcmp(verdict->reason, reason) != 0)
		fail_msg("%s/%s (%s) instead of %s/%s", verdict_name(verdict->kind), verdict->reason, verdict->detail,
		         verdict_name(kind), reason);
}

static void assert_receipt(const struct runner_result *result, const char *path, const char *json)
{
	char *value = scene_receipt_get(result, path);
	if (strcmp(value, json) != 0)
		fail_msg("receipt %s is %s instead of %s", path, value, json);
	free(value);
}

static void assert_kinds(struct stage *stage, const char *expected)
{
	char kinds[SCENE_KINDS_MAX];
	assert_string_equal(scene_kinds(&stage->scene, stage->run.attempt.attempt_id, kinds), expected);
}

static bool is_recorded(struct stage *stage, const char *kind)
{
	char kinds[SCENE_KINDS_MAX];
	return strstr(scene_kinds(&stage->scene, stage->run.attempt.attempt_id, kinds), kind) != NULL;
}

/* Sealed, verified empty, nothing left on the host. */
static void assert_sealed_and_gone(struct stage *stage)
{
	struct ledger_attempt row;
	assert_false(stage->run.result.provisional);
	assert_non_null(stage->run.result.receipt);
	assert_false(scene_find(&stage->scene, stage->run.attempt.attempt_id, &row));
	assert_receipt(&stage->run.result, "boundary.verified_empty", "true");
	assert_int_equal(fixture.members(&stage->run.identity), 0);
	assert_false(fixture.exists(&stage->run.identity));
}

static void run_story(enum story story, const char *limits, enum verdict_kind kind, const char *reason)
{
	struct stage stage;
	begin(&stage, story, limits);
	drive(&stage);
	assert_verdict(&stage.run, kind, reason);
	assert_int_equal(stage.shim.calls[SHIM_LAUNCH], 1);
	assert_sealed_and_gone(&stage);
	end(&stage);
}

/* --- the order of things --------------------------------------------------------------------------------------------- */

static void intent_is_in_the_ledger(void *context)
{
	struct stage *stage = context;
	struct ledger_attempt row;
	assert_true(scene_find(&stage->scene, stage->run.attempt.attempt_id, &row));
	assert_true(row.intent);
}

static void nothing_runs_yet(void *context)
{
	struct stage *stage = context;
	struct ledger_attempt row;
	assert_true(scene_find(&stage->scene, stage->run.attempt.attempt_id, &row));
	assert_false(row.intent);
	assert_int_equal(stage->run.launched_calls, 0);
}

static void enroll_and_intent_come_before_launch(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_EXIT_0, "{}");
	stage.shim.context = &stage;
	stage.shim.before[SHIM_ENROLL] = nothing_runs_yet;
	stage.shim.before[SHIM_LAUNCH] = intent_is_in_the_ledger;
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_SUCCEEDED, "");
	assert_string_equal(stage.shim.trace, "prepare create_suspended enroll launch observe drain cleanup verify_empty collect");
	assert_int_equal(stage.run.launched_calls, 1);
	assert_kinds(&stage,
	             "accepted prepared suspended enrolled launch_intent launched main_exited drained cleaned verified_empty rows");
	assert_sealed_and_gone(&stage);
	end(&stage);
}

static void evidence_of_enroll_is_in_the_receipt(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_EXIT_0, "{}");
	drive(&stage);
	char *evidence = scene_receipt_get(&stage.run.result, "boundary.evidence");
	char *layers = scene_receipt_get(&stage.run.result, "boundary.layers");
	assert_non_null(strstr(evidence, "\"grade\""));
	assert_string_not_equal(layers, "[]");
	free(evidence);
	free(layers);
	end(&stage);
}

/* --- how main ends --------------------------------------------------------------------------------------------------- */

static void exit_code_is_told(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_EXIT_3, "{}");
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_FAILED, "exit_code");
	assert_receipt(&stage.run.result, "exit_code", "3");
	assert_receipt(&stage.run.result, "signal", "null");
	assert_sealed_and_gone(&stage);
	end(&stage);
}

static void own_signal_is_no_limit(void **state)
{
	(void)state;
	run_story(STORY_SIGNAL, "{}", VERDICT_SIGNALED, "SIGKILL");
}

static void program_that_is_not_there_is_told(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_NOT_FOUND, "{}");
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_FAILED, "exec_failed");
	assert_int_equal(verdict_exit_status(&stage.run.result.verdict, 0), 127);
	assert_sealed_and_gone(&stage);
	end(&stage);
}

/* --- output ---------------------------------------------------------------------------------------------------------- */

static void both_streams_are_kept(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_GREET, "{}");
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_SUCCEEDED, "");
	scene_assert_stream(&stage.run, "stdout", "hello\n", 6);
	scene_assert_stream(&stage.run, "stderr", "oops\n", 5);
	assert_receipt(&stage.run.result, "stdout.drained", "true");
	end(&stage);
}

static void large_stream_goes_to_the_store(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_LOAD, "{}");
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_SUCCEEDED, "");
	scene_assert_stream(&stage.run, "stdout", "xxxx", 100000);
	end(&stage);
}

static void output_of_exactly_the_cap_is_no_overflow(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_LOAD, "{\"stdout_bytes\":100000}");
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_SUCCEEDED, "");
	assert_receipt(&stage.run.result, "stdout.dropped_bytes", "0");
	end(&stage);
}

static void overflow_stops_at_the_cap(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_LOAD, "{\"stdout_bytes\":1000}");
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_LIMIT_EXCEEDED, "output_limit");
	assert_receipt(&stage.run.result, "stdout.kept_bytes", "1000");
	scene_assert_stream(&stage.run, "stdout", "xxxx", 1000);
	assert_sealed_and_gone(&stage);
	end(&stage);
}

static void truncated_output_is_no_failure(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_LOAD, "{\"stdout_bytes\":90000,\"on_overflow\":\"truncate\"}");
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_SUCCEEDED, "");
	assert_receipt(&stage.run.result, "stdout.bytes", "100000");
	assert_receipt(&stage.run.result, "stdout.dropped_bytes", "10000");
	scene_assert_stream(&stage.run, "stdout", "xxxx", 90000);
	end(&stage);
}

/* --- artifacts ----------------------------------------------------------------------------------------------------- */

static void nothing_is_left(void *context)
{
	struct stage *stage = context;
	assert_int_equal(fixture.members(&stage->run.identity), 0);
	assert_false(fixture.exists(&stage->run.identity));
}

static void outputs_are_collected_when_nothing_else_is_left(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_OUTPUT, "{}");
	stage.shim.context = &stage;
	stage.shim.before[SHIM_COLLECT] = nothing_is_left;
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_SUCCEEDED, "");
	char *artifacts = scene_receipt_get(&stage.run.result, "artifacts");
	assert_non_null(strstr(artifacts, "\"path\": \"a.txt\""));
	assert_non_null(strstr(artifacts, "\"size_bytes\": 3"));
	free(artifacts);
	assert_sealed_and_gone(&stage);
	end(&stage);
}

static void outputs_that_cannot_be_kept_are_no_success(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_OUTPUT, "{}");
	stage.shim.fails[SHIM_COLLECT] = true;
	stage.shim.failure = SHIM_AFTER;
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_BOUNDARY_ERROR, "artifacts_not_kept");
	assert_receipt(&stage.run.result, "artifacts", "[]");
	end(&stage);
}

static void run_that_fails_hands_nothing_out(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_EXIT_3, "{}");
	drive(&stage);
	assert_int_equal(stage.shim.calls[SHIM_COLLECT], 0);
	assert_receipt(&stage.run.result, "artifacts", "[]");
	end(&stage);
}

/* --- main's end is an event of its own (R4), and a retained handle cannot hold the run (R5) -------------------------- */

static void main_is_gone_and_its_daemon_is_not(void *context)
{
	struct stage *stage = context;
	assert_true(stage->shim.exited);
	assert_int_equal(stage->shim.exit.how, BOUNDARY_EXITED);
	assert_int_equal(stage->shim.exit.status, 0);
	assert_int_equal(stage->shim.exit.descendants_alive, 1);
	assert_int_equal(fixture.members(&stage->run.identity), 1);
}

static void daemon_outlives_main(enum story story, enum verdict_kind kind, const char *reason, const char *retained)
{
	struct stage stage;
	begin(&stage, story, "{}");
	stage.shim.context = &stage;
	stage.shim.before[SHIM_CLEANUP] = main_is_gone_and_its_daemon_is_not;
	drive(&stage);
	assert_verdict(&stage.run, kind, reason);
	assert_int_equal(stage.shim.calls[SHIM_CLEANUP], 1);
	assert_int_equal(stage.run.result.usage.survivors_killed, 1);
	assert_receipt(&stage.run.result, "boundary.survivors_killed", "1");
	assert_receipt(&stage.run.result, "stdout.retained", retained);
	assert_sealed_and_gone(&stage);
	end(&stage);
}

static void main_exits_while_a_descendant_lives_handle_closed(void **state)
{
	(void)state;
	daemon_outlives_main(STORY_DAEMON_CLOSED, VERDICT_SUCCEEDED, "", "false");
}

static void main_exits_while_a_descendant_lives_handle_held(void **state)
{
	(void)state;
	daemon_outlives_main(STORY_DAEMON_HOLDS, VERDICT_FAILED, "output_handle_retained", "true");
}

/* --- stops ----------------------------------------------------------------------------------------------------------- */

static void wall_limit_ends_it(void **state)
{
	(void)state;
	run_story(STORY_DEAF, "{\"wall_ms\":200}", VERDICT_TIMED_OUT, "wall_limit");
}

static void cancelled_run(struct stage *stage, enum story story, int level)
{
	bool recorded = false;
	scene_open(&stage->scene);
	scene_plan(&stage->scene, fixture.profile, fixture.tell(story), "{}", &stage->run);
	stage->run.ttl_ms = READY_ASKED_MS * 3;
	stage->run.stop_when_ready = level;
	scene_accept(&stage->run);
	shim_init(&stage->shim, open_boundary());
	stage->run.boundary = &stage->shim.base;
	drive(stage);
	assert_verdict(&stage->run, VERDICT_CANCELLED, "cancel_requested");
	assert_int_equal(
		stage->scene.ledger->ops->cancel_requested(stage->scene.ledger, stage->run.attempt.run_id, &recorded, NULL), 0);
	assert_true(recorded);
	assert_sealed_and_gone(stage);
}

static void cancellation_terminates(void **state)
{
	struct stage stage;
	(void)state;
	cancelled_run(&stage, STORY_SLEEP, 1);
	assert_int_equal(stage.shim.calls[SHIM_TERMINATE], 1);
	assert_int_equal(stage.shim.calls[SHIM_KILL], 0);
	end(&stage);
}

static void cancellation_kills_after_the_grace(void **state)
{
	struct stage stage;
	(void)state;
	cancelled_run(&stage, STORY_DEAF, 1);
	assert_int_equal(stage.shim.calls[SHIM_TERMINATE], 1);
	assert_int_equal(stage.shim.calls[SHIM_KILL], 1);
	assert_true(is_recorded(&stage, "grace_over"));
	end(&stage);
}

static void second_cancellation_kills_at_once(void **state)
{
	struct stage stage;
	(void)state;
	cancelled_run(&stage, STORY_DEAF, 2);
	assert_int_equal(stage.shim.calls[SHIM_KILL], 1);
	assert_false(is_recorded(&stage, "grace_over"));
	end(&stage);
}

static void cancellation_before_prepare_launches_nothing(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_EXIT_0, "{}");
	stage.run.stop = 1;
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_CANCELLED, "cancel_requested");
	assert_string_equal(stage.shim.trace, "cleanup verify_empty");
	end(&stage);
}

static void stop_now(void *context)
{
	((struct stage *)context)->run.stop = 1;
}

static void cancellation_at_the_gate_keeps_it_shut(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_EXIT_0, "{}");
	stage.shim.context = &stage;
	stage.shim.before[SHIM_ENROLL] = stop_now;
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_CANCELLED, "cancel_requested");
	assert_int_equal(stage.shim.calls[SHIM_LAUNCH], 0);
	assert_sealed_and_gone(&stage);
	end(&stage);
}

/* --- a step that fails ----------------------------------------------------------------------------------------------- */

static void failed_step(enum shim_slot slot, enum shim_failure failure)
{
	struct stage stage;
	begin(&stage, STORY_EXIT_0, "{}");
	stage.shim.fails[slot] = true;
	stage.shim.failure = failure;
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_NOT_LAUNCHED, "unverified");
	assert_int_equal(stage.shim.calls[SHIM_LAUNCH], 0);
	assert_int_equal(stage.shim.calls[SHIM_CLEANUP], 1);
	assert_int_equal(stage.run.launched_calls, 0);
	assert_receipt(&stage.run.result, "times.launched_at", "null");
	assert_sealed_and_gone(&stage);
	end(&stage);
}

static void failure_of_a_step_never_launches_and_cleans_up(void **state)
{
	(void)state;
	for (enum shim_slot slot = SHIM_PREPARE; slot <= SHIM_ENROLL; slot++) {
		failed_step(slot, SHIM_INSTEAD);
		failed_step(slot, SHIM_AFTER);
	}
}

static void failed_launch_is_not_tried_again(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_EXIT_0, "{}");
	stage.shim.fails[SHIM_LAUNCH] = true;
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_NOT_LAUNCHED, "unverified");
	assert_int_equal(stage.shim.calls[SHIM_LAUNCH], 1);
	assert_int_equal(stage.shim.calls[SHIM_OBSERVE], 0);
	assert_int_equal(stage.shim.calls[SHIM_CLEANUP], 1);
	assert_sealed_and_gone(&stage);
	end(&stage);
}

static void unenforceable_limit_is_named(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_EXIT_0, "{}");
	stage.shim.fails[SHIM_PREPARE] = true;
	stage.shim.code = ERR_UNENFORCEABLE;
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_NOT_LAUNCHED, "limit_unenforceable");
	end(&stage);
}

static void failed_observation_is_no_verdict_on_the_guest(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_EXIT_0, "{}");
	stage.shim.fails[SHIM_OBSERVE] = true;
	stage.shim.code = ERR_NO_SPACE;
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_BOUNDARY_ERROR, "no_space");
	assert_int_equal(stage.shim.calls[SHIM_KILL], 1);
	assert_sealed_and_gone(&stage);
	end(&stage);
}

static void failed_drain_is_no_verdict_on_the_guest(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_EXIT_0, "{}");
	stage.shim.fails[SHIM_DRAIN] = true;
	stage.shim.code = ERR_NO_SPACE;
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_BOUNDARY_ERROR, "no_space");
	assert_sealed_and_gone(&stage);
	end(&stage);
}

/* --- quarantine (R6) ------------------------------------------------------------------------------------------------- */

static void assert_quarantined(struct stage *stage)
{
	struct ledger_attempt row;
	assert_true(scene_find(&stage->scene, stage->run.attempt.attempt_id, &row));
	assert_string_equal(row.state, "quarantined");
	assert_int_equal(row.slot, stage->run.attempt.slot);
}

/* Same object, same identity, same attempt: whoever tries, nothing is launched. */
static void assert_nothing_starts_there(struct stage *stage)
{
	struct scene_run again;
	int launches = stage->shim.calls[SHIM_LAUNCH];
	scene_plan(&stage->scene, fixture.profile, fixture.tell(STORY_EXIT_0), "{}", &again);
	scene_accept(&again);
	assert_int_not_equal(again.attempt.slot, stage->run.attempt.slot);
	struct boundary_spec spec = {.identity = stage->run.identity, .plan = again.plan, .store = stage->scene.store,
	                             .standard_output = again.standard_output, .standard_error = again.standard_error};
	struct evidence_list evidence = {.count = 0};
	struct boundary *other = open_boundary();
	assert_true(other->ops->prepare(other, &spec, &evidence, NULL) < 0);
	other->ops->free(other);

	struct ledger_attempt accepted = stage->run.attempt;
	assert_true(scene_find(&stage->scene, accepted.attempt_id, &stage->run.attempt));
	scene_drive(&stage->run);
	assert_int_equal(stage->run.rc, ERR_STATE);
	stage->run.attempt = accepted;
	assert_int_equal(stage->shim.calls[SHIM_LAUNCH], launches);
	scene_run_done(&again);
}

static void unrelated_success(struct stage *stage)
{
	struct scene_run run;
	struct shim shim;
	begin_with(&stage->scene, &run, &shim, STORY_EXIT_0, "{}");
	scene_drive(&run);
	assert_int_equal(run.rc, 0);
	assert_verdict(&run, VERDICT_SUCCEEDED, "");
	assert_int_not_equal(run.attempt.slot, stage->run.attempt.slot);
	scene_run_done(&run);
}

static void recover(struct stage *stage, struct runner_result *ret)
{
	struct err err = ERR_INIT;
	scene_new_owner(&stage->scene);
	if (scene_recover(&stage->scene, fixture.provider(), stage->run.attempt.attempt_id, ret, &err) < 0)
		fail_msg("recover: %s", err.text);
}

static void assert_slot_is_free_again(struct stage *stage)
{
	struct scene_run run;
	scene_plan(&stage->scene, fixture.profile, fixture.tell(STORY_EXIT_0), "{}", &run);
	scene_accept(&run);
	assert_int_equal(run.attempt.slot, stage->run.attempt.slot);
	scene_run_done(&run);
}

static void failed_end_quarantines(enum shim_slot slot, enum shim_failure failure)
{
	struct stage stage;
	struct runner_result recovered;
	begin(&stage, STORY_DAEMON_CLOSED, "{}");
	stage.shim.fails[slot] = true;
	stage.shim.failure = failure;
	drive(&stage);
	assert_true(stage.run.result.provisional);
	assert_null(stage.run.result.receipt);
	assert_int_equal(stage.run.provisional_calls, 1);
	assert_int_equal(stage.run.provisional.kind, VERDICT_BOUNDARY_ERROR);
	assert_quarantined(&stage);
	if (slot == SHIM_CLEANUP && failure == SHIM_INSTEAD)
		assert_nothing_starts_there(&stage);
	unrelated_success(&stage);
	assert_quarantined(&stage);

	recover(&stage, &recovered);
	assert_false(recovered.provisional);
	assert_int_equal(recovered.verdict.kind, VERDICT_BOUNDARY_ERROR);
	assert_string_equal(recovered.verdict.reason, "not_verified_empty");
	assert_receipt(&recovered, "boundary.verified_empty", "true");
	assert_receipt(&recovered, "exit_code", "0");
	assert_receipt(&recovered, "owner", "\"uid:0\"");
	assert_receipt(&recovered, "lease_generations", "2");
	assert_int_equal(fixture.members(&stage.run.identity), 0);
	assert_false(fixture.exists(&stage.run.identity));
	assert_slot_is_free_again(&stage);
	free(recovered.receipt);
	end(&stage);
}

static void failed_cleanup_quarantines_until_a_recovery(void **state)
{
	(void)state;
	failed_end_quarantines(SHIM_CLEANUP, SHIM_INSTEAD);
	failed_end_quarantines(SHIM_CLEANUP, SHIM_AFTER);
}

static void failed_verification_quarantines_until_a_recovery(void **state)
{
	(void)state;
	failed_end_quarantines(SHIM_VERIFY_EMPTY, SHIM_INSTEAD);
	failed_end_quarantines(SHIM_VERIFY_EMPTY, SHIM_AFTER);
}

static int refuse_to_recover(void *provider, const struct boundary_identity *identity, int64_t cleanup_ms, int *survivors,
                             struct err *err)
{
	(void)provider;
	(void)identity;
	(void)cleanup_ms;
	(void)survivors;
	return err_set(err, ERR_UNVERIFIED, "something is left");
}

static void failed_recovery_keeps_the_quarantine(void **state)
{
	static const struct boundary_provider_ops failing_ops = {.kind = "failing", .recover = refuse_to_recover};
	const struct boundary_provider failing = {.ops = &failing_ops};
	struct stage stage;
	struct runner_result recovered;
	struct err err = ERR_INIT;
	(void)state;
	begin(&stage, STORY_EXIT_0, "{}");
	stage.shim.fails[SHIM_CLEANUP] = true;
	drive(&stage);
	scene_new_owner(&stage.scene);
	assert_int_equal(scene_recover(&stage.scene, &failing, stage.run.attempt.attempt_id, &recovered, &err), 0);
	assert_true(recovered.provisional);
	assert_quarantined(&stage);
	recover(&stage, &recovered);
	assert_false(recovered.provisional);
	assert_receipt(&recovered, "lease_generations", "3");
	assert_false(fixture.exists(&stage.run.identity));
	free(recovered.receipt);
	end(&stage);
}

/* --- death of worker and keeper (R9) --------------------------------------------------------------------------------- */

static void lost_worker_is_recovered_as_interrupted(void **state)
{
	struct stage stage;
	struct runner_result recovered;
	(void)state;
	begin(&stage, STORY_SLEEP, "{}");
	stage.shim.lost_from_observe = 1;
	drive(&stage);
	assert_true(stage.run.result.provisional);
	assert_int_equal(stage.run.provisional.kind, VERDICT_INTERRUPTED);
	assert_true(fixture.exists(&stage.run.identity));
	recover(&stage, &recovered);
	assert_int_equal(recovered.verdict.kind, VERDICT_INTERRUPTED);
	assert_string_equal(recovered.verdict.reason, "worker_lost");
	assert_receipt(&recovered, "exit_code", "null");
	assert_receipt(&recovered, "usage.oom_kills", "null");
	assert_int_equal(fixture.members(&stage.run.identity), 0);
	assert_false(fixture.exists(&stage.run.identity));
	free(recovered.receipt);
	end(&stage);
}

/* The keeper's process is gone between two calls: what the ledger has is what was committed, the host has what was made. */
static void keeper_dies_after(enum shim_slot last, enum verdict_kind kind, const char *reason)
{
	struct stage stage;
	struct runner_result recovered;
	struct evidence_list evidence = {.count = 0};
	begin(&stage, STORY_SLEEP, "{}");
	struct boundary *b = stage.run.boundary;
	struct ledger *ledger = stage.scene.ledger;
	const struct ledger_attempt *attempt = &stage.run.attempt;
	struct boundary_spec spec = {.identity = stage.run.identity, .plan = stage.run.plan, .store = stage.scene.store,
	                             .standard_output = stage.run.standard_output, .standard_error = stage.run.standard_error};
	if (last >= SHIM_PREPARE)
		assert_int_equal(b->ops->prepare(b, &spec, &evidence, NULL), 0);
	if (last >= SHIM_CREATE_SUSPENDED)
		assert_int_equal(b->ops->create_suspended(b, &evidence, NULL), 0);
	if (last >= SHIM_ENROLL)
		assert_int_equal(b->ops->enroll(b, &evidence, NULL), 0);
	if (last >= SHIM_LAUNCH) {
		assert_int_equal(
			ledger->ops->commit_launch_intent(ledger, attempt->attempt_id, attempt->owner_id, 1, NULL, 0, NULL), 0);
		assert_int_equal(b->ops->launch(b, NULL), 0);
	}
	recover(&stage, &recovered);
	assert_int_equal(recovered.verdict.kind, kind);
	assert_string_equal(recovered.verdict.reason, reason);
	assert_int_equal(fixture.members(&stage.run.identity), 0);
	assert_false(fixture.exists(&stage.run.identity));
	free(recovered.receipt);
	end(&stage);
}

static void dead_keeper_is_recovered_from_every_step(void **state)
{
	(void)state;
	keeper_dies_after(SHIM_PREPARE, VERDICT_NOT_LAUNCHED, "keeper_lost");
	keeper_dies_after(SHIM_CREATE_SUSPENDED, VERDICT_NOT_LAUNCHED, "keeper_lost");
	keeper_dies_after(SHIM_ENROLL, VERDICT_NOT_LAUNCHED, "keeper_lost");
	keeper_dies_after(SHIM_LAUNCH, VERDICT_INTERRUPTED, "keeper_lost");
}

/* --- recovery and sweep go by complete identity (R10, R14) ----------------------------------------------------------- */

struct found {
	const struct boundary_identity *wanted;
	int count, wanted_count;
};

static int count_found(void *context, const struct boundary_identity *identity)
{
	struct found *found = context;
	found->count++;
	found->wanted_count += !strcmp(identity->boundary_id, found->wanted->boundary_id);
	return 0;
}

static void only_the_complete_identity_is_touched(void **state)
{
	const struct boundary_provider *provider = fixture.provider();
	struct stage stage;
	struct boundary_identity stranger, neighbour;
	struct found found = {.wanted = &stage.run.identity};
	int survivors = 0;
	(void)state;
	begin(&stage, STORY_EXIT_0, "{}");
	stage.shim.fails[SHIM_CLEANUP] = true;
	drive(&stage);
	stranger = neighbour = stage.run.identity;
	id_new("led", stranger.ledger_id);
	id_new("bnd", neighbour.boundary_id);
	(void)provider->ops->recover(provider->context, &stranger, 1000, &survivors, NULL);
	assert_true(fixture.exists(&stage.run.identity));
	assert_int_equal(provider->ops->recover(provider->context, &neighbour, 1000, &survivors, NULL), 0);
	assert_true(fixture.exists(&stage.run.identity));

	assert_int_equal(provider->ops->enumerate(provider->context, stage.run.identity.ledger_id, count_found, &found, NULL), 0);
	assert_int_equal(found.wanted_count, 1);
	assert_int_equal(found.count, 1);
	found.count = 0;
	assert_int_equal(provider->ops->enumerate(provider->context, stranger.ledger_id, count_found, &found, NULL), 0);
	assert_int_equal(found.count, 0);

	assert_int_equal(provider->ops->recover(provider->context, &stage.run.identity, 5000, &survivors, NULL), 0);
	assert_false(fixture.exists(&stage.run.identity));
	assert_int_equal(provider->ops->recover(provider->context, &stage.run.identity, 5000, &survivors, NULL), 0);
	end(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enroll_and_intent_come_before_launch),
		cmocka_unit_test(evidence_of_enroll_is_in_the_receipt),
		cmocka_unit_test(exit_code_is_told),
		cmocka_unit_test(own_signal_is_no_limit),
		cmocka_unit_test(program_that_is_not_there_is_told),
		cmocka_unit_test(both_streams_are_kept),
		cmocka_unit_test(large_stream_goes_to_the_store),
		cmocka_unit_test(output_of_exactly_the_cap_is_no_overflow),
		cmocka_unit_test(overflow_stops_at_the_cap),
		cmocka_unit_test(truncated_output_is_no_failure),
		cmocka_unit_test(outputs_are_collected_when_nothing_else_is_left),
		cmocka_unit_test(outputs_that_cannot_be_kept_are_no_success),
		cmocka_unit_test(run_that_fails_hands_nothing_out),
		cmocka_unit_test(main_exits_while_a_descendant_lives_handle_closed),
		cmocka_unit_test(main_exits_while_a_descendant_lives_handle_held),
		cmocka_unit_test(wall_limit_ends_it),
		cmocka_unit_test(cancellation_terminates),
		cmocka_unit_test(cancellation_kills_after_the_grace),
		cmocka_unit_test(second_cancellation_kills_at_once),
		cmocka_unit_test(cancellation_before_prepare_launches_nothing),
		cmocka_unit_test(cancellation_at_the_gate_keeps_it_shut),
		cmocka_unit_test(failure_of_a_step_never_launches_and_cleans_up),
		cmocka_unit_test(failed_launch_is_not_tried_again),
		cmocka_unit_test(unenforceable_limit_is_named),
		cmocka_unit_test(failed_observation_is_no_verdict_on_the_guest),
		cmocka_unit_test(failed_drain_is_no_verdict_on_the_guest),
		cmocka_unit_test(failed_cleanup_quarantines_until_a_recovery),
		cmocka_unit_test(failed_verification_quarantines_until_a_recovery),
		cmocka_unit_test(failed_recovery_keeps_the_quarantine),
		cmocka_unit_test(lost_worker_is_recovered_as_interrupted),
		cmocka_unit_test(dead_keeper_is_recovered_from_every_step),
		cmocka_unit_test(only_the_complete_identity_is_touched),
	};
	if (fixture.set_up() != 0)
		return getenv("CAISSON_TEST_MUST_RUN") ? EXIT_FAILURE : SKIP_STATUS;
	int failed = cmocka_run_group_tests_name(fixture.profile, tests, NULL, NULL);
	fixture.tear_down();
	return failed;
}
