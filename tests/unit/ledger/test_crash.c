/* test_crash.c - many processes at once, and some killed in the middle: each commit is whole or absent, everything verifies. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "evidence/verify.h"
#include "ledger_fixture.h"

enum { PROCESSES = 8, RUNS_EACH = 12, KILLS = 30, PATH_SIZE = FIXTURE_PATH_SIZE + 16 };

/* This program forks only while it has no ledger open itself. */
static int setup(void **state)
{
	struct ledger_fixture *fixture = calloc(1, sizeof *fixture);

	fixture_make(fixture);
	fixture_close(fixture);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	fixture_remove(*state);
	free(*state);
	return 0;
}

static int dump(void *context, int (*row)(void *row_context, const char *table, const char *json), void *row_context,
                struct err *err)
{
	struct ledger *ledger = context;

	return ledger->ops->dump(ledger, row, row_context, err);
}

/* There is no store; what is asked is whether the rows hold. */
static int object_is_whole(void *context, const struct digest *digest, struct err *err)
{
	(void)context;
	(void)digest;
	(void)err;
	return 0;
}

static void show_line(void *context, enum verify_line_kind kind, const char *line)
{
	(void)context;
	if (kind == VERIFY_PROBLEM)
		print_message("%s\n", line);
}

static void check_whole(const struct ledger_fixture *fixture, struct verify_report *ret)
{
	struct verify_options options = {.run_id = NULL};
	struct verify_source source = {.dump = dump, .object = object_is_whole};
	struct ledger_fixture reader;
	struct err err = ERR_INIT;

	fixture_open(&reader, fixture->path, true);
	source.context = reader.ledger;
	assert_int_equal(verify(&source, &options, show_line, NULL, ret, &err), 0);
	fixture_close(&reader);
	assert_int_equal(ret->problems, 0);
}

static void check_integrity(const struct ledger_fixture *fixture)
{
	char path[PATH_SIZE];
	sqlite3_stmt *statement;
	sqlite3 *db;

	snprintf(path, sizeof path, "%s/ledger.db", fixture->path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	assert_string_equal(sqlite3_column_text(statement, 0), "ok");
	sqlite3_finalize(statement);
	sqlite3_close(db);
}

static void eight_keepers_share_a_ledger(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct verify_report report;

	for (int i = 0; i < PROCESSES; i++)
		if (fork() == 0) {
			struct ledger_fixture own;
			struct ledger_attempt attempt;

			fixture_open(&own, fixture->path, false);
			for (int run = 0; run < RUNS_EACH; run++)
				fixture_run(&own, &attempt);
			fixture_close(&own);
			_exit(0);
		}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	check_whole(fixture, &report);
	assert_int_equal(report.sealed, PROCESSES * RUNS_EACH);
	assert_int_equal(report.unsealed, 0);
	check_integrity(fixture);
}

/* Tells how many runs it has sealed, a byte for each, until it is killed. */
static void seal_until_killed(const char *path, int report)
{
	struct ledger_fixture own;
	struct ledger_attempt attempt;

	fixture_open(&own, path, false);
	for (;;) {
		fixture_run(&own, &attempt);
		if (write(report, "", 1) != 1)
			_exit(1);
	}
}

static void what_was_acknowledged_outlives_a_kill_in_the_middle(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct verify_report report;
	int64_t acknowledged = 0;

	for (int i = 0; i < KILLS; i++) {
		int report_pipe[2], status;
		char byte;
		pid_t child;

		assert_int_equal(pipe(report_pipe), 0);
		child = fork();
		if (child == 0)
			seal_until_killed(fixture->path, report_pipe[1]);
		close(report_pipe[1]);
		/* After its first run, at a moment that differs from round to round. */
		assert_int_equal(read(report_pipe[0], &byte, 1), 1);
		acknowledged++;
		usleep((useconds_t)(i * 137 % 2000));
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		while (read(report_pipe[0], &byte, 1) == 1)
			acknowledged++;
		close(report_pipe[0]);
	}
	check_whole(fixture, &report);
	assert_true(report.sealed >= acknowledged);
	assert_true(report.unsealed <= KILLS);
	print_message("%d kills: %lld runs sealed, %lld left unsealed\n", KILLS, (long long)report.sealed,
	              (long long)report.unsealed);
	check_integrity(fixture);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(eight_keepers_share_a_ledger),
		CASE(what_was_acknowledged_outlives_a_kill_in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
