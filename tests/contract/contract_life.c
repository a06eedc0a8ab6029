/* contract_life.c - the life of a run on any boundary: order, ends, output, stops, and steps that fail. */
#include "suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { READY_ASKED_MS = 50 }; /* how often a guest is asked whether it is ready */

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

static void pinned_run_goes_its_way(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_EXIT_3, "{\"pin\":\"0\"}");
	drive(&stage);
	assert_verdict(&stage.run, VERDICT_FAILED, "exit_code");
	assert_receipt(&stage.run.result, "limits.pin", "\"0\"");
	assert_sealed_and_gone(&stage);
	end(&stage);
}

static void run_with_its_space_on_disk_goes_its_way_or_is_refused(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, STORY_EXIT_3, "{\"scratch\":\"disk\",\"work_bytes\":8388608}");
	drive(&stage);
	if (fixture.has_disk()) {
		assert_verdict(&stage.run, VERDICT_FAILED, "exit_code");
		assert_receipt(&stage.run.result, "limits.scratch", "\"disk\"");
	} else {
		assert_verdict(&stage.run, VERDICT_NOT_LAUNCHED, "limit_unenforceable");
		assert_non_null(strstr(stage.run.result.verdict.detail, "limit.work"));
	}
	assert_sealed_and_gone(&stage);
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

int run_life_tests(void)
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
		cmocka_unit_test(pinned_run_goes_its_way),
		cmocka_unit_test(run_with_its_space_on_disk_goes_its_way_or_is_refused),
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
	};
	return cmocka_run_group_tests_name("life", tests, NULL, NULL);
}
