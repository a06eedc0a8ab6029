/* test_server.c - the keeper of many runs over a real ledger and real workers, whose boundary is the recording one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "artifact/store.h"
#include "base/clock.h"
#include "boundary/recording/recording.h"
#include "evidence/record.h"
#include "keeper/server.h"
#include "ledger/shared.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "support.h"

/* One of two workers may get nearly all runs, and a recording world holds 256 units. */
enum { WAIT_MS = 20 * 1000, RUNS = 240 };

/* A world of its own in each process that makes a provider; every program exits with 0 at once. */
static int make_recording(void *context, const char *profile, int wake_fd, struct boundary_provider **ret, struct err *err)
{
	const bool *impossible = context;
	struct recording_world *world;
	(void)wake_fd;
	if (*impossible)
		return err_set(err, ERR_UNSUPPORTED, "profile %s is not here", profile);
	struct boundary_provider *provider = malloc(sizeof(*provider));
	int result = provider ? recording_world_new(&world, err) : ERR_NO_MEMORY;
	if (result < 0)
		return result;
	*provider = recording_provider(world);
	*ret = provider;
	return 0;
}

static void release_recording(void *context, struct boundary_provider *provider)
{
	(void)context;
	recording_world_free(provider->context);
	free(provider);
}

struct scene {
	char path[64];
	bool *impossible; /* shared with the nursery and its workers */
	struct provider_factory factory;
	struct nursery *nursery;
	struct keeper *keeper;
	struct server *server;
	int changes; /* eventfd */
};

static void changed(void *context, const char *run_id)
{
	struct scene *scene = context;
	(void)run_id;
	(void)!write(scene->changes, &(uint64_t){1}, sizeof(uint64_t));
}

static struct keeper *open_keeper(struct scene *scene)
{
	struct sqlite_ledger_options options = {.record_digest = record_digest};
	struct ledger *inner = NULL, *reader = NULL, *shared = NULL;
	struct store *store = NULL;
	struct keeper *keeper = NULL;
	struct err err = ERR_INIT;
	int dir = open(scene->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(sqlite_ledger_open(dir, &options, &inner, &err), 0);
	options.read_only = true;
	assert_int_equal(sqlite_ledger_open(dir, &options, &reader, &err), 0);
	assert_int_equal(ledger_share(inner, reader, changed, scene, &shared, &err), 0);
	assert_int_equal(store_open(dir, &store, &err), 0);
	assert_int_equal(keeper_open(dir, shared, store, &keeper, &err), 0);
	return keeper;
}

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct err err = ERR_INIT;
	ledger_place_new(scene->path);
	scene->changes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	scene->impossible = mmap(NULL, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	scene->factory = (struct provider_factory){.make = make_recording, .release = release_recording, .context = scene->impossible};
	*state = scene;
	if (nursery_start(&scene->factory, &scene->nursery, &err) < 0)
		return -1;
	scene->keeper = open_keeper(scene);
	return 0;
}

static void start(struct scene *scene, size_t workers, int per_owner, int64_t queue_max)
{
	static const char *const profiles[] = {"recording", "recording", NULL};
	const struct server_options options = {
		.keeper = scene->keeper,
		.nursery = scene->nursery,
		.factory = &scene->factory,
		.profiles = profiles + 1,
		.workers = profiles,
		.worker_count = workers,
		.per_owner = per_owner,
		.queue_max = queue_max,
		.lease_ttl_ms = 30 * 1000,
		.changed = changed,
		.context = scene,
	};
	struct err err = ERR_INIT;
	int result = server_start(&options, &scene->server, &err);
	if (result < 0)
		fprintf(stderr, "%s\n", err.text);
	assert_int_equal(result, 0);
}

static int teardown(void **state)
{
	struct scene *scene = *state;
	server_free(scene->server);
	keeper_free(scene->keeper);
	nursery_free(scene->nursery);
	munmap(scene->impossible, sizeof(bool));
	close(scene->changes);
	ledger_place_remove(scene->path);
	free(scene);
	return 0;
}

static int submit(struct scene *scene, const char *principal, const char *key, struct api_submitted *ret)
{
	static const char text[] = "{\"version\":\"caisson.manifest/v1\",\"profile\":\"recording\",\"command\":{\"argv\":[\"/bin/true\"]}}";
	const struct api_core *core = server_core(scene->server);
	struct manifest *manifest = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(manifest_parse(text, sizeof(text) - 1, &manifest, &err), 0);
	const struct api_submission submission = {.principal = principal, .idempotency_key = key, .manifest = manifest};
	*ret = (struct api_submitted){.existing = false};
	int result = core->submit(core->context, &submission, ret, &err);
	manifest_free(manifest);
	return result;
}

/* Looks again at each change, and now and then all the same. */
static bool comes_true(struct scene *scene, bool (*condition)(struct scene *scene, const void *about), const void *about)
{
	struct pollfd news = {.fd = scene->changes, .events = POLLIN};
	int64_t deadline_ns = clock_mono_ns() + WAIT_MS * NS_PER_MS;
	uint64_t count;
	while (!condition(scene, about)) {
		if (clock_mono_ns() > deadline_ns)
			return false;
		if (poll(&news, 1, 50) == 1)
			(void)!read(scene->changes, &count, sizeof(count));
	}
	return true;
}

static struct ledger_run_state state_of(struct scene *scene, const char *run_id)
{
	struct ledger_run_state state;
	struct ledger *ledger = scene->keeper->ledger;
	assert_int_equal(ledger->ops->run_state(ledger, run_id, &state, NULL), 0);
	return state;
}

static bool is_sealed(struct scene *scene, const void *run_id)
{
	return state_of(scene, run_id).sealed;
}

static bool is_paused(struct scene *scene, const void *run_id)
{
	const struct api_core *core = server_core(scene->server);
	struct api_live live;
	return core->live(core->context, run_id, &live, NULL) == 0 && live.paused;
}

static void runs_of_many_owners_are_sealed_each_once(void **state)
{
	struct scene *scene = *state;
	struct api_submitted runs[RUNS];
	struct api_stats stats;
	char owner[16];
	start(scene, 2, 1, 1000);
	for (int i = 0; i < RUNS; i++) {
		snprintf(owner, sizeof(owner), "uid:%d", i % 7);
		assert_int_equal(submit(scene, owner, NULL, &runs[i]), 0);
	}
	for (int i = 0; i < RUNS; i++) {
		assert_true(comes_true(scene, is_sealed, runs[i].run_id));
		struct ledger_run_state sealed = state_of(scene, runs[i].run_id);
		assert_string_equal(sealed.verdict, "succeeded");
		assert_int_equal(sealed.attempts, 1);
	}
	assert_true(server_wait_idle(scene->server, WAIT_MS));
	server_core(scene->server)->stats(server_core(scene->server)->context, &stats);
	assert_int_equal(stats.verdicts[VERDICT_SUCCEEDED], RUNS);
	assert_int_equal(stats.submitted, RUNS);
	assert_int_equal(stats.queued + stats.running + stats.paused, 0);
	assert_int_equal(stats.steps[STATS_TOTAL].count, RUNS);
}

static void a_key_that_comes_again_is_the_same_run(void **state)
{
	struct scene *scene = *state;
	struct api_submitted first, again, other;
	start(scene, 1, 1, 1000);
	assert_int_equal(submit(scene, "uid:1", "k", &first), 0);
	assert_int_equal(submit(scene, "uid:1", "k", &again), 0);
	assert_true(again.existing && !first.existing);
	assert_string_equal(again.run_id, first.run_id);
	assert_int_equal(submit(scene, "uid:2", "k", &other), 0); /* somebody else's key */
	assert_false(other.existing);
}

static void with_no_safe_worker_a_run_is_paused_and_goes_on_when_one_is_back(void **state)
{
	struct scene *scene = *state;
	struct api_submitted run;
	char reason[API_REASON_MAX];
	const struct api_core *core;
	*scene->impossible = true;
	start(scene, 1, 1, 1000);
	core = server_core(scene->server);
	assert_int_equal(submit(scene, "uid:1", NULL, &run), 0);
	assert_true(comes_true(scene, is_paused, run.run_id));
	assert_false(core->ready(core->context, reason));
	assert_string_equal(reason, "no_safe_worker");
	*scene->impossible = false;
	assert_true(comes_true(scene, is_sealed, run.run_id)); /* the worker tries again by itself */
	assert_true(core->ready(core->context, reason));
}

static void a_full_queue_says_so(void **state)
{
	struct scene *scene = *state;
	struct api_submitted run;
	*scene->impossible = true;
	start(scene, 1, 1, 2);
	assert_int_equal(submit(scene, "uid:1", NULL, &run), 0);
	assert_int_equal(submit(scene, "uid:1", NULL, &run), 0);
	assert_int_equal(submit(scene, "uid:1", NULL, &run), ERR_LIMIT);
}

static void a_run_cancelled_while_it_waits_needs_no_worker(void **state)
{
	struct scene *scene = *state;
	struct api_submitted run;
	struct err err = ERR_INIT;
	bool sealed = true;
	*scene->impossible = true;
	start(scene, 1, 1, 1000);
	const struct api_core *core = server_core(scene->server);
	assert_int_equal(submit(scene, "uid:1", NULL, &run), 0);
	assert_int_equal(core->cancel(core->context, run.run_id, &sealed, &err), 0);
	assert_false(sealed);
	assert_true(comes_true(scene, is_sealed, run.run_id));
	assert_string_equal(state_of(scene, run.run_id).verdict, "cancelled");
	assert_int_equal(core->cancel(core->context, run.run_id, &sealed, &err), 0);
	assert_true(sealed);
}

/* A ledger whose disk is full when the next so many seals are written. */
static struct {
	struct ledger_ops ops;
	int (*seal)(struct ledger *ledger, const struct ledger_seal *seal, struct err *err);
	atomic_int failures;
} full;

static int seal_while_full(struct ledger *ledger, const struct ledger_seal *seal, struct err *err)
{
	if (atomic_fetch_sub(&full.failures, 1) > 0)
		return err_set(err, ERR_NO_SPACE, "the disk is full");
	return full.seal(ledger, seal, err);
}

static void fail_seals(struct ledger *ledger, int failures)
{
	full.ops = *ledger->ops;
	full.seal = full.ops.seal;
	full.ops.seal = seal_while_full;
	atomic_init(&full.failures, failures);
	ledger->ops = &full.ops;
}

static void a_run_cancelled_while_it_waits_is_sealed_though_the_disk_was_full(void **state)
{
	struct scene *scene = *state;
	struct api_submitted run;
	struct err err = ERR_INIT;
	bool sealed = true;
	*scene->impossible = true;
	fail_seals(scene->keeper->ledger, 1);
	start(scene, 1, 1, 1000);
	const struct api_core *core = server_core(scene->server);
	assert_int_equal(submit(scene, "uid:1", NULL, &run), 0);
	assert_int_equal(core->cancel(core->context, run.run_id, &sealed, &err), 0);
	*scene->impossible = false;
	assert_true(comes_true(scene, is_sealed, run.run_id));
	assert_true(atomic_load(&full.failures) < 0);
	assert_string_equal(state_of(scene, run.run_id).verdict, "cancelled");
	assert_int_equal(state_of(scene, run.run_id).attempts, 1);
}

/* A ledger whose queue is told late: a run of it has been cancelled in between. */
static struct {
	struct ledger_ops ops;
	int (*queued)(struct ledger *ledger, int64_t after, int64_t limit, ledger_queued_fn fn, void *context, struct err *err);
	struct scene *scene;
	ledger_queued_fn fn;
	void *context;
	atomic_bool cancelled;
} late;

static int cancel_and_tell(void *context, const struct ledger_queued *queued)
{
	const struct api_core *core = server_core(late.scene->server);
	bool sealed;
	(void)context;
	if (!atomic_exchange(&late.cancelled, true))
		core->cancel(core->context, queued->run_id, &sealed, NULL);
	return late.fn(late.context, queued);
}

static int tell_late(struct ledger *ledger, int64_t after, int64_t limit, ledger_queued_fn fn, void *context, struct err *err)
{
	late.fn = fn;
	late.context = context;
	return late.queued(ledger, after, limit, cancel_and_tell, NULL, err);
}

static void a_run_cancelled_on_its_way_to_the_queue_is_sealed(void **state)
{
	struct scene *scene = *state;
	struct ledger *ledger = scene->keeper->ledger;
	struct api_submitted run;
	late.ops = *ledger->ops;
	late.queued = late.ops.queued;
	late.ops.queued = tell_late;
	late.scene = scene;
	ledger->ops = &late.ops;
	*scene->impossible = true;
	start(scene, 1, 1, 1000);
	assert_int_equal(submit(scene, "uid:1", NULL, &run), 0);
	assert_true(comes_true(scene, is_sealed, run.run_id));
	assert_true(atomic_load(&late.cancelled));
	assert_string_equal(state_of(scene, run.run_id).verdict, "cancelled");
}

enum { CANCELLED_RUNS = 60 };

/* A ledger where the first seal waits until all is submitted and cancelled, and the one in the middle of the same thread, which is the house,
 * for the run that came last. */
static struct {
	struct ledger_ops ops;
	int (*seal)(struct ledger *ledger, const struct ledger_seal *seal, struct err *err);
	struct scene *scene;
	atomic_bool begun;
	int ready; /* eventfd */
	char last[ID_SIZE];
	atomic_bool met;
} busy;

static int seal_in_order(struct ledger *ledger, const struct ledger_seal *seal, struct err *err)
{
	static _Thread_local int of_the_house;
	uint64_t count;
	if (!atomic_exchange(&busy.begun, true)) {
		(void)!read(busy.ready, &count, sizeof(count));
		of_the_house = 1;
	} else if (of_the_house) {
		of_the_house++;
	}
	if (of_the_house == CANCELLED_RUNS / 2)
		atomic_store(&busy.met, comes_true(busy.scene, is_sealed, busy.last));
	return busy.seal(ledger, seal, err);
}

static void many_cancelled_runs_keep_no_other_from_its_worker(void **state)
{
	struct scene *scene = *state;
	struct ledger *ledger = scene->keeper->ledger;
	struct api_submitted runs[CANCELLED_RUNS], last;
	bool sealed;
	busy.ops = *ledger->ops;
	busy.seal = busy.ops.seal;
	busy.ops.seal = seal_in_order;
	busy.scene = scene;
	busy.ready = eventfd(0, EFD_CLOEXEC);
	ledger->ops = &busy.ops;
	*scene->impossible = true;
	start(scene, 1, 1, 1000);
	const struct api_core *core = server_core(scene->server);
	for (int i = 0; i < CANCELLED_RUNS; i++)
		assert_int_equal(submit(scene, "uid:1", NULL, &runs[i]), 0);
	for (int i = 0; i < CANCELLED_RUNS; i++)
		assert_int_equal(core->cancel(core->context, runs[i].run_id, &sealed, NULL), 0);
	*scene->impossible = false;
	assert_int_equal(submit(scene, "uid:2", NULL, &last), 0);
	memcpy(busy.last, last.run_id, ID_SIZE);
	(void)!write(busy.ready, &(uint64_t){1}, sizeof(uint64_t));
	for (int i = 0; i < CANCELLED_RUNS; i++)
		assert_true(comes_true(scene, is_sealed, runs[i].run_id));
	assert_true(atomic_load(&busy.met));
	close(busy.ready);
}

static void what_waited_is_the_next_keepers(void **state)
{
	struct scene *scene = *state;
	struct api_submitted run;
	*scene->impossible = true;
	start(scene, 1, 1, 1000);
	assert_int_equal(submit(scene, "uid:1", NULL, &run), 0);
	server_free(scene->server);
	scene->server = NULL;
	keeper_free(scene->keeper);
	*scene->impossible = false;
	scene->keeper = open_keeper(scene);
	start(scene, 2, 1, 1000);
	assert_true(comes_true(scene, is_sealed, run.run_id));
	assert_string_equal(state_of(scene, run.run_id).verdict, "succeeded");
}

static void without_its_nursery_the_keeper_begins_nothing(void **state)
{
	struct scene *scene = *state;
	struct api_submitted run;
	pidfd_send_signal(nursery_pidfd(scene->nursery), SIGKILL, NULL, 0);
	start(scene, 1, 1, 1000);
	assert_int_equal(submit(scene, "uid:1", NULL, &run), 0);
	assert_true(comes_true(scene, is_paused, run.run_id));
}

static void slots_are_told_and_only_a_quarantined_one_is_recovered(void **state)
{
	struct scene *scene = *state;
	struct err err = ERR_INIT;
	bool recovered;
	start(scene, 2, 1, 1000);
	const struct api_core *core = server_core(scene->server);
	assert_int_equal(core->recover(core->context, 0, &recovered, &err), ERR_STATE);
	assert_int_equal(core->recover(core->context, 2, &recovered, &err), ERR_NOT_FOUND);
	assert_int_equal(core->recover(core->context, -1, &recovered, &err), ERR_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(runs_of_many_owners_are_sealed_each_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_key_that_comes_again_is_the_same_run, setup, teardown),
		cmocka_unit_test_setup_teardown(with_no_safe_worker_a_run_is_paused_and_goes_on_when_one_is_back, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_queue_says_so, setup, teardown),
		cmocka_unit_test_setup_teardown(a_run_cancelled_while_it_waits_needs_no_worker, setup, teardown),
		cmocka_unit_test_setup_teardown(a_run_cancelled_while_it_waits_is_sealed_though_the_disk_was_full, setup, teardown),
		cmocka_unit_test_setup_teardown(a_run_cancelled_on_its_way_to_the_queue_is_sealed, setup, teardown),
		cmocka_unit_test_setup_teardown(many_cancelled_runs_keep_no_other_from_its_worker, setup, teardown),
		cmocka_unit_test_setup_teardown(what_waited_is_the_next_keepers, setup, teardown),
		cmocka_unit_test_setup_teardown(without_its_nursery_the_keeper_begins_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(slots_are_told_and_only_a_quarantined_one_is_recovered, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
