/* test_oneshot.c - the keeper of one run, over a real ledger and real workers: every way to end, and what is left of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/capture.h"
#include "support.h"

struct scene {
	char path[64];
	struct fake *fake;
	struct keeper *keeper;
	struct worker *worker;
	struct manifest *manifest;
	struct plan *plan;
	struct provider_factory factory;
	volatile sig_atomic_t signals;
	struct keeper_result result;
	int launches;
	bool saw_captures;
};

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct err err = ERR_INIT;
	scene->fake = fake_new();
	scene->factory = fake_factory(scene->fake);
	scene->plan = plan_for("recording", 1000, &scene->manifest);
	ledger_place_new(scene->path);
	*state = scene;
	if (worker_spawn("recording", &scene->factory, &scene->worker, &err) < 0)
		return -1;
	scene->keeper = keeper_at(scene->path);
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;
	keeper_result_done(&scene->result);
	worker_free(scene->worker);
	keeper_free(scene->keeper);
	plan_free(scene->plan);
	manifest_free(scene->manifest);
	ledger_place_remove(scene->path);
	fake_free(scene->fake);
	free(scene);
	return 0;
}

static void launched(void *context, struct capture *standard_output, struct capture *standard_error)
{
	struct scene *scene = context;
	scene->launches++;
	scene->saw_captures = standard_output && standard_error;
}

static struct keeper_once once_of(struct scene *scene)
{
	return (struct keeper_once){
		.keeper = scene->keeper,
		.worker = scene->worker,
		.factory = &scene->factory,
		.manifest = scene->manifest,
		.plan = scene->plan,
		.signals = &scene->signals,
		.launched = launched,
		.context = scene,
	};
}

static int count(void *context, const struct ledger_attempt *attempt)
{
	(void)attempt;
	++*(int *)context;
	return 0;
}

static int count_row(void *context, const struct ledger_list_row *row)
{
	(void)row;
	++*(int *)context;
	return 0;
}

static void ledger_has(struct scene *scene, int runs, int unsealed)
{
	int found_runs = 0, found_unsealed = 0;
	struct err err = ERR_INIT;
	struct ledger *ledger = scene->keeper->ledger;
	const struct ledger_list_query query = {.limit = 100};
	assert_int_equal(ledger->ops->list(ledger, &query, count_row, &found_runs, &err), 0);
	assert_int_equal(ledger->ops->unsealed(ledger, count, &found_unsealed, &err), 0);
	assert_int_equal(found_runs, runs);
	assert_int_equal(found_unsealed, unsealed);
}

static void ends_sealed(struct scene *scene, enum verdict_kind kind, const char *reason)
{
	const struct keeper_once once = once_of(scene);
	struct err err = ERR_INIT;
	int result = keeper_run_once(&once, &scene->result, &err);
	if (result < 0)
		print_message("%s\n", err.text);
	assert_int_equal(result, 0);
	assert_false(scene->result.run.provisional);
	assert_non_null(scene->result.run.receipt);
	assert_string_equal(verdict_name(scene->result.run.verdict.kind), verdict_name(kind));
	assert_string_equal(scene->result.run.verdict.reason, reason);
	assert_non_null(strstr(scene->result.run.receipt, scene->result.run_id));
	ledger_has(scene, 1, 0);
}

/* The watched boundary says of every main: exit code 7, 13 bytes of output, a handle retained. */
static void a_run_is_driven_to_its_seal(void **state)
{
	struct scene *scene = *state;
	struct capture_state captured;
	ends_sealed(scene, VERDICT_FAILED, "exit_code");
	assert_int_equal(scene->result.run.verdict.exit_code, 7);
	assert_int_equal(scene->launches, 1);
	assert_true(scene->saw_captures);
	capture_get_state(scene->result.standard_output, &captured);
	assert_int_equal(captured.kept_bytes, 13);
}

static void the_worker_goes_when_its_run_is_over(void **state)
{
	struct scene *scene = *state;
	ends_sealed(scene, VERDICT_FAILED, "exit_code");
	assert_int_equal(await_end(scene->worker->pidfd), CLD_EXITED * 1000);
	scene->worker->reaped = true;
}

static void a_refused_plan_is_sealed_without_a_worker(void **state)
{
	struct scene *scene = *state;
	struct keeper_once once = once_of(scene);
	struct err err = ERR_INIT;
	once.worker = NULL;
	once.plan = NULL;
	once.plan_reason = "limit_unenforceable";
	once.plan_refusal = "limits.open_files: this host gives at most 4096";
	assert_int_equal(keeper_run_once(&once, &scene->result, &err), 0);
	assert_int_equal(scene->result.run.verdict.kind, VERDICT_REFUSED);
	assert_string_equal(scene->result.run.verdict.reason, "limit_unenforceable");
	assert_non_null(strstr(scene->result.run.receipt, "limits.open_files"));
	assert_null(scene->result.standard_output);
	ledger_has(scene, 1, 0);
}

static void a_profile_that_policy_does_not_know_is_refused(void **state)
{
	struct scene *scene = *state;
	plan_free(scene->plan);
	manifest_free(scene->manifest);
	scene->plan = plan_for("jobobject", 1000, &scene->manifest);
	ends_sealed(scene, VERDICT_REFUSED, "policy_profile");
	assert_int_equal(scene->launches, 0);
	assert_null(strstr(scene->fake->log, "prepare"));
}

static void a_worker_that_cannot_open_leaves_nothing_in_the_ledger(void **state)
{
	struct scene *scene = *state;
	struct err err = ERR_INIT;
	worker_free(scene->worker);
	snprintf(scene->fake->fail, sizeof(scene->fake->fail), "%s", "open");
	assert_int_equal(worker_spawn("recording", &scene->factory, &scene->worker, &err), 0);
	const struct keeper_once once = once_of(scene);
	assert_int_equal(keeper_run_once(&once, &scene->result, &err), ERR_UNVERIFIED);
	ledger_has(scene, 0, 0);
}

static void a_signal_before_launch_cancels(void **state)
{
	struct scene *scene = *state;
	scene->signals = 1;
	ends_sealed(scene, VERDICT_CANCELLED, "cancel_requested");
	assert_int_equal(scene->launches, 0);
	assert_null(strstr(scene->fake->log, "launch"));
}

static void a_step_that_fails_is_not_launched(void **state)
{
	struct scene *scene = *state;
	snprintf(scene->fake->fail, sizeof(scene->fake->fail), "%s", "enroll");
	ends_sealed(scene, VERDICT_NOT_LAUNCHED, "unverified");
	assert_int_equal(scene->launches, 0);
	assert_non_null(strstr(scene->fake->log, "enroll cleanup verify"));
}

static void a_failed_cleanup_is_provisional(void **state)
{
	struct scene *scene = *state;
	struct err err = ERR_INIT;
	const struct keeper_once once = once_of(scene);
	snprintf(scene->fake->fail, sizeof(scene->fake->fail), "%s", "cleanup");
	assert_int_equal(keeper_run_once(&once, &scene->result, &err), 0);
	assert_true(scene->result.run.provisional);
	assert_null(scene->result.run.receipt);
	assert_null(strstr(scene->fake->log, "recover")); /* its worker lives: that is for an independent recovery */
	ledger_has(scene, 1, 1);
}

static void dies_in(struct scene *scene, const char *call, enum verdict_kind kind)
{
	const struct keeper_once once = once_of(scene);
	struct err err = ERR_INIT;
	snprintf(scene->fake->die, sizeof(scene->fake->die), "%s", call);
	assert_int_equal(keeper_run_once(&once, &scene->result, &err), 0);
	assert_false(scene->result.run.provisional);
	if (scene->result.run.verdict.kind != kind)
		print_message("%s: %s / %s\n", call, verdict_name(scene->result.run.verdict.kind), scene->result.run.verdict.reason);
	assert_int_equal(scene->result.run.verdict.kind, kind);
	assert_non_null(scene->result.run.receipt);
	assert_non_null(strstr(scene->fake->log, "recover:bnd-"));
	ledger_has(scene, 1, 0);
}

static void a_worker_that_dies_preparing_was_not_launched(void **state)
{
	dies_in(*state, "prepare", VERDICT_NOT_LAUNCHED);
}

static void a_worker_that_dies_suspended_was_not_launched(void **state)
{
	dies_in(*state, "create", VERDICT_NOT_LAUNCHED);
}

static void a_worker_that_dies_enrolling_was_not_launched(void **state)
{
	dies_in(*state, "enroll", VERDICT_NOT_LAUNCHED);
}

static void a_worker_that_dies_at_the_gate_is_an_interruption(void **state)
{
	dies_in(*state, "launch", VERDICT_INTERRUPTED);
}

static void a_worker_that_dies_observing_is_an_interruption(void **state)
{
	struct scene *scene = *state;
	dies_in(scene, "observe", VERDICT_INTERRUPTED);
	assert_int_equal(scene->launches, 1);
	assert_true(scene->saw_captures);
}

static void without_a_factory_a_dead_worker_is_the_next_recoverys(void **state)
{
	struct scene *scene = *state;
	struct keeper_once once = once_of(scene);
	struct err err = ERR_INIT;
	once.factory = NULL;
	snprintf(scene->fake->die, sizeof(scene->fake->die), "%s", "observe");
	assert_int_equal(keeper_run_once(&once, &scene->result, &err), 0);
	assert_true(scene->result.run.provisional);
	ledger_has(scene, 1, 1);
}

/* A ledger that is full from one call on. */
static struct ledger_ops full_ops;

static int full_accept(struct ledger *ledger, const struct ledger_run *run, struct ledger_attempt *attempt,
                       const struct ledger_record *records, size_t count_of_records, bool durable, struct err *err)
{
	(void)ledger, (void)run, (void)attempt, (void)records, (void)count_of_records, (void)durable;
	return err_set(err, ERR_NO_SPACE, "the disk is full");
}

static int full_seal(struct ledger *ledger, const struct ledger_seal *seal, struct err *err)
{
	(void)ledger, (void)seal;
	return err_set(err, ERR_NO_SPACE, "the disk is full");
}

static int full_cancel(struct ledger *ledger, const char *run_id, bool *ret_sealed, struct err *err)
{
	(void)ledger, (void)run_id, (void)ret_sealed;
	return err_set(err, ERR_NO_SPACE, "the disk is full");
}

static int fenced_intent(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation,
                         const struct ledger_record *records, size_t count_of_records, struct err *err)
{
	(void)ledger, (void)attempt_id, (void)owner_id, (void)generation, (void)records, (void)count_of_records;
	return err_set(err, ERR_FENCED, "the lease is lost");
}

static void fails_for_want_of_space(struct scene *scene)
{
	const struct ledger_ops *whole = scene->keeper->ledger->ops;
	const struct keeper_once once = once_of(scene);
	struct err err = ERR_INIT;
	scene->keeper->ledger->ops = &full_ops;
	assert_int_equal(keeper_run_once(&once, &scene->result, &err), ERR_NO_SPACE);
	assert_non_null(strstr(err.text, "the disk is full"));
	scene->keeper->ledger->ops = whole;
	assert_null(scene->result.run.receipt);
}

static void a_full_disk_before_the_start_leaves_nothing(void **state)
{
	struct scene *scene = *state;
	full_ops = *scene->keeper->ledger->ops;
	full_ops.accept = full_accept;
	fails_for_want_of_space(scene);
	ledger_has(scene, 0, 0);
	assert_null(strstr(scene->fake->log, "prepare"));
}

static void a_full_disk_at_the_end_leaves_nothing_on_the_host(void **state)
{
	struct scene *scene = *state;
	full_ops = *scene->keeper->ledger->ops;
	full_ops.seal = full_seal;
	fails_for_want_of_space(scene);
	ledger_has(scene, 1, 1);
	assert_non_null(strstr(scene->fake->log, "cleanup verify"));
}

static void a_full_disk_on_the_way_leaves_nothing_on_the_host(void **state)
{
	struct scene *scene = *state;
	scene->signals = 1;
	full_ops = *scene->keeper->ledger->ops;
	full_ops.request_cancel = full_cancel;
	fails_for_want_of_space(scene);
	assert_non_null(strstr(scene->fake->log, "cleanup"));
}

static void whoever_lost_the_lease_cleans_nothing_up(void **state)
{
	struct scene *scene = *state;
	const struct ledger_ops *whole = scene->keeper->ledger->ops;
	const struct keeper_once once = once_of(scene);
	struct err err = ERR_INIT;
	full_ops = *whole;
	full_ops.commit_launch_intent = fenced_intent;
	scene->keeper->ledger->ops = &full_ops;
	assert_int_equal(keeper_run_once(&once, &scene->result, &err), ERR_FENCED);
	scene->keeper->ledger->ops = whole;
	assert_null(strstr(scene->fake->log, "cleanup"));
	assert_null(strstr(scene->fake->log, "launch"));
}

#define ONCE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ONCE_TEST(a_run_is_driven_to_its_seal),
		ONCE_TEST(the_worker_goes_when_its_run_is_over),
		ONCE_TEST(a_refused_plan_is_sealed_without_a_worker),
		ONCE_TEST(a_profile_that_policy_does_not_know_is_refused),
		ONCE_TEST(a_worker_that_cannot_open_leaves_nothing_in_the_ledger),
		ONCE_TEST(a_signal_before_launch_cancels),
		ONCE_TEST(a_step_that_fails_is_not_launched),
		ONCE_TEST(a_failed_cleanup_is_provisional),
		ONCE_TEST(a_worker_that_dies_preparing_was_not_launched),
		ONCE_TEST(a_worker_that_dies_suspended_was_not_launched),
		ONCE_TEST(a_worker_that_dies_enrolling_was_not_launched),
		ONCE_TEST(a_worker_that_dies_at_the_gate_is_an_interruption),
		ONCE_TEST(a_worker_that_dies_observing_is_an_interruption),
		ONCE_TEST(without_a_factory_a_dead_worker_is_the_next_recoverys),
		ONCE_TEST(a_full_disk_before_the_start_leaves_nothing),
		ONCE_TEST(a_full_disk_at_the_end_leaves_nothing_on_the_host),
		ONCE_TEST(a_full_disk_on_the_way_leaves_nothing_on_the_host),
		ONCE_TEST(whoever_lost_the_lease_cleans_nothing_up),
	};
	return cmocka_run_group_tests_name("oneshot", tests, NULL, NULL);
}
