/* test_sqlite_ledger.c - opening: what is made, what is refused, and that nothing is repaired or deleted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "evidence/record.h"
#include "ledger/ledger_dir.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "ledger_fixture.h"

enum { PATH_SIZE = FIXTURE_PATH_SIZE + 32, CREATORS = 20 };

static int setup(void **state)
{
	struct ledger_fixture *fixture = calloc(1, sizeof *fixture);

	fixture_make(fixture);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	fixture_remove(*state);
	free(*state);
	return 0;
}

static int try_open(const char *path, bool read_only, struct err *err)
{
	const struct sqlite_ledger_options options = {.read_only = read_only, .record_digest = record_digest};
	FD_AUTO int dir = -1;
	struct ledger *ledger = NULL;
	int r = ledger_dir_open(path, false, &dir, NULL, err);

	if (r == 0)
		r = sqlite_ledger_open(dir, &options, &ledger, err);
	if (r == 0)
		ledger->ops->close(ledger);
	return r;
}

static void raw(const struct ledger_fixture *fixture, const char *sql)
{
	char path[PATH_SIZE];
	sqlite3 *db;

	snprintf(path, sizeof path, "%s/ledger.db", fixture->path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	sqlite3_close(db);
}

static void overwrite(const char *path, const char *text)
{
	FD_AUTO int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
}

static void a_ledger_opens_again_with_the_same_id(void **state)
{
	struct ledger_fixture *fixture = *state, again;
	char id[ID_SIZE];

	snprintf(id, sizeof id, "%s", fixture->ledger->ops->id(fixture->ledger));
	assert_true(id_valid("led", id));
	fixture_close(fixture);
	fixture_open(&again, fixture->path, false);
	assert_string_equal(again.ledger->ops->id(again.ledger), id);
	fixture_close(&again);
}

static void its_files_are_for_us_alone(void **state)
{
	static const char *const names[] = {"ledger.db", "ledger.db-wal", "ledger.db-shm", "identity", "key"};
	const struct ledger_fixture *fixture = *state;
	struct stat st;

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		assert_int_equal(fstatat(fixture->dir, names[i], &st, 0), 0);
		assert_int_equal(st.st_mode & 077, 0);
	}
}

static void reading_makes_nothing(void **state)
{
	char path[] = "/tmp/caisson-test-empty-XXXXXX";
	struct err err = ERR_INIT;

	(void)state;
	assert_non_null(mkdtemp(path));
	assert_int_equal(try_open(path, true, &err), ERR_NOT_FOUND);
	assert_int_equal(rmdir(path), 0); /* empty still */
}

static void a_newer_ledger_is_refused(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct err err = ERR_INIT;

	fixture_close(fixture);
	raw(fixture, "PRAGMA user_version = 99");
	assert_int_equal(try_open(fixture->path, false, &err), ERR_TOO_NEW);
	assert_non_null(strstr(err.text, "newer Caisson (schema 99"));
	assert_int_equal(try_open(fixture->path, true, &err), ERR_TOO_NEW);
}

static void another_programs_database_is_left_alone(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct err err = ERR_INIT;

	fixture_close(fixture);
	raw(fixture, "PRAGMA application_id = 1");
	assert_int_equal(try_open(fixture->path, false, &err), ERR_FOREIGN);
	raw(fixture, "PRAGMA application_id = 0; PRAGMA user_version = 0");
	assert_int_equal(try_open(fixture->path, false, &err), ERR_FOREIGN); /* it has tables that are not known to be ours */
}

static void a_file_that_is_no_database_is_left_alone(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct err err = ERR_INIT;
	char path[PATH_SIZE], start[16] = "";

	fixture_close(fixture);
	raw(fixture, "PRAGMA journal_mode = DELETE");
	snprintf(path, sizeof path, "%s/ledger.db", fixture->path);
	overwrite(path, "this is no ledger");
	assert_int_equal(try_open(fixture->path, false, &err), ERR_DAMAGED);
	FD_AUTO int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, start, 15), 15);
	assert_string_equal(start, "this is no ledg");
}

static void copy_into(const struct ledger_fixture *fixture, const char *name, const char *copy)
{
	char from[PATH_SIZE], to[PATH_SIZE];

	snprintf(from, sizeof from, "%s/%s", fixture->path, name);
	snprintf(to, sizeof to, "%s/%s", fixture->path, copy);
	fixture_copy_file(from, to);
}

static void a_copied_ledger_is_verified_but_not_written(void **state)
{
	struct ledger_fixture *fixture = *state;
	char copy[PATH_SIZE];
	struct err err = ERR_INIT;

	fixture_close(fixture);
	snprintf(copy, sizeof copy, "%s/copy", fixture->path);
	assert_int_equal(mkdir(copy, 0700), 0);
	copy_into(fixture, "ledger.db", "copy/ledger.db");
	copy_into(fixture, "ledger.db-wal", "copy/ledger.db-wal");
	copy_into(fixture, "identity", "copy/identity");
	assert_int_equal(try_open(copy, false, &err), ERR_FOREIGN);
	assert_non_null(strstr(err.text, "ledger was copied"));
	assert_int_equal(try_open(copy, true, &err), 0);
}

static void a_moved_ledger_is_the_same_ledger(void **state)
{
	struct ledger_fixture *fixture = *state;
	char moved[PATH_SIZE];
	struct err err = ERR_INIT;

	fixture_close(fixture);
	snprintf(moved, sizeof moved, "%s-moved", fixture->path);
	assert_int_equal(rename(fixture->path, moved), 0);
	assert_int_equal(try_open(moved, false, &err), 0);
	assert_int_equal(rename(moved, fixture->path), 0);
}

static void an_older_copy_put_back_in_place_is_refused(void **state)
{
	struct ledger_fixture *fixture = *state;
	char saved[PATH_SIZE], path[PATH_SIZE];
	struct err err = ERR_INIT;

	fixture_close(fixture);
	copy_into(fixture, "ledger.db", "saved");
	snprintf(saved, sizeof saved, "%s/saved", fixture->path);
	snprintf(path, sizeof path, "%s/ledger.db", fixture->path);
	assert_int_equal(rename(saved, path), 0);
	assert_int_equal(try_open(fixture->path, false, &err), ERR_FOREIGN);
}

static void a_database_that_others_can_write_or_name_is_refused(void **state)
{
	struct ledger_fixture *fixture = *state;
	char path[PATH_SIZE], other[PATH_SIZE];
	struct err err = ERR_INIT;

	fixture_close(fixture);
	snprintf(path, sizeof path, "%s/ledger.db", fixture->path);
	snprintf(other, sizeof other, "%s/other-name", fixture->path);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(try_open(fixture->path, false, &err), ERR_PERMISSION);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(link(path, other), 0);
	assert_int_equal(try_open(fixture->path, false, &err), ERR_PERMISSION);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(try_open(fixture->path, false, &err), ERR_PERMISSION);
}

/* All begin together, when the pipe closes. */
static void twenty_processes_make_one_ledger(void **state)
{
	char path[] = "/tmp/caisson-test-creators-XXXXXX";
	int go[2];

	(void)state;
	assert_non_null(mkdtemp(path));
	assert_int_equal(pipe(go), 0);
	for (int i = 0; i < CREATORS; i++)
		if (fork() == 0) {
			struct ledger_fixture own;
			struct ledger_attempt attempt;
			char byte;

			close(go[1]);
			if (read(go[0], &byte, 1) != 0)
				_exit(1);
			fixture_open(&own, path, false);
			fixture_run(&own, &attempt);
			fixture_close(&own);
			_exit(0);
		}
	close(go[0]);
	close(go[1]);
	for (int i = 0; i < CREATORS; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	fixture_remove_tree(path);
}

static bool has_owner_file(const struct ledger_fixture *fixture, const char *owner_id)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof path, "%s/owners/%s", fixture->path, owner_id);
	return access(path, F_OK) == 0;
}

static int ignore_attempt(void *context, const struct ledger_attempt *attempt)
{
	(void)context;
	(void)attempt;
	return 0;
}

static void an_owner_leaves_no_file_and_a_dead_ones_is_swept(void **state)
{
	struct ledger_fixture *fixture = *state, second;
	char id[ID_SIZE], path[PATH_SIZE];
	struct err err = ERR_INIT;

	memcpy(id, fixture->owner.owner_id, sizeof id);
	assert_true(has_owner_file(fixture, id));
	fixture_close(fixture);
	assert_false(has_owner_file(fixture, id));

	snprintf(path, sizeof path, "%s/owners/own-aaaaaaaaaaaaaaaa", fixture->path); /* as a killed keeper leaves it */
	fclose(fopen(path, "w"));
	fixture_open(&second, fixture->path, false);
	assert_int_equal(second.ledger->ops->unsealed(second.ledger, ignore_attempt, NULL, &err), 0);
	assert_false(has_owner_file(fixture, "own-aaaaaaaaaaaaaaaa"));
	assert_true(has_owner_file(fixture, second.owner.owner_id));
	fixture_close(&second);
}

static void closing_in_a_forked_child_does_nothing(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct ledger_attempt attempt;
	pid_t child = fork();
	int status;

	if (child == 0) {
		fixture->ledger->ops->close(fixture->ledger);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(has_owner_file(fixture, fixture->owner.owner_id));
	fixture_run(fixture, &attempt);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_ledger_opens_again_with_the_same_id),
		CASE(its_files_are_for_us_alone),
		CASE(reading_makes_nothing),
		CASE(a_newer_ledger_is_refused),
		CASE(another_programs_database_is_left_alone),
		CASE(a_file_that_is_no_database_is_left_alone),
		CASE(a_copied_ledger_is_verified_but_not_written),
		CASE(a_moved_ledger_is_the_same_ledger),
		CASE(an_older_copy_put_back_in_place_is_refused),
		CASE(a_database_that_others_can_write_or_name_is_refused),
		CASE(an_owner_leaves_no_file_and_a_dead_ones_is_swept),
		CASE(closing_in_a_forked_child_does_nothing),
		cmocka_unit_test(twenty_processes_make_one_ledger), /* last: it forks, and must not have a ledger open */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
