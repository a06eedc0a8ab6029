/* contract_recovery.c - what is left behind on any boundary: quarantine, death of worker and keeper, recovery by identity. */
#include "suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

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

int run_recovery_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failed_cleanup_quarantines_until_a_recovery),
		cmocka_unit_test(failed_verification_quarantines_until_a_recovery),
		cmocka_unit_test(failed_recovery_keeps_the_quarantine),
		cmocka_unit_test(lost_worker_is_recovered_as_interrupted),
		cmocka_unit_test(dead_keeper_is_recovered_from_every_step),
		cmocka_unit_test(only_the_complete_identity_is_touched),
	};
	return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
