/* test_shared.c - many threads on one ledger: they share commits, fail alone, fail together with their commit, and lose nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ledger/shared.h"
#include "ledger_fixture.h"

enum { THREADS = 8, RUNS_EACH = 12, SYNC_US = 2000, LARGE = 8 * 1024 * 1024, PATH_SIZE = FIXTURE_PATH_SIZE + 16 };

/* A disk that takes its time, and counts: SQLite's calls of fdatasync end here. */
static atomic_int syncs;
static atomic_bool disk_stands;

int fdatasync(int fd)
{
	atomic_fetch_add(&syncs, 1);
	usleep(SYNC_US);
	while (atomic_load(&disk_stands))
		sched_yield();
	return (int)syscall(SYS_fdatasync, fd);
}

struct stage {
	struct ledger_fixture fixture;
	atomic_int changes;
	char changed[ID_SIZE];  /* the last one */
	int syncs_at_change;
	/* A read that lasts until it is let go, so that what comes meanwhile waits together. */
	pthread_t holder;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool held, let_go;
};

static void changed(void *context, const char *run_id)
{
	struct stage *stage = context;

	snprintf(stage->changed, sizeof stage->changed, "%s", run_id);
	stage->syncs_at_change = atomic_load(&syncs);
	atomic_fetch_add(&stage->changes, 1);
}

static int set_up(void **state, bool with_reader)
{
	struct stage *stage = calloc(1, sizeof *stage);

	fixture_make(&stage->fixture);
	pthread_mutex_init(&stage->mutex, NULL);
	pthread_cond_init(&stage->cond, NULL);
	fixture_share(&stage->fixture, with_reader, changed, stage);
	*state = stage;
	return 0;
}

static int setup(void **state)
{
	return set_up(state, false);
}

static int setup_with_reader(void **state)
{
	return set_up(state, true);
}

static int teardown(void **state)
{
	struct stage *stage = *state;

	fixture_remove(&stage->fixture);
	pthread_mutex_destroy(&stage->mutex);
	pthread_cond_destroy(&stage->cond);
	free(stage);
	return 0;
}

static int hold(void *context, const struct ledger_list_row *row)
{
	struct stage *stage = context;

	(void)row;
	pthread_mutex_lock(&stage->mutex);
	stage->held = true;
	pthread_cond_broadcast(&stage->cond);
	while (!stage->let_go)
		pthread_cond_wait(&stage->cond, &stage->mutex);
	pthread_mutex_unlock(&stage->mutex);
	return 1; /* one row will do */
}

static void *be_holder(void *context)
{
	struct stage *stage = context;
	const struct ledger_list_query query = {.limit = 1};
	struct ledger *ledger = stage->fixture.ledger;

	(void)ledger->ops->list(ledger, &query, hold, stage, NULL);
	return NULL;
}

/* The ledger must have a run to show. */
static void hold_ledger(struct stage *stage)
{
	stage->held = stage->let_go = false;
	assert_int_equal(pthread_create(&stage->holder, NULL, be_holder, stage), 0);
	pthread_mutex_lock(&stage->mutex);
	while (!stage->held)
		pthread_cond_wait(&stage->cond, &stage->mutex);
	pthread_mutex_unlock(&stage->mutex);
}

static void let_go(struct stage *stage)
{
	pthread_mutex_lock(&stage->mutex);
	stage->let_go = true;
	pthread_cond_broadcast(&stage->cond);
	pthread_mutex_unlock(&stage->mutex);
	pthread_join(stage->holder, NULL);
}

static struct ledger_share_counts counts_of(struct stage *stage)
{
	struct ledger_share_counts counts;

	ledger_share_count(stage->fixture.ledger, &counts);
	return counts;
}

static void await_waiting(struct stage *stage, int64_t count)
{
	while (counts_of(stage).waiting < count)
		sched_yield();
}

/* One thread, and what it asks. Assertions are for the main thread: cmocka knows no other. */
struct asker {
	struct stage *stage;
	pthread_t thread;
	struct ledger_attempt attempt;
	int runs, result;
	struct err err;
	char run_id[ID_SIZE];
};

static int live(struct asker *asker, struct ledger_fixture *fixture)
{
	struct ledger_attempt *attempt = &asker->attempt;
	int r;

	fixture_new_attempt(fixture, attempt);
	r = fixture_try_accept(fixture, attempt, false, &asker->err);
	if (r == 0)
		r = fixture_append(fixture, attempt, "prepared", "preparing", &asker->err);
	if (r == 0)
		r = fixture_intent(fixture, attempt, &asker->err);
	return r < 0 ? r : fixture_seal(fixture, attempt, "hello\n", &asker->err);
}

static void *live_on(void *context)
{
	struct asker *asker = context;

	for (int i = 0; i < asker->runs && asker->result == 0; i++)
		asker->result = live(asker, &asker->stage->fixture);
	return NULL;
}

/* All begin, and all end. Returns how many times the disk was waited for. */
static int run_askers(struct stage *stage, int threads, int runs_each)
{
	struct asker askers[THREADS] = {0};
	int before = atomic_load(&syncs);

	for (int i = 0; i < threads; i++) {
		askers[i].stage = stage;
		askers[i].runs = runs_each;
		assert_int_equal(pthread_create(&askers[i].thread, NULL, live_on, &askers[i]), 0);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(askers[i].thread, NULL);
		if (askers[i].result < 0)
			fail_msg("%s", askers[i].err.text);
	}
	return atomic_load(&syncs) - before;
}

static void those_who_commit_at_once_share_the_disk(void **state)
{
	struct stage *stage = *state;
	int alone = run_askers(stage, 1, THREADS * RUNS_EACH);
	struct ledger_share_counts before = counts_of(stage), after;
	int together = run_askers(stage, THREADS, RUNS_EACH);

	after = counts_of(stage);
	print_message("%d runs: %d syncs by one thread, %d by %d threads; %lld writes in %lld commits, %lld of them durable\n",
	              THREADS * RUNS_EACH, alone, together, THREADS, (long long)(after.writes - before.writes),
	              (long long)(after.commits - before.commits), (long long)(after.durable - before.durable));
	assert_true(alone >= 2 * THREADS * RUNS_EACH); /* an intent and a seal */
	assert_true(together <= alone); /* how much less is chance; that it is one for all who wait is told below */
	assert_int_equal(after.writes - before.writes, 4 * THREADS * RUNS_EACH);
}

static void *append_once(void *context)
{
	struct asker *asker = context;

	asker->result = fixture_append(&asker->stage->fixture, &asker->attempt, "prepared", "preparing", &asker->err);
	return NULL;
}

static void *append_durably(void *context)
{
	struct asker *asker = context;
	const struct ledger_record record = {.at_ms = 1, .kind = "prepared", .body = "{}"};
	struct ledger *ledger = asker->stage->fixture.ledger;

	asker->result = ledger->ops->append(ledger, asker->attempt.attempt_id, asker->attempt.owner_id, asker->attempt.generation,
	                                    "preparing", &record, 1, true, &asker->err);
	return NULL;
}

static void *submit_large(void *context)
{
	struct asker *asker = context;
	struct ledger *ledger = asker->stage->fixture.ledger;
	struct ledger_run run = {.principal = "uid:0", .labels = "{}"};
	char *manifest = malloc(LARGE);
	bool existing;

	memset(manifest, ' ', LARGE);
	memcpy(manifest, "{}", 2);
	manifest[LARGE - 1] = '\0';
	run.manifest = manifest;
	id_new("run", run.run_id);
	digest_of(manifest, strlen(manifest), &run.manifest_digest);
	asker->result = ledger->ops->submit(ledger, &run, NULL, FIXTURE_QUEUE_MAX, &existing, &asker->err);
	free(manifest);
	return NULL;
}

/* An attempt each, none of them begun. */
static void prepare_askers(struct stage *stage, struct asker askers[static THREADS])
{
	memset(askers, 0, THREADS * sizeof *askers);
	for (int i = 0; i < THREADS; i++) {
		askers[i].stage = stage;
		fixture_accept(&stage->fixture, &askers[i].attempt);
	}
}

/* They wait together, and so are one batch; the last may ask for something else. */
static void ask_together(struct stage *stage, struct asker askers[static THREADS], void *(*each)(void *context),
                         void *(*last)(void *context))
{
	hold_ledger(stage);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&askers[i].thread, NULL, i == THREADS - 1 ? last : each, &askers[i]), 0);
	await_waiting(stage, THREADS);
	let_go(stage);
	for (int i = 0; i < THREADS; i++)
		pthread_join(askers[i].thread, NULL);
}

static const char *state_of(struct stage *stage, const char *run_id, struct ledger_run_state *ret)
{
	struct ledger *ledger = stage->fixture.ledger;
	struct err err = ERR_INIT;

	if (ledger->ops->run_state(ledger, run_id, ret, &err) < 0)
		fail_msg("%s", err.text);
	return ret->latest.state;
}

static void *commit_intent(void *context)
{
	struct asker *asker = context;

	asker->result = fixture_intent(&asker->stage->fixture, &asker->attempt, &asker->err);
	return NULL;
}

static void what_waits_together_waits_for_the_disk_once(void **state)
{
	struct stage *stage = *state;
	struct asker askers[THREADS];
	int before;

	prepare_askers(stage, askers);
	before = atomic_load(&syncs);
	ask_together(stage, askers, commit_intent, commit_intent);
	assert_int_equal(atomic_load(&syncs) - before, 1);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(askers[i].result, 0);
}

/* Of all calls that have returned: whoever asks the ledger's thread after them comes behind what it tells. */
static int changes_of(struct stage *stage)
{
	struct ledger *ledger = stage->fixture.ledger;
	char run_id[ID_SIZE];

	assert_int_equal(ledger->ops->find_run(ledger, "latest", run_id, NULL), 0);
	return atomic_load(&stage->changes);
}

static void what_fails_in_a_batch_fails_alone(void **state)
{
	struct stage *stage = *state;
	struct asker askers[THREADS];
	struct ledger_share_counts before;
	struct ledger_run_state seen;
	int changes;

	prepare_askers(stage, askers);
	for (int i = 0; i < THREADS; i += 2)
		askers[i].attempt.generation = 7; /* fenced */
	before = counts_of(stage);
	changes = changes_of(stage);
	ask_together(stage, askers, append_once, append_once);
	assert_int_equal(counts_of(stage).commits - before.commits, 1);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(askers[i].result, i % 2 ? 0 : ERR_FENCED);
		assert_string_equal(state_of(stage, askers[i].attempt.run_id, &seen), i % 2 ? "preparing" : "queued");
	}
	assert_int_equal(changes_of(stage) - changes, THREADS / 2);
}

/* From now on nothing is written to the ledger's files: their size may not grow. */
static void limit_size(const struct stage *stage, struct rlimit *ret_before)
{
	char path[PATH_SIZE];
	struct rlimit limit;
	struct stat st;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, ret_before), 0);
	limit = *ret_before;
	snprintf(path, sizeof path, "%s/ledger.db-wal", stage->fixture.path);
	assert_int_equal(stat(path, &st), 0);
	limit.rlim_cur = (rlim_t)st.st_size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void all_fail_and_the_ledger_goes_on(struct stage *stage, void *(*last)(void *context))
{
	struct asker askers[THREADS];
	struct ledger_run_state seen;
	struct rlimit before;
	int changes;

	prepare_askers(stage, askers);
	changes = changes_of(stage);
	limit_size(stage, &before);
	ask_together(stage, askers, append_durably, last);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(askers[i].result, askers[0].result);
		assert_true(askers[i].result < 0);
		assert_string_equal(state_of(stage, askers[i].attempt.run_id, &seen), "queued");
	}
	print_message("%s\n", askers[0].err.text);
	assert_int_equal(changes_of(stage), changes);
	for (int i = 0; i < THREADS; i++)
		askers[i].result = 0;
	ask_together(stage, askers, append_once, append_once);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(askers[i].result, 0);
		assert_string_equal(state_of(stage, askers[i].attempt.run_id, &seen), "preparing");
	}
}

static void a_commit_that_fails_fails_all_of_its_batch(void **state)
{
	all_fail_and_the_ledger_goes_on(*state, append_durably);
}

/* It does not fit into the cache, and so is written before the commit. */
static void a_full_disk_in_the_middle_of_a_batch_fails_all_of_it(void **state)
{
	all_fail_and_the_ledger_goes_on(*state, submit_large);
}

static void a_change_is_told_when_it_is_on_the_disk(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = stage->fixture.ledger;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	char run_id[ID_SIZE];
	int before = atomic_load(&syncs);

	fixture_submit(&stage->fixture, NULL, run_id);
	assert_int_equal(changes_of(stage), 1);
	assert_string_equal(stage->changed, run_id);
	assert_true(stage->syncs_at_change > before);
	fixture_claim(&stage->fixture, run_id, &attempt);
	assert_int_equal(changes_of(stage), 2);
	assert_int_equal(ledger->ops->renew(ledger, attempt.attempt_id, attempt.owner_id, 1, &err), 0);
	attempt.generation = 2;
	assert_int_equal(fixture_append(&stage->fixture, &attempt, "late", NULL, &err), ERR_FENCED);
	assert_int_equal(changes_of(stage), 2); /* neither is one */
	attempt.generation = 1;
	assert_int_equal(fixture_append(&stage->fixture, &attempt, "prepared", NULL, &err), 0);
	assert_int_equal(changes_of(stage), 3);
}

static int ask_within(void *context, const struct ledger_list_row *row)
{
	struct stage *stage = context;
	struct ledger *ledger = stage->fixture.ledger;
	struct ledger_run_state seen;

	return ledger->ops->run_state(ledger, row->run_id, &seen, NULL);
}

static int ask_behind(void *context, const struct ledger_attempt *attempt)
{
	struct stage *stage = context;
	struct ledger_run_state seen;

	assert_string_equal(state_of(stage, attempt->run_id, &seen), "queued");
	return 0;
}

static void its_own_thread_may_not_ask_and_the_callers_may(void **state)
{
	struct stage *stage = *state;
	const struct ledger_list_query query = {.limit = 1};
	struct ledger *ledger = stage->fixture.ledger;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;

	fixture_accept(&stage->fixture, &attempt);
	assert_int_equal(ledger->ops->list(ledger, &query, ask_within, stage, &err), ERR_STATE);
	assert_int_equal(ledger->ops->unsealed(ledger, ask_behind, stage, &err), 0);
	assert_int_equal(ledger->ops->attempts(ledger, attempt.run_id, ask_behind, stage, &err), 0);
}

static void a_read_waits_for_no_disk(void **state)
{
	struct stage *stage = *state;
	struct asker writer = {.stage = stage};
	struct ledger_run_state seen;
	int before;

	fixture_accept(&stage->fixture, &writer.attempt);
	before = atomic_load(&syncs);
	atomic_store(&disk_stands, true);
	assert_int_equal(pthread_create(&writer.thread, NULL, append_durably, &writer), 0);
	while (atomic_load(&syncs) == before)
		sched_yield();
	assert_string_equal(state_of(stage, writer.attempt.run_id, &seen), "queued"); /* it is not committed */
	atomic_store(&disk_stands, false);
	pthread_join(writer.thread, NULL);
	assert_int_equal(writer.result, 0);
	assert_string_equal(state_of(stage, writer.attempt.run_id, &seen), "preparing");
}

static void *close_ledger(void *context)
{
	struct stage *stage = context;

	stage->fixture.ledger->ops->close(stage->fixture.ledger);
	return NULL;
}

static void closing_does_what_waits(void **state)
{
	struct stage *stage = *state;
	struct asker askers[THREADS];
	struct ledger_run_state seen;
	struct ledger_fixture again;
	pthread_t closer;

	prepare_askers(stage, askers);
	hold_ledger(stage);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&askers[i].thread, NULL, append_once, &askers[i]), 0);
	await_waiting(stage, THREADS);
	assert_int_equal(pthread_create(&closer, NULL, close_ledger, stage), 0);
	let_go(stage);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(askers[i].thread, NULL);
		assert_int_equal(askers[i].result, 0);
	}
	pthread_join(closer, NULL);
	stage->fixture.ledger = NULL;
	fixture_open(&again, stage->fixture.path, false);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(again.ledger->ops->run_state(again.ledger, askers[i].attempt.run_id, &seen, NULL), 0);
		assert_string_equal(seen.latest.state, "preparing");
	}
	fixture_close(&again);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(those_who_commit_at_once_share_the_disk),
		CASE(what_waits_together_waits_for_the_disk_once),
		CASE(what_fails_in_a_batch_fails_alone),
		CASE(a_commit_that_fails_fails_all_of_its_batch),
		CASE(a_full_disk_in_the_middle_of_a_batch_fails_all_of_it),
		CASE(a_change_is_told_when_it_is_on_the_disk),
		CASE(its_own_thread_may_not_ask_and_the_callers_may),
		CASE(closing_does_what_waits),
		cmocka_unit_test_setup_teardown(a_read_waits_for_no_disk, setup_with_reader, teardown),
		cmocka_unit_test_setup_teardown(its_own_thread_may_not_ask_and_the_callers_may, setup_with_reader, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
