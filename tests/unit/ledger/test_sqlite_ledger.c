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
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "evidence/record.h"
#include "ledger/ledger_dir.h"
#include "ledger/schema/schema.h"
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

/* An empty ledger as the first version of Caisson left it. */
static void make_version_1(char path[static sizeof "/tmp/caisson-test-older-XXXXXX"])
{
	static const char id[] = "led-aaaaaaaaaaaaaaaa";
	char file[PATH_SIZE], identity[PATH_SIZE], text[PATH_SIZE];
	struct statx stx;
	sqlite3 *db;

	memcpy(path, "/tmp/caisson-test-older-XXXXXX", sizeof "/tmp/caisson-test-older-XXXXXX");
	assert_non_null(mkdtemp(path));
	snprintf(file, sizeof file, "%s/ledger.db", path);
	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, ledger_schema[0], NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 1; PRAGMA application_id = 0x43616973;"
	                                  "INSERT INTO ledger VALUES ('led-aaaaaaaaaaaaaaaa', 0);"
	                                  "INSERT INTO run VALUES ('run-aaaaaaaaaaaaaaaa', 'uid:0', 1, x'7b7d', NULL, 0, '{}')",
	                              NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(chmod(file, 0600), 0);
	assert_int_equal(statx(AT_FDCWD, file, 0, STATX_INO | STATX_BTIME, &stx), 0);
	snprintf(text, sizeof text, "caisson.identity/v1 %s %llu %lld.%09u", id, (unsigned long long)stx.stx_ino,
	         (long long)stx.stx_btime.tv_sec, stx.stx_btime.tv_nsec);
	snprintf(identity, sizeof identity, "%s/identity", path);
	FD_AUTO int fd = open(identity, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static int64_t number_in(const char *path, const char *query)
{
	char file[PATH_SIZE];
	sqlite3_stmt *statement;
	int64_t number;
	sqlite3 *db;

	snprintf(file, sizeof file, "%s/ledger.db", path);
	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, query, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return number;
}

static void has_version_1(const char *path)
{
	assert_int_equal(number_in(path, "PRAGMA user_version"), 1);
	assert_int_equal(number_in(path, "SELECT count(*) FROM sqlite_schema WHERE name IN ('attempt_unsealed', 'run_insert')"), 2);
	assert_int_equal(number_in(path, "SELECT count(*) FROM sqlite_schema WHERE name IN ('queue', 'run_submitted')"), 0);
	assert_int_equal(number_in(path, "SELECT count(*) FROM pragma_table_info('run')"), 7);
}

static int count_row(void *context, const char *table, const char *json)
{
	(void)table;
	(void)json;
	++*(int *)context;
	return 0;
}

static void an_older_ledger_is_read_as_it_is_and_brought_up_to_date_to_be_written(void **state)
{
	char path[sizeof "/tmp/caisson-test-older-XXXXXX"], run_id[ID_SIZE];
	struct ledger_fixture fixture;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	int rows = 0;

	(void)state;
	make_version_1(path);
	fixture_open(&fixture, path, true);
	if (fixture.ledger->ops->dump(fixture.ledger, count_row, &rows, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(rows, 2);
	fixture_close(&fixture);
	has_version_1(path);

	fixture_open(&fixture, path, false);
	assert_string_equal(fixture.ledger->ops->id(fixture.ledger), "led-aaaaaaaaaaaaaaaa");
	assert_int_equal(fixture.ledger->ops->find_run(fixture.ledger, "latest", run_id, &err), 0);
	assert_string_equal(run_id, "run-aaaaaaaaaaaaaaaa");
	fixture_submit(&fixture, "key", run_id);
	fixture_claim(&fixture, run_id, &attempt);
	fixture_run(&fixture, &attempt);
	fixture_close(&fixture);
	assert_int_equal(number_in(path, "PRAGMA user_version"), ledger_schema_version);
	fixture_remove_tree(path);
}

static void an_older_copy_is_not_brought_up_to_date(void **state)
{
	char path[sizeof "/tmp/caisson-test-older-XXXXXX"], identity[PATH_SIZE];
	struct err err = ERR_INIT;

	(void)state;
	make_version_1(path);
	snprintf(identity, sizeof identity, "%s/identity", path);
	assert_int_equal(unlink(identity), 0);
	assert_int_equal(try_open(path, false, &err), ERR_FOREIGN);
	has_version_1(path);
	fixture_remove_tree(path);
}

static void a_migration_that_fails_leaves_the_older_ledger(void **state)
{
	char path[sizeof "/tmp/caisson-test-older-XXXXXX"], file[PATH_SIZE];
	struct err err = ERR_INIT;
	sqlite3 *db;

	(void)state;
	make_version_1(path);
	snprintf(file, sizeof file, "%s/ledger.db", path);
	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	/* In the way of one of the last things that it does. */
	assert_int_equal(sqlite3_exec(db, "DROP TRIGGER record_insert", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_true(try_open(path, false, &err) < 0);
	has_version_1(path);
	fixture_remove_tree(path);
}

#ifdef CAISSON_FAULT_POINTS
static void a_migration_that_is_killed_leaves_the_older_ledger(void **state)
{
	char path[sizeof "/tmp/caisson-test-older-XXXXXX"];
	struct err err = ERR_INIT;
	int status;
	pid_t child;

	(void)state;
	make_version_1(path);
	child = fork();
	if (child == 0) {
		setenv("CAISSON_FAULT", "ledger.migrating:kill", 1);
		_exit(try_open(path, false, &err) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	has_version_1(path);
	if (try_open(path, false, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(number_in(path, "PRAGMA user_version"), ledger_schema_version);
	fixture_remove_tree(path);
}
#endif

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
		cmocka_unit_test(an_older_ledger_is_read_as_it_is_and_brought_up_to_date_to_be_written),
		cmocka_unit_test(an_older_copy_is_not_brought_up_to_date),
		cmocka_unit_test(a_migration_that_fails_leaves_the_older_ledger),
#ifdef CAISSON_FAULT_POINTS
		cmocka_unit_test(a_migration_that_is_killed_leaves_the_older_ledger),
#endif
		cmocka_unit_test(twenty_processes_make_one_ledger), /* last: it forks, and must not have a ledger open */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
