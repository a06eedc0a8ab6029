/* test_recover.c - from whatever a dead keeper wrote down, an attempt comes to its one seal, or stays quarantined. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"

#define SCRIPT(...) \
	(struct recording_script) \
	{ \
		.events = (const struct recording_event[]){__VA_ARGS__}, \
		.event_count = sizeof((const struct recording_event[]){__VA_ARGS__}) / sizeof(struct recording_event) \
	}

static int recover_as(struct stage *stage, struct runner_result *ret, struct err *err)
{
	return scene_recover(&stage->scene, &stage->provider, stage->run.attempt.attempt_id, ret, err);
}

static void next_keeper(struct stage *stage)
{
	stage->scene.ledger = stage->ledger.inner;
	scene_new_owner(&stage->scene);
	ledger_shim_init(&stage->ledger, stage->scene.ledger);
	stage->scene.ledger = &stage->ledger.base;
}

static void recover(struct stage *stage, struct runner_result *ret)
{
	struct err err = ERR_INIT;
	next_keeper(stage);
	if (recover_as(stage, ret, &err) < 0)
		fail_msg("recover: %s", err.text);
}

/* What the dead keeper committed after the accept. */
static void wrote(struct stage *stage, const char *state, const char *kind, const char *body)
{
	const struct ledger_attempt *attempt = &stage->run.attempt;
	struct ledger *ledger = stage->ledger.inner;
	struct ledger_record record = {.at_ms = 1000, .body = body};
	struct err err = ERR_INIT;
	snprintf(record.kind, sizeof(record.kind), "%s", kind);
	int rc = strcmp(kind, "launch_intent") != 0
	                 ? ledger->ops->append(ledger, attempt->attempt_id, attempt->owner_id, 1, state, &record, 1, false, &err)
	                 : ledger->ops->commit_launch_intent(ledger, attempt->attempt_id, attempt->owner_id, 1, &record, 1, &err);
	if (rc < 0)
		fail_msg("%s: %s", kind, err.text);
}

static void begin(struct stage *stage)
{
	stage_open(stage, "{}");
	scene_accept(&stage->run);
}

static void assert_outcome(const struct runner_result *result, enum verdict_kind kind, const char *reason)
{
	assert_false(result->provisional);
	if (result->verdict.kind != kind || strcmp(result->verdict.reason, reason) != 0)
		fail_msg("%s/%s (%s) instead of %s/%s", verdict_name(result->verdict.kind), result->verdict.reason,
		         result->verdict.detail, verdict_name(kind), reason);
}

static void assert_receipt(const struct runner_result *result, const char *path, const char *json)
{
	char *value = scene_receipt_get(result, path);
	assert_string_equal(value, json);
	free(value);
}

static void without_an_intent_it_is_not_launched(void **state)
{
	struct stage stage;
	struct runner_result result;
	(void)state;
	begin(&stage);
	recover(&stage, &result);
	assert_outcome(&result, VERDICT_NOT_LAUNCHED, "keeper_lost");
	assert_receipt(&result, "stdout.bytes", "0");
	assert_receipt(&result, "owner", "\"uid:0\"");
	assert_receipt(&result, "lease_generations", "2");
	assert_true(stage_is_recorded(&stage, "recovery_started"));
	free(result.receipt);
	stage_close(&stage);
}

static void with_an_intent_it_is_interrupted(void **state)
{
	struct stage stage;
	struct runner_result result;
	(void)state;
	begin(&stage);
	wrote(&stage, NULL, "launch_intent", "{}");
	recover(&stage, &result);
	assert_outcome(&result, VERDICT_INTERRUPTED, "keeper_lost");
	assert_receipt(&result, "exit_code", "null");
	assert_receipt(&result, "usage.wall_ms", "null");
	assert_receipt(&result, "usage.oom_kills", "null");
	assert_receipt(&result, "stdout.bytes", "null");
	assert_receipt(&result, "stdout.sha256", "null");
	free(result.receipt);
	stage_close(&stage);
}

static void exit_code_that_was_not_sealed_is_not_invented(void **state)
{
	struct stage stage;
	struct runner_result result;
	(void)state;
	begin(&stage);
	wrote(&stage, NULL, "launch_intent", "{}");
	wrote(&stage, "running", "launched", "{\"at_ns\":5000000}");
	recover(&stage, &result);
	assert_outcome(&result, VERDICT_INTERRUPTED, "keeper_lost");
	assert_receipt(&result, "times.launched_at", "\"1970-01-01T00:00:01.000Z\"");
	assert_receipt(&result, "exit_code", "null");
	free(result.receipt);
	stage_close(&stage);
}

static void recorded_cancellation_is_kept(void **state)
{
	struct stage stage;
	struct runner_result result;
	bool sealed;
	(void)state;
	for (int intent = 0; intent <= 1; intent++) {
		begin(&stage);
		if (intent)
			wrote(&stage, NULL, "launch_intent", "{}");
		assert_int_equal(
			stage.ledger.inner->ops->request_cancel(stage.ledger.inner, stage.run.attempt.run_id, &sealed, NULL), 0);
		recover(&stage, &result);
		assert_outcome(&result, VERDICT_CANCELLED, "cancel_requested");
		free(result.receipt);
		stage_close(&stage);
	}
}

static void evidence_and_stop_cause_are_read_back(void **state)
{
	struct stage stage;
	struct runner_result result;
	(void)state;
	begin(&stage);
	wrote(&stage, NULL, "enrolled",
	      "{\"evidence\":[{\"detail\":\"mode 2\",\"grade\":\"attested\",\"name\":\"seccomp.mode\"}]}");
	wrote(&stage, NULL, "launch_intent", "{}");
	wrote(&stage, NULL, "launched", "{\"at_ns\":1000000}");
	wrote(&stage, "running", "limit", "{\"at_ns\":501000000,\"cause\":\"wall\"}");
	recover(&stage, &result);
	assert_outcome(&result, VERDICT_TIMED_OUT, "wall_limit");
	assert_receipt(&result, "boundary.evidence",
	               "[{\"detail\": \"mode 2\", \"grade\": \"attested\", \"name\": \"seccomp.mode\"}]");
	assert_receipt(&result, "boundary.layers", "[\"seccomp\"]");
	free(result.receipt);
	stage_close(&stage);
}

static void records_that_make_no_sense_keep_nobody_from_cleaning_up(void **state)
{
	struct stage stage;
	struct runner_result result;
	(void)state;
	begin(&stage);
	wrote(&stage, NULL, "enrolled", "{\"evidence\":7}");
	wrote(&stage, NULL, "limit", "{\"cause\":[]}");
	wrote(&stage, NULL, "step_failed", "{\"step\":\"dancing\"}");
	wrote(&stage, "preparing", "nonsense", "{}");
	recover(&stage, &result);
	assert_outcome(&result, VERDICT_NOT_LAUNCHED, "keeper_lost");
	free(result.receipt);
	stage_close(&stage);
}

static void living_owner_is_left_alone(void **state)
{
	struct stage stage;
	struct runner_result result;
	struct runner_recovery recovery;
	char stranger[ID_SIZE];
	(void)state;
	begin(&stage);
	id_new("own", stranger);
	recovery = (struct runner_recovery){.ledger = stage.scene.ledger, .key = stage.scene.key, .provider = &stage.provider,
	                                    .owner_id = stranger, .attempt = stage.run.attempt, .cleanup_ms = 1000};
	assert_int_equal(runner_recover(&recovery, &result, NULL), ERR_BUSY);
	assert_string_equal(recording_world_trace(stage.world), "");
	stage_close(&stage);
}

static void own_attempt_is_recovered_without_taking_over(void **state)
{
	struct stage stage;
	struct runner_result result;
	struct err err = ERR_INIT;
	(void)state;
	stage_open(&stage, "{}");
	stage.script = SCRIPT({.happening = RECORDING_WORKER_LOST});
	stage_drive(&stage);
	assert_true(stage.run.result.provisional);
	assert_int_equal(recover_as(&stage, &result, &err), 0);
	assert_int_equal(stage.ledger.calls[LEDGER_SHIM_TAKE_OVER], 0);
	assert_outcome(&result, VERDICT_INTERRUPTED, "worker_lost");
	assert_receipt(&result, "lease_generations", "1");
	assert_false(stage_view(&stage).exists);
	free(result.receipt);
	stage_close(&stage);
}

static void recovery_that_dies_is_done_again(void **state)
{
	struct stage stage;
	struct runner_result result;
	struct err err = ERR_INIT;
	(void)state;
	stage_open(&stage, "{}");
	stage.script = SCRIPT({.happening = RECORDING_EXIT});
	stage.script.cleanup_failures = 1;
	stage_drive(&stage);
	assert_true(stage.run.result.provisional);
	next_keeper(&stage);
	stage.ledger.fails_from[LEDGER_SHIM_SEAL] = 1; /* as if it had died before the seal */
	assert_int_equal(recover_as(&stage, &result, &err), ERR_IO);
	recover(&stage, &result);
	assert_outcome(&result, VERDICT_BOUNDARY_ERROR, "not_verified_empty");
	assert_receipt(&result, "lease_generations", "3");
	free(result.receipt);
	stage_close(&stage);
}

static void foreign_boundary_is_left_and_quarantined(void **state)
{
	struct stage stage, other;
	struct runner_result result;
	struct err err = ERR_INIT;
	(void)state;
	stage_open(&other, "{}");
	other.script = SCRIPT({.happening = RECORDING_EXIT});
	other.script.cleanup_failures = 1;
	stage_drive(&other);
	stage_open(&stage, "{}");
	scene_accept(&stage.run);
	struct ledger_attempt forged = stage.run.attempt;
	memcpy(forged.boundary_id, other.run.attempt.boundary_id, ID_SIZE);
	struct runner_recovery recovery = {.ledger = stage.scene.ledger, .key = stage.scene.key, .provider = &other.provider,
	                                   .owner_id = forged.owner_id, .attempt = forged, .cleanup_ms = 1000};
	assert_int_equal(runner_recover(&recovery, &result, &err), 0);
	assert_true(result.provisional);
	assert_true(stage_view(&other).exists);
	assert_true(stage_is_recorded(&stage, "cleanup_failed"));
	stage_close(&stage);
	stage_close(&other);
}

static void begin_detached(struct stage *stage)
{
	stage_open(stage, "{}");
	stage->run.detached = true;
	scene_accept(&stage->run);
}

static struct ledger_run_state run_state(struct stage *stage)
{
	struct ledger *ledger = stage->ledger.inner;
	struct ledger_run_state state;
	assert_int_equal(ledger->ops->run_state(ledger, stage->run.attempt.run_id, &state, NULL), 0);
	return state;
}

/* The next attempt of the run, by the owner of now. */
static void claim(struct stage *stage)
{
	struct ledger *ledger = stage->ledger.inner;
	struct ledger_attempt *attempt = &stage->run.attempt;
	const struct ledger_record record = {.at_ms = 1, .kind = "accepted", .body = "{\"principal\":\"uid:0\"}"};
	struct err err = ERR_INIT;
	id_new("att", attempt->attempt_id);
	id_new("bnd", attempt->boundary_id);
	memcpy(attempt->owner_id, stage->scene.owner.owner_id, ID_SIZE);
	if (ledger->ops->claim(ledger, attempt, &record, 1, &err) < 0)
		fail_msg("claim: %s", err.text);
}

static void detached_run_without_an_intent_is_queued_again_and_the_third_attempt_sealed(void **state)
{
	struct stage stage;
	struct runner_result result;
	(void)state;
	begin_detached(&stage);
	for (int i = 1; i < LEDGER_ATTEMPTS_MAX; i++) {
		wrote(&stage, "preparing", "prepared", "{}");
		recover(&stage, &result);
		assert_true(result.requeued);
		assert_false(result.provisional);
		assert_null(result.receipt);
		assert_true(stage_is_recorded(&stage, "abandoned"));
		assert_int_equal(run_state(&stage).attempts, i);
		assert_string_equal(run_state(&stage).latest.state, "abandoned");
		claim(&stage);
	}
	recover(&stage, &result);
	assert_false(result.requeued);
	assert_outcome(&result, VERDICT_NOT_LAUNCHED, "keeper_lost");
	assert_true(run_state(&stage).sealed);
	free(result.receipt);
	stage_close(&stage);
}

static void detached_run_with_an_intent_or_a_reason_to_end_is_sealed(void **state)
{
	static const struct {
		const char *kind, *body;
		enum verdict_kind verdict;
		const char *reason;
	} cases[] = {
		{"launch_intent", "{}", VERDICT_INTERRUPTED, "keeper_lost"},
		{"step_failed", "{\"step\":\"enroll\",\"reason\":\"unverified\"}", VERDICT_NOT_LAUNCHED, "unverified"},
		{"cancel", "{\"cause\":\"cancel\"}", VERDICT_CANCELLED, "cancel_requested"},
	};
	struct stage stage;
	struct runner_result result;
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin_detached(&stage);
		wrote(&stage, NULL, cases[i].kind, cases[i].body);
		recover(&stage, &result);
		assert_false(result.requeued);
		assert_outcome(&result, cases[i].verdict, cases[i].reason);
		free(result.receipt);
		stage_close(&stage);
	}
}

static void detached_run_that_is_cancelled_is_sealed_as_that(void **state)
{
	struct stage stage;
	struct runner_result result;
	bool sealed;
	(void)state;
	begin_detached(&stage);
	assert_int_equal(stage.ledger.inner->ops->request_cancel(stage.ledger.inner, stage.run.attempt.run_id, &sealed, NULL), 0);
	recover(&stage, &result);
	assert_outcome(&result, VERDICT_CANCELLED, "cancel_requested");
	free(result.receipt);
	stage_close(&stage);
}

static void recovery_that_dies_before_it_queues_again_is_done_again(void **state)
{
	struct stage stage;
	struct runner_result result;
	struct err err = ERR_INIT;
	(void)state;
	begin_detached(&stage);
	next_keeper(&stage);
	stage.ledger.fails_from[LEDGER_SHIM_ABANDON] = 1;
	assert_int_equal(recover_as(&stage, &result, &err), ERR_IO);
	assert_string_equal(run_state(&stage).latest.state, "recovering");
	recover(&stage, &result);
	assert_true(result.requeued);
	assert_string_equal(run_state(&stage).latest.state, "abandoned");
	stage_close(&stage);
}

static void boundary_that_is_not_empty_is_not_queued_again(void **state)
{
	struct stage stage, other;
	struct runner_result result;
	struct err err = ERR_INIT;
	(void)state;
	stage_open(&other, "{}");
	other.script = SCRIPT({.happening = RECORDING_EXIT});
	other.script.cleanup_failures = 1;
	stage_drive(&other);
	begin_detached(&stage);
	struct ledger_attempt forged = stage.run.attempt;
	memcpy(forged.boundary_id, other.run.attempt.boundary_id, ID_SIZE); /* somebody else's: it is left alone */
	struct runner_recovery recovery = {.ledger = stage.scene.ledger, .key = stage.scene.key, .provider = &other.provider,
	                                   .owner_id = forged.owner_id, .attempt = forged, .cleanup_ms = 1000};
	assert_int_equal(runner_recover(&recovery, &result, &err), 0);
	assert_true(result.provisional);
	assert_false(result.requeued);
	assert_string_equal(run_state(&stage).latest.state, "quarantined");
	recover(&stage, &result);
	assert_true(result.requeued);
	stage_close(&stage);
	stage_close(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_an_intent_it_is_not_launched),
		cmocka_unit_test(with_an_intent_it_is_interrupted),
		cmocka_unit_test(exit_code_that_was_not_sealed_is_not_invented),
		cmocka_unit_test(recorded_cancellation_is_kept),
		cmocka_unit_test(evidence_and_stop_cause_are_read_back),
		cmocka_unit_test(records_that_make_no_sense_keep_nobody_from_cleaning_up),
		cmocka_unit_test(living_owner_is_left_alone),
		cmocka_unit_test(own_attempt_is_recovered_without_taking_over),
		cmocka_unit_test(recovery_that_dies_is_done_again),
		cmocka_unit_test(foreign_boundary_is_left_and_quarantined),
		cmocka_unit_test(detached_run_without_an_intent_is_queued_again_and_the_third_attempt_sealed),
		cmocka_unit_test(detached_run_with_an_intent_or_a_reason_to_end_is_sealed),
		cmocka_unit_test(detached_run_that_is_cancelled_is_sealed_as_that),
		cmocka_unit_test(recovery_that_dies_before_it_queues_again_is_done_again),
		cmocka_unit_test(boundary_that_is_not_empty_is_not_queued_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
