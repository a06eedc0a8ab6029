/* test_schema.c - the rules that do not depend on code: raw SQL against a ledger that Caisson made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "ledger/sqlite/db.h"
#include "ledger_fixture.h"

enum { PATH_SIZE = FIXTURE_PATH_SIZE + 16, KEPT = 4 };

struct stage {
	struct ledger_fixture fixture;
	struct ledger_attempt sealed, open;
	struct ledger_attempt kept[KEPT]; /* none of which may be abandoned, each for a reason of its own */
	sqlite3 *db;
};

/* Two runs that wait, one of them again; one claimed, one launched, one in its third attempt, one attached. */
static void submit_runs(struct stage *stage)
{
	struct ledger_fixture *fixture = &stage->fixture;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	char run_id[ID_SIZE];

	fixture_submit(fixture, "key", run_id);
	fixture_submit(fixture, NULL, run_id);
	fixture_claim(fixture, run_id, &attempt);
	assert_int_equal(fixture_abandon(fixture, &attempt, &err), 0);
	for (int i = 0; i < KEPT - 1; i++) {
		fixture_submit(fixture, NULL, run_id);
		fixture_claim(fixture, run_id, &stage->kept[i]);
	}
	fixture_accept(fixture, &stage->kept[KEPT - 1]);
	assert_int_equal(fixture_intent(fixture, &stage->kept[1], &err), 0);
	for (int i = 1; i < LEDGER_ATTEMPTS_MAX; i++) {
		assert_int_equal(fixture_abandon(fixture, &stage->kept[2], &err), 0);
		fixture_claim(fixture, run_id, &stage->kept[2]);
	}
	for (int i = 1; i < KEPT; i++)
		assert_int_equal(fixture_append(fixture, &stage->kept[i], "abandoned", NULL, &err), 0);
}

/* One sealed run, one that has only begun, and detached ones; then the ledger belongs to whoever has an SQL shell. */
static int setup(void **state)
{
	struct stage *stage = calloc(1, sizeof *stage);
	char path[PATH_SIZE];
	struct err err = ERR_INIT;

	fixture_make(&stage->fixture);
	fixture_run(&stage->fixture, &stage->sealed);
	fixture_accept(&stage->fixture, &stage->open);
	submit_runs(stage);
	assert_int_equal(
		stage->fixture.ledger->ops->renew(stage->fixture.ledger, stage->open.attempt_id, stage->open.owner_id, 1, &err), 0);
	fixture_close(&stage->fixture);
	snprintf(path, sizeof path, "%s/ledger.db", stage->fixture.path);
	assert_int_equal(sqlite3_open(path, &stage->db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(stage->db, "PRAGMA foreign_keys = ON", NULL, NULL, NULL), SQLITE_OK);
	*state = stage;
	return 0;
}

static int teardown(void **state)
{
	struct stage *stage = *state;

	sqlite3_close(stage->db);
	fixture_remove(&stage->fixture);
	free(stage);
	return 0;
}

/* The statement must fail, for this reason. ?1 is the open run, ?2 its attempt, ?3 the sealed run, ?4 its attempt, ?5 the owner. */
static void assert_refused(struct stage *stage, const char *reason, const char *sql)
{
	const char *const values[] = {stage->open.run_id, stage->open.attempt_id, stage->sealed.run_id, stage->sealed.attempt_id,
	                              stage->open.owner_id};
	sqlite3_stmt *statement;
	int rc;

	if (sqlite3_prepare_v2(stage->db, sql, -1, &statement, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(stage->db));
	for (int i = 0; i < sqlite3_bind_parameter_count(statement); i++)
		sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_STATIC);
	rc = sqlite3_step(statement);
	if (rc != SQLITE_CONSTRAINT || !strstr(sqlite3_errmsg(stage->db), reason))
		fail_msg("%s: %d %s, not \"%s\"", sql, rc, sqlite3_errmsg(stage->db), reason);
	sqlite3_finalize(statement);
}

static void a_second_launch_intent_is_refused(void **state)
{
	assert_refused(*state, "launched once",
	               "INSERT INTO launch_intent SELECT run_id, attempt_id, generation, at + 1 FROM launch_intent");
}

static void an_intent_is_of_an_attempt_of_the_run_and_of_the_lease_that_holds(void **state)
{
	assert_refused(*state, "launched once",
	               "INSERT INTO launch_intent SELECT run_id, ?4, 1, 0 FROM run WHERE run_id = ?1 OR ?2 = ?3");
	assert_refused(*state, "launched once", "INSERT INTO launch_intent VALUES (?1, ?2, 2, 0)");
}

static void a_cancelled_run_gets_no_launch_intent(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(sqlite3_exec(stage->db,
	                              "BEGIN; INSERT INTO cancellation SELECT run_id, 0 FROM run WHERE attached"
	                              " AND run_id NOT IN (SELECT run_id FROM seal)", NULL, NULL, NULL),
	                 SQLITE_OK);
	assert_refused(stage, "launched once", "INSERT INTO launch_intent VALUES (?1, ?2, 1, 0)");
	assert_int_equal(sqlite3_exec(stage->db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
}

static void every_table_is_append_only(void **state)
{
	static const char *const tables[][2] = {{"ledger", "created_at = 0"},   {"owner", "started_at = 0"},
	                                        {"run", "principal = 'uid:1'"}, {"record", "body = '{}'"},
	                                        {"stream", "drained = 0"},      {"launch_intent", "at = 0"},
	                                        {"artifact", "mode = 420"},
	                                        {"key", "public_key = key"},    {"seal", "receipt = '{}'"}};
	char sql[128];

	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		snprintf(sql, sizeof sql, "UPDATE %s SET %s", tables[i][0], tables[i][1]);
		assert_refused(*state, "append-only", sql);
		snprintf(sql, sizeof sql, "DELETE FROM %s", tables[i][0]);
		assert_refused(*state, "append-only", sql);
	}
	assert_refused(*state, "append-only", "DELETE FROM attempt");
	assert_refused(*state, "append-only", "DELETE FROM lease");
}

/* REPLACE deletes without a DELETE trigger unless recursive triggers are on; it must not be a way around. */
static void replace_is_no_way_around(void **state)
{
	assert_refused(*state, "", "INSERT OR REPLACE INTO record SELECT attempt_id, seq, at, kind, '{}', prev_digest FROM record");
	assert_refused(*state, "", "INSERT OR REPLACE INTO seal SELECT key, seal_seq, run_id, attempt_id, '{}' FROM seal");
	assert_refused(*state, "",
	               "INSERT OR REPLACE INTO launch_intent SELECT run_id, attempt_id, generation, 0 FROM launch_intent");
	assert_refused(*state, "",
	               "INSERT OR REPLACE INTO stream SELECT attempt_id, name, sha256, bytes, kept_bytes, dropped_bytes, 0, data"
	               " FROM stream");
	assert_refused(*state, "",
	               "INSERT OR REPLACE INTO run SELECT run_id, 'uid:1', attached, manifest, plan, created_at, labels, NULL FROM run");
	assert_refused(*state, "append-only",
	               "INSERT OR REPLACE INTO run SELECT 'run-x', principal, attached, manifest, plan, created_at, labels, idempotency_key"
	               " FROM run WHERE idempotency_key = 'key'");
	assert_refused(*state, "", "INSERT OR REPLACE INTO owner SELECT owner_id, epoch, '', started_at FROM owner");
	assert_refused(*state, "", "INSERT OR REPLACE INTO lease SELECT attempt_id, generation, owner_id, 0, ttl_ms FROM lease");
	assert_refused(*state, "",
	               "INSERT OR REPLACE INTO attempt SELECT attempt_id, run_id, number, boundary_id, profile, slot, 'running'"
	               " FROM attempt");
	assert_refused(*state, "", "INSERT OR REPLACE INTO artifact SELECT attempt_id, path, size_bytes, sha256, 420 FROM artifact");
	assert_refused(*state, "", "INSERT OR REPLACE INTO key SELECT key, key FROM key");
}

static void a_sealed_attempt_does_not_change(void **state)
{
	assert_refused(*state, "unsealed attempt",
	               "UPDATE attempt SET state = 'running' WHERE attempt_id = ?4 OR (0 AND ?1 || ?2 || ?3)");
	assert_refused(*state, "unsealed attempt", "UPDATE attempt SET slot = 7 WHERE attempt_id = ?2");
	assert_refused(*state, "until the seal", "INSERT INTO lease VALUES (?4, 2, ?5, 0, 1000 + (0 AND ?1 || ?2 || ?3))");
	assert_refused(*state, "none follows the rows",
	               "INSERT INTO record SELECT attempt_id, seq + 1, at, kind, body, prev_digest FROM record"
	               " WHERE kind = 'rows'");
	assert_refused(*state, "gets no stream",
	               "INSERT INTO stream SELECT attempt_id, 'stdlog', sha256, 0, 0, 0, 1, x'' FROM stream");
	assert_refused(*state, "gets no artifact", "INSERT INTO artifact SELECT attempt_id, x'00', 0, sha256, 420 FROM artifact");
	assert_refused(*state, "before its seal", "INSERT INTO cancellation VALUES (?3, 0 AND ?1 || ?2)");
	assert_refused(
		*state, "no further attempt",
		"INSERT INTO attempt SELECT 'att-x', run_id, 2, 'bnd-x', profile, 9, 'queued' FROM attempt WHERE state = 'sealed'");
}

static void a_generation_only_grows_by_one(void **state)
{
	assert_refused(*state, "only grows",
	               "INSERT INTO lease SELECT attempt_id, 3, owner_id, 0, ttl_ms FROM lease WHERE renewals = 1");
	assert_refused(*state, "only grows",
	               "INSERT INTO lease SELECT attempt_id, 1, owner_id, 0, ttl_ms FROM lease WHERE renewals = 1");
	assert_refused(*state, "renewals", "UPDATE lease SET generation = 2 WHERE renewals = 1");
	assert_refused(*state, "renewals", "UPDATE lease SET renewals = 0 WHERE renewals = 1");
	assert_refused(*state, "renewals", "UPDATE lease SET owner_id = 'own-x' WHERE renewals = 1");
}

static void records_leave_no_gap(void **state)
{
	assert_refused(*state, "follow one another", "INSERT INTO record VALUES (?2, 3, 0, 'x', '{}', 'sha256:' || ?1)");
	assert_refused(*state, "follow one another", "INSERT INTO record VALUES (?2, 1, 0, 'x', '{}', 'sha256:' || ?1)");
}

static void an_attempt_is_sealed_only_behind_its_rows_record(void **state)
{
	struct stage *stage = *state;

	assert_refused(stage, "closes a sealed attempt", "INSERT INTO seal SELECT key, 2, ?1, ?2, '{}' FROM key");
	assert_int_equal(
		sqlite3_exec(stage->db, "BEGIN; UPDATE attempt SET state = 'sealed' WHERE state NOT IN ('sealed', 'abandoned')", NULL, NULL,
	                     NULL),
		SQLITE_OK);
	assert_refused(stage, "closes a sealed attempt", "INSERT INTO seal SELECT key, 2, ?1, ?2, '{}' FROM key");
	assert_int_equal(sqlite3_exec(stage->db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_refused(stage, "closes a sealed attempt", "INSERT INTO seal SELECT key, 3, run_id, attempt_id, '{}' FROM seal");
}

static void two_unsealed_attempts_do_not_share_a_slot(void **state)
{
	assert_refused(*state, "UNIQUE", "INSERT INTO attempt SELECT 'att-x', run_id, 1, 'bnd-x', 'linux', 0, 'queued' FROM queue"
	                                 " ORDER BY position LIMIT 1");
}

static void a_run_has_one_attempt_at_a_time(void **state)
{
	assert_refused(*state, "no further attempt",
	               "INSERT INTO attempt SELECT 'att-x', ?1, 2, 'bnd-x', profile, 9, 'queued' FROM attempt WHERE attempt_id = ?2");
	assert_refused(*state, "no further attempt",
	               "INSERT INTO attempt SELECT 'att-x', run_id, 3, 'bnd-x', 'linux', 9, 'queued' FROM attempt WHERE state = 'abandoned'");
	assert_refused(*state, "no further attempt",
	               "INSERT INTO attempt SELECT 'att-x', run_id, 2, 'bnd-x', 'linux', 9, 'abandoned' FROM attempt"
	               " WHERE state = 'abandoned'");
}

static void an_abandoned_attempt_is_over(void **state)
{
	assert_refused(*state, "unsealed attempt", "UPDATE attempt SET state = 'running' WHERE state = 'abandoned'");
	assert_refused(*state, "unsealed attempt", "UPDATE attempt SET state = 'sealed' WHERE state = 'abandoned'");
	assert_refused(*state, "until the seal",
	               "INSERT INTO lease SELECT attempt_id, 2, ?5, 0, 1000 + (0 AND ?1 || ?2 || ?3 || ?4) FROM attempt"
	               " WHERE state = 'abandoned'");
	assert_refused(*state, "lease that holds",
	               "UPDATE lease SET renewals = 9 WHERE attempt_id IN (SELECT attempt_id FROM attempt WHERE state = 'abandoned')");
	assert_refused(*state, "launched once",
	               "INSERT INTO launch_intent SELECT run_id, attempt_id, 1, 0 FROM attempt WHERE state = 'abandoned'"
	               " AND run_id IN (SELECT run_id FROM queue)");
	assert_refused(*state, "none follows the rows",
	               "INSERT INTO record SELECT attempt_id, seq + 1, at, 'late', body, prev_digest FROM record"
	               " WHERE kind = 'abandoned'");
	assert_refused(*state, "closes a sealed attempt",
	               "INSERT INTO seal SELECT key, 2, run_id, attempt_id, '{}' FROM key, attempt WHERE state = 'abandoned'");
}

/* The claimed one has no record that says so, the launched one has an intent, the next is its run's third, the last one attached. */
static void nothing_else_is_abandoned(void **state)
{
	for (int i = 0; i < KEPT; i++) {
		char sql[128];

		snprintf(sql, sizeof sql, "UPDATE attempt SET state = 'abandoned' WHERE attempt_id = '%s'",
		         ((struct stage *)*state)->kept[i].attempt_id);
		assert_refused(*state, "unsealed attempt", sql);
	}
}

static void an_idempotency_key_is_a_detached_runs_and_has_one_run(void **state)
{
	assert_refused(*state, "append-only", "INSERT INTO run SELECT 'run-x', principal, 0, manifest, plan, created_at, labels,"
	                                      " idempotency_key FROM run WHERE idempotency_key = 'key'");
	assert_refused(*state, "CHECK",
	               "INSERT INTO run SELECT 'run-x', principal, 1, manifest, plan, created_at, labels, 'new' FROM run LIMIT 1");
	assert_refused(*state, "CHECK",
	               "INSERT INTO run SELECT 'run-x', principal, 0, manifest, plan, created_at, labels, '' FROM run LIMIT 1");
}

static void a_ledger_has_one_genesis(void **state)
{
	assert_refused(*state, "one genesis", "INSERT INTO ledger VALUES ('led-x', 0)");
}

static void take_name(struct stage *stage, const char *query, char *ret, size_t size)
{
	sqlite3_stmt *statement;

	assert_int_equal(sqlite3_prepare_v2(stage->db, query, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	snprintf(ret, size, "%s", sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
}

/* A table that is added one day must be added to the rows record, or be bound otherwise as key and seal are, or follow from the rest as
 * the queue does. */
static void the_rows_record_has_every_table(void **state)
{
	char tables[256], covered[256];

	take_name(*state,
	          "SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
	          " AND name NOT IN ('key', 'queue', 'seal') ORDER BY name)",
	          tables, sizeof tables);
	take_name(*state,
	          "SELECT group_concat(key) FROM (SELECT j.key FROM record, json_each(body, '$.rows') AS j WHERE kind = 'rows'"
	          " ORDER BY j.key)",
	          covered, sizeof covered);
	assert_string_equal(tables, covered);
}

/* Neither somebody's list nor everybody's looks through all the runs that there are. */
static void a_list_is_found_by_an_index(void **state)
{
	static const struct {
		enum db_statement statement;
		const char *plan;
	} lists[] = {{DB_LIST, "SEARCH run USING INTEGER PRIMARY KEY"}, {DB_LIST_OF, "SEARCH run USING INDEX run_of_principal"}};
	struct stage *stage = *state;

	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		sqlite3_stmt *statement = NULL;
		char *sql = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", db_statement_text[lists[i].statement]);

		assert_int_equal(sqlite3_prepare_v2(stage->db, sql, -1, &statement, NULL), SQLITE_OK);
		assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
		assert_non_null(strstr((const char *)sqlite3_column_text(statement, 3), lists[i].plan));
		sqlite3_finalize(statement);
		sqlite3_free(sql);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_second_launch_intent_is_refused),
		cmocka_unit_test(an_intent_is_of_an_attempt_of_the_run_and_of_the_lease_that_holds),
		cmocka_unit_test(a_cancelled_run_gets_no_launch_intent),
		cmocka_unit_test(every_table_is_append_only),
		cmocka_unit_test(replace_is_no_way_around),
		cmocka_unit_test(a_sealed_attempt_does_not_change),
		cmocka_unit_test(a_generation_only_grows_by_one),
		cmocka_unit_test(records_leave_no_gap),
		cmocka_unit_test(an_attempt_is_sealed_only_behind_its_rows_record),
		cmocka_unit_test(two_unsealed_attempts_do_not_share_a_slot),
		cmocka_unit_test(a_run_has_one_attempt_at_a_time),
		cmocka_unit_test(an_abandoned_attempt_is_over),
		cmocka_unit_test(nothing_else_is_abandoned),
		cmocka_unit_test(an_idempotency_key_is_a_detached_runs_and_has_one_run),
		cmocka_unit_test(a_ledger_has_one_genesis),
		cmocka_unit_test(the_rows_record_has_every_table),
		cmocka_unit_test(a_list_is_found_by_an_index),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
