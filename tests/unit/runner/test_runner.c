/* test_runner.c - the conveyor: its transactions, its lease, its stops, and what it makes of a boundary or a ledger that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"
#include "stage.h"

enum { STEPS_MAX = 32 };

#define SCRIPT(...) \
	(struct recording_script) \
	{ \
		.events = (const struct recording_event[]){__VA_ARGS__}, \
		.event_count = sizeof((const struct recording_event[]){__VA_ARGS__}) / sizeof(struct recording_event) \
	}

/* --- transactions --- */

static void short_run_has_three_transactions(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{}");
	stage.script = SCRIPT({.at_ms = 50, .happening = RECORDING_EXIT});
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_SUCCEEDED, "");
	assert_int_equal(stage.ledger.calls[LEDGER_SHIM_APPEND], 0);
	assert_int_equal(stage.ledger.calls[LEDGER_SHIM_INTENT], 1);
	assert_int_equal(stage.ledger.calls[LEDGER_SHIM_SEAL], 1);
	assert_int_equal(stage.ledger.calls[LEDGER_SHIM_RENEW], 0);
	stage_close(&stage);
}

static void run_that_lasts_is_shown_as_running(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{}");
	stage.script = SCRIPT({.at_ms = 5000, .happening = RECORDING_EXIT});
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_SUCCEEDED, "");
	assert_int_equal(stage.ledger.calls[LEDGER_SHIM_APPEND], 1);
	assert_string_equal(stage.ledger.state, "running");
	stage_close(&stage);
}

static void attempt_that_is_not_queued_is_not_driven(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{}");
	scene_accept(&stage.run);
	snprintf(stage.run.attempt.state, sizeof(stage.run.attempt.state), "running");
	scene_drive(&stage.run);
	assert_int_equal(stage.run.rc, ERR_STATE);
	assert_string_equal(recording_world_trace(stage.world), "");
	stage_close(&stage);
}

/* --- the lease (R7) --- */

static void lease_is_renewed_at_a_third_of_its_time(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{\"wall_ms\":60000}");
	stage.run.ttl_ms = 3000;
	stage.script = SCRIPT({.at_ms = 5500, .happening = RECORDING_EXIT});
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_SUCCEEDED, "");
	assert_int_equal(stage.ledger.calls[LEDGER_SHIM_RENEW], 5);
	stage_close(&stage);
}

static void lost_lease_kills_and_ends_all_effects(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{\"wall_ms\":60000}");
	stage.ledger.fails_from[LEDGER_SHIM_RENEW] = 2;
	stage.ledger.code = ERR_FENCED;
	stage_drive(&stage);
	assert_int_equal(stage.run.rc, ERR_FENCED);
	assert_int_equal(stage.ledger.calls[LEDGER_SHIM_SEAL], 0);
	assert_false(stage_view(&stage).main_alive);
	assert_null(strstr(recording_world_trace(stage.world), "cleanup"));
	assert_non_null(strstr(recording_world_trace(stage.world), "kill ok"));
	stage_close(&stage);
}

static void ledger_that_fails_for_a_while_loses_no_lease(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{\"wall_ms\":60000}");
	stage.run.ttl_ms = 3000;
	stage.ledger.fails_from[LEDGER_SHIM_RENEW] = 1;
	stage.script = SCRIPT({.at_ms = 2500, .happening = RECORDING_EXIT});
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_SUCCEEDED, "");
	stage_close(&stage);
}

static void lease_that_ran_out_unrenewed_is_lost(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{\"wall_ms\":60000}");
	stage.run.ttl_ms = 3000;
	stage.ledger.fails_from[LEDGER_SHIM_RENEW] = 1;
	stage_drive(&stage);
	assert_int_equal(stage.run.rc, ERR_IO);
	assert_int_equal(stage.ledger.calls[LEDGER_SHIM_RENEW], 3);
	assert_false(stage_view(&stage).main_alive);
	stage_close(&stage);
}

static void take_time(void *context)
{
	(void)context;
	usleep(1000);
}

/* Each step takes longer than a third of the lease; from this renewal on somebody else has it. */
static int drive_slowly(int lost_from)
{
	struct stage stage;
	struct shim shim;
	stage_open(&stage, "{}");
	stage.run.ttl_ms = 1;
	stage.script = SCRIPT({.happening = RECORDING_EXIT});
	stage.ledger.fails_from[LEDGER_SHIM_RENEW] = lost_from;
	stage.ledger.code = ERR_FENCED;
	scene_accept(&stage.run);
	recording_world_script(stage.world, &stage.script);
	assert_int_equal(stage.provider.ops->open(stage.provider.context, &stage.run.boundary, NULL), 0);
	shim_init(&shim, stage.run.boundary);
	for (enum shim_slot slot = SHIM_PREPARE; slot < SHIM_SLOT_COUNT; slot++)
		shim.before[slot] = take_time;
	stage.run.boundary = &shim.base;
	scene_drive(&stage.run);
	int rc = stage.run.rc;
	assert_int_equal(stage.ledger.calls[LEDGER_SHIM_SEAL], rc == 0);
	stage_close(&stage);
	return rc;
}

/* As by one that was stopped before it. */
static void lost_lease_is_found_before_each_step(void **state)
{
	int steps = 0, rc;
	(void)state;
	do {
		rc = drive_slowly(++steps);
		assert_true(rc == 0 || rc == ERR_FENCED);
	} while (rc == ERR_FENCED && steps < STEPS_MAX);
	assert_int_equal(rc, 0);
	assert_true(steps > 7); /* create, enroll, launch, drain, cleanup, verification, seal; and while it is observed */
}

/* --- the fence --- */

static void fence_fails(int code, int rc, enum verdict_kind kind, const char *reason)
{
	struct stage stage;
	stage_open(&stage, "{}");
	stage.ledger.fails_from[LEDGER_SHIM_INTENT] = 1;
	stage.ledger.code = code;
	stage_drive(&stage);
	assert_int_equal(stage.run.rc, rc);
	if (rc == 0)
		stage_assert_verdict(&stage, kind, reason);
	assert_int_equal(stage_view(&stage).launches, 0);
	assert_int_equal(stage_view(&stage).exists, rc < 0);
	assert_false(stage_is_recorded(&stage, "launch_intent"));
	stage_close(&stage);
}

static void fence_that_fails_launches_nothing(void **state)
{
	(void)state;
	fence_fails(ERR_CONFLICT, 0, VERDICT_NOT_LAUNCHED, "conflict");
	fence_fails(ERR_NO_SPACE, 0, VERDICT_NOT_LAUNCHED, "no_space");
	fence_fails(ERR_FENCED, ERR_FENCED, VERDICT_COUNT, "");
}

static void cancel_from_elsewhere(struct ledger *inner, void *context)
{
	bool sealed;
	assert_int_equal(inner->ops->request_cancel(inner, ((struct scene_run *)context)->attempt.run_id, &sealed, NULL), 0);
}

static void cancellation_by_another_process_wins_at_the_fence(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{}");
	stage.ledger.before_intent = cancel_from_elsewhere;
	stage.ledger.context = &stage.run;
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_CANCELLED, "cancel_requested");
	assert_int_equal(stage_view(&stage).launches, 0);
	stage_close(&stage);
}

static void cancel_hook(void *context)
{
	struct stage *stage = context;
	cancel_from_elsewhere(stage->ledger.inner, &stage->run);
}

static void cancellation_by_another_process_is_heard_at_a_renewal(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{\"wall_ms\":60000}");
	stage.script = SCRIPT({.at_ms = 1000, .happening = RECORDING_CPU, .hook = cancel_hook, .context = &stage},
	                      {.at_ms = 50000, .happening = RECORDING_EXIT});
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_CANCELLED, "cancel_requested");
	stage_close(&stage);
}

static void cancellation_counts_until_the_seal(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{}");
	stage.script = SCRIPT({.happening = RECORDING_EXIT, .hook = cancel_hook, .context = &stage});
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_CANCELLED, "cancel_requested");
	stage_close(&stage);
}

static void cancellation_between_the_last_look_and_the_seal_counts(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{}");
	stage.script = SCRIPT({.happening = RECORDING_EXIT});
	stage.ledger.before_seal = cancel_from_elsewhere;
	stage.ledger.context = &stage.run;
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_CANCELLED, "cancel_requested");
	assert_int_equal(stage.ledger.calls[LEDGER_SHIM_SEAL], 2);
	stage_close(&stage);
}

static void cancellation_that_cannot_be_recorded_does_not_act(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{}");
	stage.run.stop = 1;
	stage.ledger.fails_from[LEDGER_SHIM_CANCEL] = 1;
	stage_drive(&stage);
	assert_int_equal(stage.run.rc, ERR_IO);
	assert_int_equal(stage.ledger.calls[LEDGER_SHIM_SEAL], 0);
	stage_close(&stage);
}

/* --- stops --- */

static void stopped_by(struct recording_script script, const char *limits, enum verdict_kind kind, const char *reason)
{
	struct stage stage;
	stage_open(&stage, limits);
	stage.script = script;
	stage_drive(&stage);
	stage_assert_verdict(&stage, kind, reason);
	stage_close(&stage);
}

static void each_limit_has_its_verdict(void **state)
{
	(void)state;
	stopped_by((struct recording_script){.event_count = 0}, "{\"wall_ms\":500}", VERDICT_TIMED_OUT, "wall_limit");
	stopped_by(SCRIPT({.at_ms = 10, .happening = RECORDING_CPU, .bytes = 300000000}), "{\"cpu_ms\":300}", VERDICT_TIMED_OUT,
	           "cpu_limit");
	stopped_by(SCRIPT({.at_ms = 10, .happening = RECORDING_OOM}), "{}", VERDICT_LIMIT_EXCEEDED, "memory_limit");
	stopped_by(SCRIPT({.at_ms = 10, .happening = RECORDING_OUTPUT, .stream = 2, .text = "x", .bytes = 11}),
	           "{\"stderr_bytes\":10}", VERDICT_LIMIT_EXCEEDED, "output_limit");
}

static void cpu_time_of_the_receipt_is_rounded_and_not_cut(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{\"cpu_ms\":100}");
	stage.script = SCRIPT({.at_ms = 10, .happening = RECORDING_CPU, .bytes = 99700000}, {.at_ms = 20, .happening = RECORDING_EXIT});
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_SUCCEEDED, "");
	char *user = scene_receipt_get(&stage.run.result, "usage.cpu_user_ms");
	char *system = scene_receipt_get(&stage.run.result, "usage.cpu_system_ms");
	assert_string_equal(user, "100");
	assert_string_equal(system, "0");
	free(user);
	free(system);
	stage_close(&stage);
}

static void grace_of_a_limit_is_given_before_the_kill(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{\"wall_ms\":500,\"on_limit_grace_ms\":200}");
	stage.script.ignores_term = true;
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_TIMED_OUT, "wall_limit");
	assert_true(stage_is_recorded(&stage, "grace_over"));
	char *wall = scene_receipt_get(&stage.run.result, "usage.wall_ms");
	assert_string_equal(wall, "700");
	free(wall);
	stage_close(&stage);
}

static void guest_that_obeys_in_its_grace_is_not_killed(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{\"wall_ms\":500,\"on_limit_grace_ms\":200}");
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_TIMED_OUT, "wall_limit");
	assert_false(stage_is_recorded(&stage, "grace_over"));
	assert_null(strstr(recording_world_trace(stage.world), "kill"));
	stage_close(&stage);
}

static void own_exit_137_is_no_limit(void **state)
{
	(void)state;
	stopped_by(SCRIPT({.happening = RECORDING_EXIT, .status = 137}), "{}", VERDICT_FAILED, "exit_code");
	stopped_by(SCRIPT({.happening = RECORDING_EXIT, .status = 124}), "{}", VERDICT_FAILED, "exit_code");
}

static void retained_handle_can_be_ignored(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{}");
	stage.run.plan->retained_output = RETAINED_IGNORE;
	stage.script = SCRIPT({.happening = RECORDING_FORK, .holds_stderr = true}, {.happening = RECORDING_EXIT});
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_SUCCEEDED, "");
	char *retained = scene_receipt_get(&stage.run.result, "stderr.retained");
	assert_string_equal(retained, "true");
	free(retained);
	stage_close(&stage);
}

/* --- a boundary that fails --- */

static void boundary_that_fails_is_no_verdict_on_the_guest(void **state)
{
	(void)state;
	stopped_by(SCRIPT({.happening = RECORDING_SPOOL_FULL}), "{}", VERDICT_BOUNDARY_ERROR, "no_space");
	stopped_by(SCRIPT({.happening = RECORDING_INIT_LOST}), "{}", VERDICT_BOUNDARY_ERROR, "init_lost");
}

static void lost_worker_leaves_a_provisional_interruption(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{}");
	stage.script = SCRIPT({.happening = RECORDING_WORKER_LOST});
	stage_drive(&stage);
	assert_true(stage.run.result.provisional);
	stage_assert_verdict(&stage, VERDICT_INTERRUPTED, "worker_lost");
	assert_true(stage_is_recorded(&stage, "provisional_result"));
	assert_string_equal(stage.ledger.state, "quarantined");
	stage_close(&stage);
}

static void main_that_does_not_die_is_given_up_and_quarantined(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{\"wall_ms\":500}");
	stage.script.unkillable = true;
	stage_drive(&stage);
	assert_true(stage.run.result.provisional);
	stage_assert_verdict(&stage, VERDICT_BOUNDARY_ERROR, "no_exit_after_kill");
	assert_true(stage_view(&stage).quarantined);
	stage_close(&stage);
}

static void unverified_requirement_is_named(void **state)
{
	struct stage stage;
	char requirement[] = "landlock>=1", *require[] = {requirement, NULL};
	(void)state;
	stage_open(&stage, "{}");
	char **old = stage.run.plan->require;
	stage.run.plan->require = require;
	stage.run.plan->require_count = 1;
	stage_drive(&stage);
	stage.run.plan->require = old;
	stage.run.plan->require_count = 0;
	stage_assert_verdict(&stage, VERDICT_NOT_LAUNCHED, "unverified");
	assert_non_null(strstr(stage.run.result.verdict.detail, "landlock>=1"));
	stage_close(&stage);
}

/* --- a ledger or a store that fails --- */

static void seal_that_fails_is_an_error_and_nothing_is_sealed(void **state)
{
	struct stage stage;
	struct ledger_attempt row;
	(void)state;
	stage_open(&stage, "{}");
	stage.script = SCRIPT({.happening = RECORDING_EXIT});
	stage.ledger.fails_from[LEDGER_SHIM_SEAL] = 1;
	stage.ledger.code = ERR_NO_SPACE;
	stage_drive(&stage);
	assert_int_equal(stage.run.rc, ERR_NO_SPACE);
	assert_true(scene_find(&stage.scene, stage.run.attempt.attempt_id, &row));
	assert_true(row.intent);
	stage_close(&stage);
}

static void make_store_useless(void *context)
{
	struct stage *stage = context;
	assert_int_equal(unlinkat(store_dir_fd(stage->scene.store), "objects", AT_REMOVEDIR), 0);
}

static void output_that_cannot_be_stored_is_no_success(void **state)
{
	struct stage stage;
	(void)state;
	stage_open(&stage, "{}");
	stage.script = SCRIPT({.happening = RECORDING_OUTPUT, .stream = 1, .text = "x", .bytes = LEDGER_STREAM_ROW_MAX + 1,
	                       .hook = make_store_useless, .context = &stage},
	                      {.happening = RECORDING_EXIT});
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_BOUNDARY_ERROR, "output_not_kept");
	scene_assert_stream(&stage.run, "stdout", "", 0);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_run_has_three_transactions),
		cmocka_unit_test(run_that_lasts_is_shown_as_running),
		cmocka_unit_test(attempt_that_is_not_queued_is_not_driven),
		cmocka_unit_test(lease_is_renewed_at_a_third_of_its_time),
		cmocka_unit_test(lost_lease_kills_and_ends_all_effects),
		cmocka_unit_test(ledger_that_fails_for_a_while_loses_no_lease),
		cmocka_unit_test(lease_that_ran_out_unrenewed_is_lost),
		cmocka_unit_test(lost_lease_is_found_before_each_step),
		cmocka_unit_test(fence_that_fails_launches_nothing),
		cmocka_unit_test(cancellation_by_another_process_wins_at_the_fence),
		cmocka_unit_test(cancellation_by_another_process_is_heard_at_a_renewal),
		cmocka_unit_test(cancellation_counts_until_the_seal),
		cmocka_unit_test(cancellation_between_the_last_look_and_the_seal_counts),
		cmocka_unit_test(cancellation_that_cannot_be_recorded_does_not_act),
		cmocka_unit_test(each_limit_has_its_verdict),
		cmocka_unit_test(cpu_time_of_the_receipt_is_rounded_and_not_cut),
		cmocka_unit_test(grace_of_a_limit_is_given_before_the_kill),
		cmocka_unit_test(guest_that_obeys_in_its_grace_is_not_killed),
		cmocka_unit_test(own_exit_137_is_no_limit),
		cmocka_unit_test(retained_handle_can_be_ignored),
		cmocka_unit_test(boundary_that_fails_is_no_verdict_on_the_guest),
		cmocka_unit_test(lost_worker_leaves_a_provisional_interruption),
		cmocka_unit_test(main_that_does_not_die_is_given_up_and_quarantined),
		cmocka_unit_test(unverified_requirement_is_named),
		cmocka_unit_test(seal_that_fails_is_an_error_and_nothing_is_sealed),
		cmocka_unit_test(output_that_cannot_be_stored_is_no_success),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
