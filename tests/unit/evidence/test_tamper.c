/* test_tamper.c - whatever is changed in a ledger of six sealed runs, verification names it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/fd.h"
#include "base/json.h"
#include "evidence/receipt.h"
#include "evidence/verify.h"
#include "ledger_fixture.h"

enum { RUNS = 6, PATH_SIZE = FIXTURE_PATH_SIZE + 16, CELLS_MAX = 4096, NAME_SIZE = 64, LINES_MAX = 256 * 1024 };

/* The ledger as it was sealed, its triggers dropped; a copy to tamper with; and what somebody wrote down elsewhere. */
struct stage {
	struct ledger_fixture fixture;
	char *original;
	size_t original_size;
	char copy[FIXTURE_PATH_SIZE], copy_file[PATH_SIZE];
	char trust[DIGEST_HEX_SIZE];
	struct buf head;
};

static void sql(sqlite3 *db, const char *format, ...)
{
	va_list list;
	char *text, *error = NULL;

	va_start(list, format);
	text = sqlite3_vmprintf(format, list);
	va_end(list);
	if (sqlite3_exec(db, text, NULL, NULL, &error) != SQLITE_OK)
		fail_msg("%s: %s", text, error);
	sqlite3_free(text);
}

static sqlite3 *open_raw(const char *path)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sql(db, "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF");
	return db;
}

/* Calls fn for each row of the query's first two columns. */
static void each(sqlite3 *db, const char *query, void (*fn)(void *context, const char *first, const char *second), void *context)
{
	sqlite3_stmt *statement;

	assert_int_equal(sqlite3_prepare_v2(db, query, -1, &statement, NULL), SQLITE_OK);
	while (sqlite3_step(statement) == SQLITE_ROW)
		fn(context, (const char *)sqlite3_column_text(statement, 0),
		   sqlite3_column_count(statement) > 1 ? (const char *)sqlite3_column_text(statement, 1) : NULL);
	sqlite3_finalize(statement);
}

static void append_drop(void *context, const char *name, const char *unused)
{
	(void)unused;
	assert_int_equal(buf_printf(context, NULL, "DROP TRIGGER %s;", name), 0);
}

/* Submitted under a key, sealed in its second attempt. */
static void seal_submitted_run(struct ledger_fixture *fixture)
{
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	char run_id[ID_SIZE];

	fixture_submit(fixture, "a key", run_id);
	fixture_claim(fixture, run_id, &attempt);
	assert_int_equal(fixture_abandon(fixture, &attempt, &err), 0);
	fixture_claim(fixture, run_id, &attempt);
	assert_int_equal(fixture_seal(fixture, &attempt, "", &err), 0);
}

/* Each statement that a run may leave something in: one was submitted, one was cancelled, one was taken over. */
static void seal_runs(struct stage *stage)
{
	struct ledger_fixture heir;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	bool sealed;

	for (int i = 0; i < RUNS - 3; i++)
		fixture_run(&stage->fixture, &attempt);
	seal_submitted_run(&stage->fixture);
	fixture_accept(&stage->fixture, &attempt);
	assert_int_equal(stage->fixture.ledger->ops->request_cancel(stage->fixture.ledger, attempt.run_id, &sealed, &err), 0);
	assert_int_equal(fixture_seal(&stage->fixture, &attempt, "", &err), 0);
	fixture_accept(&stage->fixture, &attempt);
	assert_int_equal(fixture_intent(&stage->fixture, &attempt, &err), 0);
	fixture_close(&stage->fixture);
	fixture_open(&heir, stage->fixture.path, false);
	assert_int_equal(
		heir.ledger->ops->take_over(heir.ledger, attempt.attempt_id, heir.owner.owner_id, &attempt.generation, &err), 0);
	assert_int_equal(heir.ledger->ops->renew(heir.ledger, attempt.attempt_id, heir.owner.owner_id, attempt.generation, &err),
	                 0);
	assert_int_equal(fixture_seal(&heir, &attempt, "taken over\n", &err), 0);
	memcpy(stage->trust, key_fingerprint(heir.key), sizeof stage->trust);
	fixture_close(&heir);
}

static int object_is_whole(void *context, const struct digest *digest, struct err *err)
{
	(void)context;
	(void)digest;
	(void)err;
	return 0;
}

static int dump(void *context, int (*row)(void *row_context, const char *table, const char *json), void *row_context,
                struct err *err)
{
	struct ledger *ledger = context;

	return ledger->ops->dump(ledger, row, row_context, err);
}

static void take_line(void *context, enum verify_line_kind kind, const char *line)
{
	assert_int_equal(buf_printf(context, NULL, "%s %s\n", kind == VERIFY_PROBLEM ? "PROBLEM" : "note", line), 0);
}

/* Verifies the copy; the lines are the caller's (buf_done). */
static int64_t verify_copy(const struct stage *stage, const struct verify_options *options, struct buf *lines)
{
	struct ledger_fixture copy;
	struct verify_source source = {.dump = dump, .object = object_is_whole};
	struct verify_report report = {.problems = -1};
	struct err err = ERR_INIT;

	fixture_open(&copy, stage->copy, true);
	source.context = copy.ledger;
	if (verify(&source, options, take_line, lines, &report, &err) < 0)
		fail_msg("%s", err.text);
	fixture_close(&copy);
	return report.problems;
}

static void write_head(struct stage *stage)
{
	struct ledger_fixture reader;
	struct verify_source source = {.dump = dump};
	struct err err = ERR_INIT;

	fixture_open(&reader, stage->fixture.path, true);
	source.context = reader.ledger;
	stage->head = BUF_INIT(VERIFY_HEAD_BYTES_MAX);
	assert_int_equal(head_write(&source, &stage->head, &err), 0);
	fixture_close(&reader);
}

static void read_original(struct stage *stage, const char *path)
{
	struct buf bytes = BUF_INIT(64 * 1024 * 1024);
	FD_AUTO int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct err err = ERR_INIT;

	assert_true(fd >= 0);
	assert_int_equal(fd_read_rest(fd, &bytes, &err), 0);
	stage->original_size = bytes.len;
	stage->original = buf_take(&bytes);
}

static int setup(void **state)
{
	struct stage *stage = calloc(1, sizeof *stage);
	BUF_AUTO struct buf drop = BUF_INIT(65536);
	char path[PATH_SIZE];
	sqlite3 *db;

	fixture_make(&stage->fixture);
	seal_runs(stage);
	write_head(stage);
	snprintf(path, sizeof path, "%s/ledger.db", stage->fixture.path);
	db = open_raw(path);
	each(db, "SELECT name FROM sqlite_schema WHERE type = 'trigger'", append_drop, &drop);
	sql(db, "%s PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE", drop.data);
	sqlite3_close(db);
	read_original(stage, path);
	snprintf(stage->copy, sizeof stage->copy, "%.100s/copy", stage->fixture.path);
	snprintf(stage->copy_file, sizeof stage->copy_file, "%s/ledger.db", stage->copy);
	assert_int_equal(mkdir(stage->copy, 0700), 0);
	*state = stage;
	return 0;
}

static int teardown(void **state)
{
	struct stage *stage = *state;

	fixture_remove(&stage->fixture);
	buf_done(&stage->head);
	free(stage->original);
	free(stage);
	return 0;
}

/* A fresh copy, open for tampering. */
static sqlite3 *tamper(const struct stage *stage)
{
	FD_AUTO int fd = open(stage->copy_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, stage->original, stage->original_size), 0);
	return open_raw(stage->copy_file);
}

/* Tampers, verifies with trust and head, and wants a problem that has `expected` in it. */
static void assert_named(const struct stage *stage, const char *expected)
{
	const struct verify_options options = {.trust = stage->trust, .head = stage->head.data};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX);
	const char *found;

	assert_true(verify_copy(stage, &options, &lines) > 0);
	found = strstr(lines.data, expected);
	if (!found)
		fail_msg("nothing says \"%s\":\n%s", expected, lines.data);
}

/* As above, and no other column: but a head also notices another ledger or another seal. */
static void assert_nothing_else_named(const struct stage *stage, const char *expected)
{
	const struct verify_options options = {.trust = stage->trust, .head = stage->head.data};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX);
	bool named = false;
	char *next;

	assert_true(verify_copy(stage, &options, &lines) > 0);
	for (char *line = strtok_r(lines.data, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
		if (strstr(line, expected))
			named = true;
		else if (!strstr(line, "PROBLEM head: "))
			fail_msg("%s was changed, but: %s", expected, line);
	}
	if (!named)
		fail_msg("nothing says \"%s\"", expected);
}

static void an_untouched_copy_verifies(void **state)
{
	const struct stage *stage = *state;
	const struct verify_options options = {.trust = stage->trust, .head = stage->head.data};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX);

	sqlite3_close(tamper(stage));
	if (verify_copy(stage, &options, &lines) != 0 || lines.len > 0)
		fail_msg("%s", lines.data);
}

struct cell {
	char table[NAME_SIZE], column[NAME_SIZE], type[NAME_SIZE];
	int64_t row; /* in the order of the primary key */
};

struct cells {
	struct cell list[CELLS_MAX];
	size_t count;
	sqlite3 *db;
	const char *table;
};

static int64_t count_rows(sqlite3 *db, const char *table)
{
	sqlite3_stmt *statement;
	char *query = sqlite3_mprintf("SELECT count(*) FROM \"%w\"", table);
	int64_t count;

	assert_int_equal(sqlite3_prepare_v2(db, query, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	count = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_free(query);
	return count;
}

static void add_column(void *context, const char *column, const char *type)
{
	struct cells *cells = context;
	int64_t rows = count_rows(cells->db, cells->table);

	for (int64_t row = 0; row < rows; row++) {
		struct cell *cell = &cells->list[cells->count++];

		assert_true(cells->count < CELLS_MAX);
		snprintf(cell->table, sizeof cell->table, "%s", cells->table);
		snprintf(cell->column, sizeof cell->column, "%s", column);
		snprintf(cell->type, sizeof cell->type, "%s", type);
		cell->row = row;
	}
}

static void add_table(void *context, const char *table, const char *unused)
{
	struct cells *cells = context;
	char *query = sqlite3_mprintf("SELECT name, type FROM pragma_table_info(%Q)", table);

	(void)unused;
	cells->table = table;
	each(cells->db, query, add_column, cells);
	sqlite3_free(query);
}

static void append_key_column(void *context, const char *column, const char *unused)
{
	struct buf *list = context;

	(void)unused;
	assert_int_equal(buf_printf(list, NULL, "%s\"%s\"", list->len ? ", " : "", column), 0);
}

/* Another value of the same type. A text changes at its end, where its JSON breaks, or in its middle, where it does not. */
static void change(sqlite3 *db, const struct cell *cell, bool at_end)
{
	static const char *const values[] = {
		"CASE typeof(old) WHEN 'integer' THEN -1 - old WHEN 'null' THEN filled WHEN 'blob' THEN CAST(x'20' || old AS BLOB)"
		" ELSE substr(old, 1, length(old) / 2) || CASE substr(old, length(old) / 2 + 1, 1) WHEN '1' THEN '2' ELSE '1' END"
		" || substr(old, length(old) / 2 + 2) END",
		"CASE typeof(old) WHEN 'integer' THEN old + 1000 WHEN 'null' THEN substr(filled, 2) WHEN 'blob' THEN CAST(old || x'20' AS BLOB)"
		" ELSE substr(old, 1, length(old) - 1) || CASE substr(old, -1) WHEN 'a' THEN 'b' ELSE 'a' END END",
	};
	BUF_AUTO struct buf key = BUF_INIT(1024);
	char *query = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q) WHERE pk > 0 ORDER BY pk", cell->table);

	each(db, query, append_key_column, &key);
	sqlite3_free(query);
	sql(db,
	    "UPDATE \"%w\" SET \"%w\" = (SELECT %s FROM (SELECT \"%w\" AS old, CAST(x'20' AS %s) AS filled))"
	    " WHERE (%s) = (SELECT %s FROM \"%w\" ORDER BY %s LIMIT 1 OFFSET %lld)",
	    cell->table, cell->column, values[at_end], cell->column, cell->type, key.data, key.data, cell->table, key.data,
	    (long long)cell->row);
	assert_int_equal(sqlite3_changes(db), 1);
}

static void each_changed_column_of_each_row_is_named(void **state)
{
	const struct stage *stage = *state;
	struct cells *cells = calloc(1, sizeof *cells);
	sqlite3 *db = tamper(stage);

	cells->db = db;
	each(db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name", add_table, cells);
	sqlite3_close(db);
	for (size_t i = 0; i < 2 * cells->count; i++) {
		const struct cell *cell = &cells->list[i / 2];
		char expected[2 * NAME_SIZE + 2];

		snprintf(expected, sizeof expected, "%s.%s:", cell->table, cell->column);
		db = tamper(stage);
		change(db, cell, i % 2);
		sqlite3_close(db);
		assert_nothing_else_named(stage, expected);
	}
	print_message(
		"%zu values (each column of each row of each table) changed in 2 ways: %zu times exactly that column was named; "
		"derived columns that are not named: none\n",
		cells->count, 2 * cells->count);
	free(cells);
}

static void a_deleted_run_is_missed(void **state)
{
	const struct stage *stage = *state;

	for (int seq = 1; seq <= RUNS; seq++) {
		sqlite3 *db = tamper(stage);

		sql(db,
		    "CREATE TEMP TABLE gone AS SELECT run_id, attempt_id FROM seal WHERE seal_seq = %d;"
		    "DELETE FROM seal WHERE run_id IN (SELECT run_id FROM gone);"
		    "DELETE FROM run WHERE run_id IN (SELECT run_id FROM gone);"
		    "DELETE FROM launch_intent WHERE run_id IN (SELECT run_id FROM gone);"
		    "DELETE FROM cancellation WHERE run_id IN (SELECT run_id FROM gone);"
		    "DELETE FROM lease WHERE attempt_id IN (SELECT attempt_id FROM gone);"
		    "DELETE FROM record WHERE attempt_id IN (SELECT attempt_id FROM gone);"
		    "DELETE FROM stream WHERE attempt_id IN (SELECT attempt_id FROM gone);"
		    "DELETE FROM attempt WHERE attempt_id IN (SELECT attempt_id FROM gone);"
		    "DELETE FROM owner WHERE owner_id NOT IN (SELECT owner_id FROM lease)",
		    seq);
		sqlite3_close(db);
		assert_named(stage, seq < RUNS ? "rows were removed" : "head: seal 6 of key");
	}
}

static void a_deleted_row_of_any_table_is_missed(void **state)
{
	static const struct {
		const char *table, *key, *expected;
	} cases[] = {
		{"artifact", "attempt_id, path", "artifact: the row of"},
		{"attempt", "attempt_id", "attempt: the row of"},
		{"cancellation", "run_id", "cancellation: the row of"},
		{"key", "key", "has no public key"},
		{"launch_intent", "run_id", "launch_intent: the row of"},
		{"lease", "attempt_id, generation", "lease: the row of"},
		{"ledger", "ledger_id", "ledger: the row of"},
		{"owner", "owner_id", "owner: the row of"},
		{"record", "attempt_id, seq", "record: the row of"},
		{"run", "run_id", "run: the row of"},
		{"seal", "key, seal_seq", "lacks the seals 1 to 1"},
		{"stream", "attempt_id, name", "stream: the row of"},
	};
	const struct stage *stage = *state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		sqlite3 *db = tamper(stage);

		sql(db, "DELETE FROM \"%w\" WHERE (%s) = (SELECT %s FROM \"%w\" ORDER BY %s LIMIT 1)", cases[i].table,
		    cases[i].key, cases[i].key, cases[i].table, cases[i].key);
		sqlite3_close(db);
		assert_named(stage, cases[i].expected);
	}
}

static void two_swapped_seals_are_noticed(void **state)
{
	const struct stage *stage = *state;
	sqlite3 *db = tamper(stage);

	sql(db,
	    "CREATE TEMP TABLE two AS SELECT seal_seq, receipt FROM seal WHERE seal_seq IN (2, 3);"
	    "UPDATE seal SET receipt = (SELECT receipt FROM two WHERE two.seal_seq = 5 - seal.seal_seq) WHERE seal_seq IN (2, 3)");
	sqlite3_close(db);
	assert_named(stage, "seal.run_id: is not what the receipt says");
	db = tamper(stage);
	sql(db, "UPDATE seal SET seal_seq = -seal_seq WHERE seal_seq IN (2, 3); UPDATE seal SET seal_seq = 5 + seal_seq WHERE "
	        "seal_seq < 0");
	sqlite3_close(db);
	assert_named(stage, "seal.seal_seq: is not what the receipt says");
}

struct forger {
	sqlite3 *db;
	struct key *key;
	struct digest previous;
	bool first;
};

/* Signs a receipt anew, with another key and another verdict, and links it to the forged one before it. */
static void forge(void *context, const char *run, const char *text)
{
	struct forger *forger = context;
	JSON_AUTO json_t *receipt = json_loads(text, 0, NULL);
	BUF_AUTO struct buf body = BUF_INIT(LINES_MAX), signed_text = BUF_INIT(LINES_MAX);
	char spelling[DIGEST_TEXT_SIZE], hex[129];
	uint8_t signature[64];
	struct digest digest;
	struct err err = ERR_INIT;

	assert_non_null(receipt);
	json_object_del(receipt, "signature");
	json_object_set_new(receipt, "verdict", json_string("failed"));
	json_object_set_new(receipt, "key", json_string(key_fingerprint(forger->key)));
	if (!forger->first)
		json_object_set_new(receipt, "previous_seal", json_string(digest_text(&forger->previous, spelling)));
	assert_int_equal(json_canonical(receipt, &body, &err), 0);
	digest_of(body.data, body.len, &digest);
	assert_int_equal(key_sign(forger->key, digest.bytes, sizeof digest.bytes, signature, &err), 0);
	for (int i = 0; i < 64; i++)
		snprintf(hex + 2 * i, 3, "%02x", signature[i]);
	json_object_set_new(receipt, "signature", json_string(hex));
	assert_int_equal(json_canonical(receipt, &signed_text, &err), 0);
	digest_of(signed_text.data, signed_text.len, &forger->previous);
	forger->first = false;
	sql(forger->db, "UPDATE seal SET key = %Q, receipt = %Q WHERE run_id = %Q", key_fingerprint(forger->key), signed_text.data,
	    run);
}

static void what_a_fresh_key_signed_needs_trust_or_head(void **state)
{
	const struct stage *stage = *state;
	struct forger forger = {.db = tamper(stage), .first = true};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX);
	FD_AUTO int dir = open(stage->copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct digest public_key;
	char hex[DIGEST_HEX_SIZE];
	struct err err = ERR_INIT;

	assert_int_equal(key_open(dir, &forger.key, &err), 0);
	each(forger.db, "SELECT run_id, receipt FROM seal ORDER BY seal_seq", forge, &forger);
	memcpy(public_key.bytes, key_public(forger.key), sizeof public_key.bytes);
	sql(forger.db, "UPDATE key SET key = %Q, public_key = %Q", key_fingerprint(forger.key), digest_hex(&public_key, hex));
	sqlite3_close(forger.db);
	key_free(forger.key);
	assert_int_equal(unlinkat(dir, "key", 0), 0);

	if (verify_copy(stage, &(struct verify_options){.trust = NULL}, &lines) != 0)
		fail_msg("the forgery is not even consistent:\n%s", lines.data);
	assert_int_equal(verify_copy(stage, &(struct verify_options){.trust = stage->trust}, &lines), RUNS);
	assert_non_null(strstr(lines.data, "not the trusted one"));
	assert_int_equal(verify_copy(stage, &(struct verify_options){.head = stage->head.data}, &lines), 1);
	assert_non_null(strstr(lines.data, "cut back or remade"));
}

static void rows_under_no_seal_are_named(void **state)
{
	const struct stage *stage = *state;
	sqlite3 *db = tamper(stage);

	sql(db, "INSERT INTO record SELECT attempt_id, seq + 50, at, kind, body, prev_digest FROM record LIMIT 1");
	sqlite3_close(db);
	assert_named(stage, "record: the row of");
	db = tamper(stage);
	sql(db, "INSERT INTO queue SELECT rowid, run_id FROM run LIMIT 1");
	sqlite3_close(db);
	assert_named(stage, "queue: the row of");
	db = tamper(stage);
	sql(db, "INSERT INTO run SELECT 'run-x', principal, 0, manifest, plan, created_at, labels, NULL FROM run LIMIT 1");
	sqlite3_close(db);
	assert_named(stage, "run: the row of");
	db = tamper(stage);
	sql(db, "CREATE TABLE extra (x INTEGER); INSERT INTO extra VALUES (1)");
	sqlite3_close(db);
	assert_named(stage, "extra: the row of");
}

static void append_word(void *context, const char *word, const char *unused)
{
	(void)unused;
	assert_int_equal(buf_printf(context, NULL, "%s ", word), 0);
}

static void one_run_is_verified_by_itself(void **state)
{
	const struct stage *stage = *state;
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX), ids = BUF_INIT(4096);
	struct verify_options options = {.trust = stage->trust, .head = stage->head.data};
	sqlite3 *db = tamper(stage);
	char *next, *second;

	each(db, "SELECT run_id FROM seal ORDER BY seal_seq", append_word, &ids);
	options.run_id = strtok_r(ids.data, " ", &next);
	second = strtok_r(NULL, " ", &next);
	sql(db, "UPDATE run SET principal = 'uid:1' WHERE run_id = %Q", second);
	sqlite3_close(db);
	assert_int_equal(verify_copy(stage, &options, &lines), 0);
	options.run_id = second;
	assert_int_equal(verify_copy(stage, &options, &lines), 1);
	assert_non_null(strstr(lines.data, "run.principal:"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_untouched_copy_verifies),
		cmocka_unit_test(each_changed_column_of_each_row_is_named),
		cmocka_unit_test(a_deleted_row_of_any_table_is_missed),
		cmocka_unit_test(a_deleted_run_is_missed),
		cmocka_unit_test(two_swapped_seals_are_noticed),
		cmocka_unit_test(what_a_fresh_key_signed_needs_trust_or_head),
		cmocka_unit_test(rows_under_no_seal_are_named),
		cmocka_unit_test(one_run_is_verified_by_itself),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
