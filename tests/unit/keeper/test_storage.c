/* test_storage.c - a sweep takes what nothing names, and nothing else; a check names what is wrong, and whose it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/tree.h"
#include "base/fd.h"
#include "keeper/storage.h"
#include "ledger_fixture.h"

enum { SHARDED = SWEEP_BATCH + 200, HOUR_MS = 3600 * 1000 };

struct stage {
	struct ledger_fixture fixture;
	struct store *store;
	struct ledger_attempt attempt; /* a sealed run; its artifacts are nothing at all, and "hello\n" */
	struct digest hello, nothing;
};

static struct digest put(struct stage *stage, const char *text)
{
	struct digest digest;
	assert_int_equal(store_put_bytes(stage->store, text, strlen(text), false, &digest, NULL), 0);
	return digest;
}

static int setup(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	fixture_make(&stage->fixture);
	mkdirat(stage->fixture.dir, "store", 0700);
	FD_AUTO int dir = openat(stage->fixture.dir, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = stage;
	if (store_open(dir, &stage->store, NULL) < 0)
		return -1;
	stage->hello = put(stage, "hello\n");
	stage->nothing = put(stage, "");
	fixture_run(&stage->fixture, &stage->attempt);
	return 0;
}

static int teardown(void **state)
{
	struct stage *stage = *state;
	store_free(stage->store);
	fixture_remove(&stage->fixture);
	free(stage);
	return 0;
}

static struct sweep_result sweep(struct stage *stage, int64_t max_bytes, int64_t older_ms, bool dry_run)
{
	const struct sweep_options options = {.max_bytes = max_bytes, .older_ms = older_ms, .dry_run = dry_run};
	struct sweep_result result;
	struct err err = ERR_INIT;
	if (storage_sweep(stage->fixture.ledger, stage->store, &options, &result, &err) < 0)
		fail_msg("%s", err.text);
	return result;
}

static bool is_there(struct stage *stage, const struct digest *digest)
{
	return store_check(stage->store, digest, NULL) == 0;
}

static void what_a_receipt_names_stays(void **state)
{
	struct stage *stage = *state;
	struct digest unnamed = put(stage, "unnamed");
	struct sweep_result dry = sweep(stage, -1, 0, true);
	assert_int_equal(dry.removed, 1);
	assert_true(is_there(stage, &unnamed));
	struct sweep_result result = sweep(stage, -1, 0, false);
	assert_int_equal(result.objects, 3);
	assert_int_equal(result.bytes, 13);
	assert_int_equal(result.removed, 1);
	assert_int_equal(result.removed_bytes, 7);
	assert_false(is_there(stage, &unnamed));
	assert_true(is_there(stage, &stage->hello) && is_there(stage, &stage->nothing));
}

static void make_older(struct stage *stage, const struct digest *digest, int64_t hours)
{
	char path[DIGEST_HEX_SIZE + 32], hex[DIGEST_HEX_SIZE];
	struct stat status;
	snprintf(path, sizeof(path), "store/objects/%.2s/%.62s", digest_hex(digest, hex), hex + 2);
	assert_int_equal(fstatat(stage->fixture.dir, path, &status, 0), 0);
	status.st_mtim.tv_sec -= hours * 3600;
	assert_int_equal(utimensat(stage->fixture.dir, path, (struct timespec[2]){status.st_atim, status.st_mtim}, 0), 0);
}

static void the_oldest_goes_first_until_the_store_is_small_enough(void **state)
{
	struct stage *stage = *state;
	struct digest newest = put(stage, "12345"), middle = put(stage, "67890"), oldest = put(stage, "abcde");
	make_older(stage, &oldest, 3);
	make_older(stage, &middle, 2);
	make_older(stage, &stage->hello, 4); /* older than all, and named */
	assert_int_equal(sweep(stage, 21, 0, false).removed, 0);
	assert_int_equal(sweep(stage, 20, 0, false).removed, 1);
	assert_true(!is_there(stage, &oldest) && is_there(stage, &middle));
	assert_int_equal(sweep(stage, 0, HOUR_MS, false).removed, 1);
	assert_true(!is_there(stage, &middle) && is_there(stage, &newest));
	assert_int_equal(sweep(stage, 0, 0, false).removed, 1);
	assert_true(is_there(stage, &stage->hello));
}

/* Without its copy a listing would pass for a file of that digest: it goes first, however young it is. */
static void a_listing_never_outlives_its_directory(void **state)
{
	struct stage *stage = *state;
	struct digest digest;
	int64_t size;
	mkdirat(stage->fixture.dir, "tree", 0755);
	FD_AUTO int dir = openat(stage->fixture.dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FD_AUTO int file = openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_all(file, "0123456789", 10), 0);
	assert_int_equal(store_put_tree(stage->store, dir, 100, &digest, &size, NULL), 0);
	make_older(stage, &digest, -3);
	struct sweep_result all = sweep(stage, -1, 0, true);
	assert_int_equal(all.removed, 2);
	assert_int_equal(sweep(stage, all.bytes - 1, 0, false).removed, 1);
	assert_false(is_there(stage, &digest));
	assert_int_equal(store_check_tree(stage->store, &digest, NULL), 0);
	assert_int_equal(sweep(stage, -1, 0, false).removed, 1);
	assert_int_equal(store_check_tree(stage->store, &digest, NULL), ERR_NOT_FOUND);
	unlinkat(dir, "file", 0);
}

static void more_than_a_batch_goes_in_several(void **state)
{
	struct stage *stage = *state;
	char text[32];
	for (int i = 0; i < SHARDED; i++) {
		snprintf(text, sizeof(text), "object %d", i);
		put(stage, text);
	}
	assert_int_equal(sweep(stage, -1, 0, false).removed, SHARDED);
	assert_int_equal(sweep(stage, -1, 0, false).objects, 2);
}

static void a_sweep_stands_down_when_nobody_knows_what_a_run_needs(void **state)
{
	struct stage *stage = *state;
	const struct sweep_options options = {.max_bytes = -1};
	struct sweep_result result;
	struct ledger_attempt open;
	struct err err = ERR_INIT;
	struct digest unnamed = put(stage, "unnamed");
	fixture_accept(&stage->fixture, &open); /* its plan is none */
	assert_int_equal(storage_sweep(stage->fixture.ledger, stage->store, &options, &result, &err), ERR_DAMAGED);
	assert_non_null(strstr(err.text, open.run_id));
	assert_true(is_there(stage, &unnamed));
	assert_int_equal(store_hold(stage->store, NULL), 0); /* and lets others go on */
	store_release(stage->store);
	assert_int_equal(fixture_intent(&stage->fixture, &open, &err), 0);
	assert_int_equal(fixture_seal(&stage->fixture, &open, "bye\n", &err), 0);
	assert_int_equal(sweep(stage, -1, 0, false).removed, 1);
}

static void what_a_queued_run_needs_is_asked_for_too(void **state)
{
	struct stage *stage = *state;
	const struct sweep_options options = {.max_bytes = -1};
	struct sweep_result result;
	struct ledger_attempt attempt;
	char run_id[ID_SIZE];
	struct err err = ERR_INIT;
	fixture_submit(&stage->fixture, NULL, run_id); /* its plan is none either */
	assert_int_equal(storage_sweep(stage->fixture.ledger, stage->store, &options, &result, &err), ERR_DAMAGED);
	assert_non_null(strstr(err.text, run_id));
	fixture_claim(&stage->fixture, run_id, &attempt);
	assert_int_equal(storage_sweep(stage->fixture.ledger, stage->store, &options, &result, &err), ERR_DAMAGED);
	assert_int_equal(fixture_abandon(&stage->fixture, &attempt, &err), 0);
	assert_int_equal(storage_sweep(stage->fixture.ledger, stage->store, &options, &result, &err), ERR_DAMAGED);
	fixture_claim(&stage->fixture, run_id, &attempt);
	assert_int_equal(fixture_seal(&stage->fixture, &attempt, "bye\n", &err), 0);
	assert_int_equal(sweep(stage, -1, 0, false).removed, 0);
}

struct seen {
	int count;
	struct storage_finding last;
	char object[DIGEST_TEXT_SIZE], run_id[ID_SIZE], name[64];
};

static void note(void *context, const struct storage_finding *finding)
{
	struct seen *seen = context;
	seen->count++;
	seen->last = *finding;
	snprintf(seen->object, sizeof(seen->object), "%s", finding->object);
	if (finding->reference_count > 0) {
		snprintf(seen->run_id, sizeof(seen->run_id), "%s", finding->references[0].run_id);
		snprintf(seen->name, sizeof(seen->name), "%s", finding->references[0].name);
	}
}

static struct storage_report check(struct stage *stage, struct seen *seen)
{
	struct storage_report report;
	struct err err = ERR_INIT;
	*seen = (struct seen){0};
	if (storage_check(stage->fixture.ledger, stage->store, note, seen, &report, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(report.findings, seen->count);
	return report;
}

static void a_sound_store_has_no_findings(void **state)
{
	struct stage *stage = *state;
	struct seen seen;
	put(stage, "unnamed");
	struct storage_report report = check(stage, &seen);
	assert_int_equal(seen.count, 0);
	assert_int_equal(report.objects, 3);
	assert_int_equal(report.unnamed, 1);
	assert_int_equal(report.unnamed_bytes, 7);
}

static void what_is_missing_is_named_with_its_run(void **state)
{
	struct stage *stage = *state;
	struct seen seen;
	char text[DIGEST_TEXT_SIZE];
	assert_int_equal(store_sweep_begin(stage->store, 0, NULL), 0);
	assert_int_equal(store_remove(stage->store, &stage->hello, NULL), 0);
	store_sweep_end(stage->store);
	check(stage, &seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.last.kind, STORAGE_MISSING);
	assert_string_equal(seen.object, digest_text(&stage->hello, text));
	assert_string_equal(seen.run_id, stage->attempt.run_id);
	assert_string_equal(seen.name, "dir/b\n");
}

static void other_bytes_are_damage(void **state)
{
	struct stage *stage = *state;
	struct seen seen;
	char path[DIGEST_HEX_SIZE + 32], hex[DIGEST_HEX_SIZE];
	snprintf(path, sizeof(path), "store/objects/%.2s/%.62s", digest_hex(&stage->hello, hex), hex + 2);
	assert_int_equal(fchmodat(stage->fixture.dir, path, 0755, 0), 0);
	FD_AUTO int fd = openat(stage->fixture.dir, path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "j", 1, 0), 1);
	assert_int_equal(fchmod(fd, 0555), 0);
	check(stage, &seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.last.kind, STORAGE_DAMAGED);
	assert_string_equal(seen.run_id, stage->attempt.run_id);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(what_a_receipt_names_stays),
		CASE(the_oldest_goes_first_until_the_store_is_small_enough),
		CASE(a_listing_never_outlives_its_directory),
		CASE(more_than_a_batch_goes_in_several),
		CASE(a_sweep_stands_down_when_nobody_knows_what_a_run_needs),
		CASE(what_a_queued_run_needs_is_asked_for_too),
		CASE(a_sound_store_has_no_findings),
		CASE(what_is_missing_is_named_with_its_run),
		CASE(other_bytes_are_damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
