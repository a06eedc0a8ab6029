/* test_recovery.c - recovery and sweep over a real ledger: what the dead left, and nothing of the living. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

enum { REPORT_MAX = 4096, TTL_MS = 900, RENEWALS = 5 /* three of them are a time to live */, LOOKS_MAX = 200 };

struct scene {
	char path[64];
	struct fake *fake;
	struct manifest *manifest;
	struct plan *plan;
	struct provider_factory factory;
	int64_t ttl_ms; /* of a keeper's lease; 0: the default */
	char report[REPORT_MAX];
};

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	scene->fake = fake_new();
	scene->factory = fake_factory(scene->fake);
	scene->plan = plan_for("recording", 1000, &scene->manifest);
	ledger_place_new(scene->path);
	*state = scene;
	return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static int teardown(void **state)
{
	struct scene *scene = *state;
	worker_reap_orphans();
	plan_free(scene->plan);
	manifest_free(scene->manifest);
	ledger_place_remove(scene->path);
	fake_free(scene->fake);
	free(scene);
	return 0;
}

static void tell_launched(void *context, struct capture *standard_output, struct capture *standard_error)
{
	(void)standard_output, (void)standard_error;
	(void)!write(*(int *)context, &(int){0}, sizeof(int));
}

/* In a process of its own: a keeper that runs one, tells when it is launched and when it has ended, and waits for its death. */
static _Noreturn void be_a_keeper(struct scene *scene, int tell)
{
	struct worker *worker = NULL;
	struct keeper_result result = {0};
	struct err err = ERR_INIT;
	if (worker_spawn("recording", &scene->factory, &worker, &err) < 0)
		_exit(1);
	struct keeper *keeper = keeper_at(scene->path);
	const struct keeper_once once = {
		.keeper = keeper,
		.worker = worker,
		.manifest = scene->manifest,
		.plan = scene->plan,
		.launched = scene->fake->observe_blocks ? tell_launched : NULL,
		.context = &tell,
		.lease_ttl_ms = scene->ttl_ms,
	};
	int failed = keeper_run_once(&once, &result, &err);
	(void)!write(tell, &failed, sizeof(failed));
	worker_free(worker);
	for (;;)
		pause();
}

/* A keeper whose run came to this call and no further, because the keeper died there: its boundary calls back no more. */
static void leave_behind(struct scene *scene, const char *call)
{
	int ends[2], failed;
	memset(scene->fake->die, 0, sizeof(scene->fake->die));
	snprintf(scene->fake->die, sizeof(scene->fake->die), "%s", call);
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0)
		be_a_keeper(scene, ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &failed, sizeof(failed)), sizeof(failed));
	assert_int_equal(failed, 0);
	close(ends[0]);
	memset(scene->fake->die, 0, sizeof(scene->fake->die));
	memset(scene->fake->log, 0, sizeof(scene->fake->log));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* A keeper that dies while its guest runs; its worker sees that and goes by itself. */
static void leave_running(struct scene *scene)
{
	scene->fake->observe_blocks = true;
	leave_behind(scene, "");
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	scene->fake->observe_blocks = false;
}

static void report(void *context, const char *run_id, const char *line)
{
	struct scene *scene = context;
	size_t used = strlen(scene->report);
	snprintf(scene->report + used, sizeof(scene->report) - used, "%.3s %s\n", run_id, line);
}

static const char *const profiles[] = {"recording", NULL};

static struct keeper_recovery recovery_of(struct scene *scene, struct keeper *keeper)
{
	memset(scene->report, 0, sizeof(scene->report));
	return (struct keeper_recovery){
		.keeper = keeper,
		.factory = &scene->factory,
		.profiles = profiles,
		.sweep = true,
		.include_quarantined = true,
		.report = report,
		.context = scene,
	};
}

static void recovers(const struct keeper_recovery *recovery, struct keeper_recovered want)
{
	struct keeper_recovered got;
	struct err err = ERR_INIT;
	assert_int_equal(keeper_recover(recovery, &got, &err), 0);
	assert_int_equal(got.sealed, want.sealed);
	assert_int_equal(got.requeued, want.requeued);
	assert_int_equal(got.quarantined, want.quarantined);
	assert_int_equal(got.busy, want.busy);
	assert_int_equal(got.failed, want.failed);
	assert_int_equal(got.swept, want.swept);
}

static void with_nothing_unsealed_no_provider_is_made(void **state)
{
	struct scene *scene = *state;
	struct keeper *keeper = keeper_at(scene->path);
	struct keeper_recovery recovery = recovery_of(scene, keeper);
	recovery.sweep = false;
	recovery.factory = NULL;
	recovers(&recovery, (struct keeper_recovered){0});
	keeper_free(keeper);
}

static void what_a_dead_keeper_left_is_sealed_once(void **state)
{
	struct scene *scene = *state;
	leave_behind(scene, "observe");
	struct keeper *keeper = keeper_at(scene->path);
	const struct keeper_recovery recovery = recovery_of(scene, keeper);
	recovers(&recovery, (struct keeper_recovered){.sealed = 1});
	assert_string_equal(scene->report, "run sealed as interrupted\n");
	assert_int_equal(strncmp(scene->fake->log, "recover:bnd-", 12), 0);
	recovers(&recovery, (struct keeper_recovered){0});
	keeper_free(keeper);
}

static void a_keeper_that_died_while_its_guest_ran_is_an_interruption(void **state)
{
	struct scene *scene = *state;
	leave_running(scene);
	assert_non_null(strstr(scene->fake->log, "kill cleanup free"));
	struct keeper *keeper = keeper_at(scene->path);
	const struct keeper_recovery recovery = recovery_of(scene, keeper);
	recovers(&recovery, (struct keeper_recovered){.sealed = 1});
	assert_string_equal(scene->report, "run sealed as interrupted\n");
	keeper_free(keeper);
}

static void a_dry_run_changes_nothing(void **state)
{
	struct scene *scene = *state;
	leave_behind(scene, "observe");
	struct keeper *keeper = keeper_at(scene->path);
	struct keeper_recovery recovery = recovery_of(scene, keeper);
	scene->fake->found_count = 1;
	snprintf(scene->fake->found[0].boundary_id, ID_SIZE, "bnd-aaaaaaaaaaaaaaaa");
	recovery.dry_run = true;
	recovers(&recovery, (struct keeper_recovered){.sealed = 1, .swept = 1});
	recovers(&recovery, (struct keeper_recovered){.sealed = 1, .swept = 1});
	assert_string_equal(scene->fake->log, "");
	keeper_free(keeper);
}

static void one_that_fails_keeps_no_other_from_its_recovery(void **state)
{
	struct scene *scene = *state;
	leave_behind(scene, "create");
	leave_behind(scene, "observe");
	leave_behind(scene, "prepare");
	struct keeper *keeper = keeper_at(scene->path);
	struct keeper_recovery recovery = recovery_of(scene, keeper);
	scene->fake->recover_failures = 1;
	recovers(&recovery, (struct keeper_recovered){.sealed = 2, .quarantined = 1});
	keeper_free(keeper);

	keeper = keeper_at(scene->path);
	recovery = recovery_of(scene, keeper);
	recovery.include_quarantined = false;
	recovers(&recovery, (struct keeper_recovered){.quarantined = 1});
	recovery.include_quarantined = true;
	recovers(&recovery, (struct keeper_recovered){.sealed = 1});
	keeper_free(keeper);
}

static void a_profile_that_is_not_here_is_reported_and_left(void **state)
{
	struct scene *scene = *state;
	leave_behind(scene, "observe");
	struct keeper *keeper = keeper_at(scene->path);
	const struct keeper_recovery recovery = recovery_of(scene, keeper);
	scene->fake->no_provider = true;
	recovers(&recovery, (struct keeper_recovered){.failed = 1});
	assert_non_null(strstr(scene->report, "not recovered: profile recording is not here"));
	scene->fake->no_provider = false;
	recovers(&recovery, (struct keeper_recovered){.sealed = 1});
	keeper_free(keeper);
}

struct first {
	char boundary_id[ID_SIZE];
};

static int remember(void *context, const struct ledger_attempt *attempt)
{
	memcpy(((struct first *)context)->boundary_id, attempt->boundary_id, ID_SIZE);
	return 0;
}

/* A keeper that lives, in the middle of a run. */
static pid_t live_on(struct scene *scene, struct keeper *keeper, struct first *ret)
{
	int ends[2], failed;
	struct err err = ERR_INIT;
	snprintf(scene->fake->die, sizeof(scene->fake->die), "%s", "observe");
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0)
		be_a_keeper(scene, ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &failed, sizeof(failed)), sizeof(failed));
	close(ends[0]);
	memset(scene->fake->die, 0, sizeof(scene->fake->die));
	memset(scene->fake->log, 0, sizeof(scene->fake->log));
	assert_int_equal(keeper->ledger->ops->unsealed(keeper->ledger, remember, ret, &err), 0);
	return child;
}

static void what_a_living_keeper_owns_is_neither_recovered_nor_swept(void **state)
{
	struct scene *scene = *state;
	struct first first = {{0}};
	struct keeper *keeper = keeper_at(scene->path);
	pid_t living = live_on(scene, keeper, &first);
	const struct keeper_recovery recovery = recovery_of(scene, keeper);
	scene->fake->found_count = 2;
	memcpy(scene->fake->found[0].boundary_id, first.boundary_id, ID_SIZE);
	snprintf(scene->fake->found[1].boundary_id, ID_SIZE, "bnd-aaaaaaaaaaaaaaaa");
	recovers(&recovery, (struct keeper_recovered){.busy = 1, .swept = 1});
	assert_string_equal(scene->fake->log, "recover:bnd-aaaaaaaaaaaaaaaa ");

	struct keeper_recovery only_attempts = recovery;
	only_attempts.sweep = false;
	only_attempts.factory = NULL; /* nothing is even made ready for it */
	recovers(&only_attempts, (struct keeper_recovered){.busy = 1});

	kill(living, SIGKILL);
	waitpid(living, NULL, 0);
	scene->fake->found_count = 0;
	recovers(&recovery, (struct keeper_recovered){.sealed = 1});
	keeper_free(keeper);
}

/* In a process of its own, with a lease of TTL_MS; its guest runs when this returns. *ret_tell: there it says how it ended. */
static pid_t run_on(struct scene *scene, int *ret_tell)
{
	int ends[2], launched;
	scene->fake->observe_blocks = scene->fake->keeps_deadline = true;
	scene->ttl_ms = TTL_MS;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0)
		be_a_keeper(scene, ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &launched, sizeof(launched)), sizeof(launched));
	*ret_tell = ends[0];
	return child;
}

static struct keeper_recovered look(const struct keeper_recovery *recovery)
{
	struct keeper_recovered got;
	struct err err = ERR_INIT;
	if (keeper_recover(recovery, &got, &err) < 0)
		fail_msg("%s", err.text);
	return got;
}

static char *receipt_of_latest(struct keeper *keeper)
{
	char run_id[ID_SIZE], *receipt = NULL;
	assert_int_equal(keeper->ledger->ops->find_run(keeper->ledger, "latest", run_id, NULL), 0);
	assert_int_equal(keeper->ledger->ops->receipt(keeper->ledger, run_id, &receipt, NULL), 0);
	return receipt;
}

static void a_stopped_keeper_is_taken_over_and_does_nothing_further(void **state)
{
	struct scene *scene = *state;
	int tell, status, failed = 0;
	pid_t stopped = run_on(scene, &tell);
	struct keeper *keeper = keeper_at(scene->path);
	struct keeper_recovery recovery = recovery_of(scene, keeper);
	recovery.sweep = false;
	recovers(&recovery, (struct keeper_recovered){.busy = 1});
	assert_int_equal(kill(stopped, SIGSTOP), 0);
	assert_int_equal(waitpid(stopped, &status, WUNTRACED), stopped);
	struct keeper_recovered got;
	recovery.watch = keeper_watch_new();
	recovers(&recovery, (struct keeper_recovered){.busy = 1}); /* the first look says nothing yet */
	got = look(&recovery);
	for (int i = 0; i < LOOKS_MAX && got.busy == 1; i++) {
		usleep(TTL_MS * 1000 / 10);
		got = look(&recovery);
	}
	assert_int_equal(got.sealed, 1);
	assert_string_equal(scene->report, "run taken over: its keeper is stopped\nrun sealed as interrupted\n");
	char *receipt = receipt_of_latest(keeper);
	assert_non_null(receipt);

	assert_int_equal(kill(stopped, SIGCONT), 0);
	assert_int_equal(read(tell, &failed, sizeof(failed)), sizeof(failed));
	assert_int_equal(failed, ERR_FENCED);
	char *again = receipt_of_latest(keeper);
	assert_string_equal(again, receipt);
	recovers(&recovery, (struct keeper_recovered){0});
	free(again);
	free(receipt);
	close(tell);
	kill(stopped, SIGKILL);
	waitpid(stopped, NULL, 0);
	keeper_watch_free(recovery.watch);
	keeper_free(keeper);
}

static int take_renewals(void *context, const struct ledger_attempt *attempt)
{
	*(int64_t *)context = attempt->renewals;
	return 0;
}

static void a_keeper_that_renews_is_left_alone(void **state)
{
	struct scene *scene = *state;
	int tell;
	pid_t living = run_on(scene, &tell);
	struct keeper *keeper = keeper_at(scene->path);
	struct keeper_recovery recovery = recovery_of(scene, keeper);
	recovery.sweep = false;
	recovery.watch = keeper_watch_new();
	for (int64_t renewals = 0; renewals < RENEWALS;) { /* more than one time to live */
		recovers(&recovery, (struct keeper_recovered){.busy = 1});
		assert_int_equal(keeper->ledger->ops->unsealed(keeper->ledger, take_renewals, &renewals, NULL), 0);
		usleep(TTL_MS * 1000 / 10);
	}
	keeper_watch_free(recovery.watch);
	close(tell);
	kill(living, SIGKILL);
	waitpid(living, NULL, 0);
	keeper_free(keeper);
}

static void what_is_quarantined_is_left_to_its_living_keeper(void **state)
{
	struct scene *scene = *state;
	struct first first = {{0}};
	struct keeper *keeper = keeper_at(scene->path);
	scene->ttl_ms = TTL_MS;
	pid_t living = live_on(scene, keeper, &first); /* its worker died, and it has a provisional result */
	struct keeper_recovery recovery = recovery_of(scene, keeper);
	recovery.watch = keeper_watch_new();
	for (int i = 0; i < 3; i++) {
		recovers(&recovery, (struct keeper_recovered){.busy = 1});
		usleep(TTL_MS * 1000);
	}
	keeper_watch_free(recovery.watch);
	kill(living, SIGKILL);
	waitpid(living, NULL, 0);
	keeper_free(keeper);
}

static void a_sweep_leaves_what_is_quarantined_to_a_recovery(void **state)
{
	struct scene *scene = *state;
	struct first first = {{0}};
	struct err err = ERR_INIT;
	leave_behind(scene, "observe");
	struct keeper *keeper = keeper_at(scene->path);
	assert_int_equal(keeper->ledger->ops->unsealed(keeper->ledger, remember, &first, &err), 0);
	struct keeper_recovery recovery = recovery_of(scene, keeper);
	recovery.include_quarantined = false;
	scene->fake->found_count = 1;
	memcpy(scene->fake->found[0].boundary_id, first.boundary_id, ID_SIZE);
	recovers(&recovery, (struct keeper_recovered){.quarantined = 1});
	assert_string_equal(scene->fake->log, "");
	keeper_free(keeper);
}

static void a_sweep_stands_down_when_the_engine_errs(void **state)
{
	struct scene *scene = *state;
	struct keeper *keeper = keeper_at(scene->path);
	const struct keeper_recovery recovery = recovery_of(scene, keeper);
	struct keeper_recovered got;
	struct err err = ERR_INIT;
	snprintf(scene->fake->fail, sizeof(scene->fake->fail), "%s", "enumerate");
	scene->fake->found_count = 1;
	snprintf(scene->fake->found[0].boundary_id, ID_SIZE, "bnd-aaaaaaaaaaaaaaaa");
	assert_int_equal(keeper_recover(&recovery, &got, &err), ERR_IO);
	assert_string_equal(scene->fake->log, "");
	keeper_free(keeper);
}

#define RECOVERY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECOVERY_TEST(with_nothing_unsealed_no_provider_is_made),
		RECOVERY_TEST(what_a_dead_keeper_left_is_sealed_once),
		RECOVERY_TEST(a_keeper_that_died_while_its_guest_ran_is_an_interruption),
		RECOVERY_TEST(a_dry_run_changes_nothing),
		RECOVERY_TEST(one_that_fails_keeps_no_other_from_its_recovery),
		RECOVERY_TEST(a_profile_that_is_not_here_is_reported_and_left),
		RECOVERY_TEST(what_a_living_keeper_owns_is_neither_recovered_nor_swept),
		RECOVERY_TEST(a_stopped_keeper_is_taken_over_and_does_nothing_further),
		RECOVERY_TEST(a_keeper_that_renews_is_left_alone),
		RECOVERY_TEST(what_is_quarantined_is_left_to_its_living_keeper),
		RECOVERY_TEST(a_sweep_leaves_what_is_quarantined_to_a_recovery),
		RECOVERY_TEST(a_sweep_stands_down_when_the_engine_errs),
	};
	return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
