/* test_verify.c - what verification says of a ledger that nobody has changed: unsealed runs, the store, heads, and questions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/buffer.h"
#include "evidence/verify.h"
#include "ledger_fixture.h"

enum { LINES_MAX = 65536, LARGE = LEDGER_STREAM_ROW_MAX + 1 };

struct store_view {
	struct ledger *ledger;
	int asked;
	bool lacks_large; /* the one object that is not an artifact's alone */
};

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

static int dump(void *context, int (*row)(void *row_context, const char *table, const char *json), void *row_context,
                struct err *err)
{
	struct store_view *view = context;

	return view->ledger->ops->dump(view->ledger, row, row_context, err);
}

static int object(void *context, const struct digest *digest, struct err *err)
{
	struct store_view *view = context;

	(void)digest;
	view->asked++;
	return view->lacks_large ? err_set(err, ERR_NOT_FOUND, "no such object") : 0;
}

static void take_line(void *context, enum verify_line_kind kind, const char *line)
{
	assert_int_equal(buf_printf(context, NULL, "%s %s\n", kind == VERIFY_PROBLEM ? "PROBLEM" : "note", line), 0);
}

static int verify_with(struct store_view *view, bool with_store, const struct verify_options *options, struct buf *lines,
                       struct verify_report *ret)
{
	const struct verify_source source = {.dump = dump, .object = with_store ? object : NULL, .context = view};
	struct err err = ERR_INIT;

	return verify(&source, options, take_line, lines, ret, &err);
}

static void an_empty_ledger_verifies(void **state)
{
	struct store_view view = {.ledger = ((struct ledger_fixture *)*state)->ledger};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX);
	struct verify_report report;

	assert_int_equal(verify_with(&view, true, &(struct verify_options){.run_id = NULL}, &lines, &report), 0);
	assert_int_equal(report.sealed, 0);
	/* The genesis and nothing else; no seal covers it yet. */
	assert_int_equal(report.rows, 1);
	assert_int_equal(report.problems, 0);
}

static void an_unsealed_run_is_noted_and_no_problem(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct store_view view = {.ledger = fixture->ledger};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX);
	struct ledger_attempt sealed, unsealed;
	struct verify_report report;
	struct err err = ERR_INIT;

	fixture_run(fixture, &sealed);
	fixture_accept(fixture, &unsealed);
	assert_int_equal(fixture_intent(fixture, &unsealed, &err), 0);
	assert_int_equal(verify_with(&view, true, &(struct verify_options){.run_id = NULL}, &lines, &report), 0);
	if (report.problems > 0)
		fail_msg("%s", lines.data);
	assert_int_equal(report.sealed, 1);
	assert_int_equal(report.unsealed, 1);
	assert_non_null(strstr(lines.data, "not sealed yet (queued)"));
	assert_non_null(strstr(lines.data, unsealed.run_id));
}

static void tell(struct ledger_fixture *fixture, const char *expected_notes, int64_t unsealed)
{
	struct store_view view = {.ledger = fixture->ledger};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX);
	struct verify_report report;

	assert_int_equal(verify_with(&view, true, &(struct verify_options){.run_id = NULL}, &lines, &report), 0);
	if (report.problems > 0 || !strstr(lines.len ? lines.data : "", expected_notes))
		fail_msg("%s", lines.data);
	assert_int_equal(report.unsealed, unsealed);
}

static void a_detached_run_is_noted_while_it_waits_and_while_it_is_driven(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	char run_id[ID_SIZE];

	fixture_submit(fixture, "key", run_id);
	tell(fixture, "not sealed yet (queued)", 1);
	fixture_claim(fixture, run_id, &attempt);
	assert_int_equal(fixture_append(fixture, &attempt, "prepared", "preparing", &err), 0);
	tell(fixture, "not sealed yet (preparing)", 1);
	assert_int_equal(fixture_abandon(fixture, &attempt, &err), 0);
	tell(fixture, "not sealed yet (queued)", 1);
	fixture_claim(fixture, run_id, &attempt);
	assert_int_equal(fixture_seal(fixture, &attempt, "", &err), 0);
	tell(fixture, "", 0);
}

/* As a ledger that has got a further column since: NULL in what was sealed before, unless somebody changed that. */
/* By whoever has an SQL shell. */
static void change(struct ledger_fixture *fixture, const char *sql)
{
	char directory[FIXTURE_PATH_SIZE], path[FIXTURE_PATH_SIZE + 16];
	sqlite3 *db;

	fixture_close(fixture);
	memcpy(directory, fixture->path, sizeof directory);
	snprintf(path, sizeof path, "%s/ledger.db", directory);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	sqlite3_close(db);
	fixture_open(fixture, directory, false);
}

static void finds(struct ledger_fixture *fixture, const char *problem)
{
	struct store_view view = {.ledger = fixture->ledger};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX);
	struct verify_report report;

	assert_int_equal(verify_with(&view, true, &(struct verify_options){.run_id = NULL}, &lines, &report), 0);
	assert_true(report.problems > 0);
	if (!strstr(lines.data, problem))
		fail_msg("%s", lines.data);
}

static void a_queue_that_does_not_follow_from_the_rest_is_found(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct ledger_attempt attempt;
	char run_id[ID_SIZE];

	fixture_submit(fixture, NULL, run_id);
	change(fixture, "INSERT INTO queue SELECT position + 1, run_id FROM queue");
	finds(fixture, "queue: 2 rows of a run that waits once");
	change(fixture, "DELETE FROM queue");
	finds(fixture, "run: the row of run-");
	change(fixture, "INSERT INTO queue SELECT rowid, run_id FROM run");
	tell(fixture, "not sealed yet (queued)", 1);
	fixture_claim(fixture, run_id, &attempt);
	change(fixture, "INSERT INTO queue SELECT rowid, run_id FROM run");
	finds(fixture, "queue: 1 row of a run that is under way");
}

static int any_object(void *context, const struct digest *digest, struct err *err)
{
	(void)context;
	(void)digest;
	(void)err;
	return 0;
}

struct later_schema {
	struct ledger *ledger;
	const char *value;
	int (*row)(void *context, const char *table, const char *json);
	void *row_context;
};

static int add_column(void *context, const char *table, const char *json)
{
	struct later_schema *later = context;
	BUF_AUTO struct buf text = BUF_INIT(LINES_MAX);

	if (strcmp(table, "run") != 0)
		return later->row(later->row_context, table, json);
	assert_int_equal(buf_printf(&text, NULL, "{\"later\":%s,%s", later->value, json + 1), 0);
	return later->row(later->row_context, table, text.data);
}

static int dump_later(void *context, int (*row)(void *row_context, const char *table, const char *json), void *row_context,
                      struct err *err)
{
	struct later_schema *later = context;

	later->row = row;
	later->row_context = row_context;
	return later->ledger->ops->dump(later->ledger, add_column, later, err);
}

static void a_column_that_came_later_is_null_in_what_was_sealed_before(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct later_schema later = {.ledger = fixture->ledger, .value = "null"};
	const struct verify_source source = {.dump = dump_later, .object = any_object, .context = &later};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX);
	struct ledger_attempt attempt;
	struct verify_report report;
	struct err err = ERR_INIT;

	fixture_run(fixture, &attempt);
	assert_int_equal(verify(&source, &(struct verify_options){.run_id = NULL}, take_line, &lines, &report, &err), 0);
	assert_int_equal(report.problems, 0);
	later.value = "\"changed\"";
	assert_int_equal(verify(&source, &(struct verify_options){.run_id = NULL}, take_line, &lines, &report, &err), 0);
	assert_int_equal(report.problems, 1);
	assert_non_null(strstr(lines.data, "run.later: of"));
}

static void seal_large(struct ledger_fixture *fixture)
{
	static char text[LARGE + 1];
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;

	memset(text, 'x', LARGE);
	fixture_accept(fixture, &attempt);
	if (fixture_seal(fixture, &attempt, text, &err) < 0)
		fail_msg("%s", err.text);
}

static void objects_are_asked_for_and_named_when_they_fail(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct store_view view = {.ledger = fixture->ledger};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX);
	struct verify_report report;

	seal_large(fixture);
	assert_int_equal(verify_with(&view, true, &(struct verify_options){.run_id = NULL}, &lines, &report), 0);
	assert_int_equal(report.problems, 0);
	assert_int_equal(view.asked, 3); /* a stream and two artifacts */
	view.lacks_large = true;
	assert_int_equal(verify_with(&view, true, &(struct verify_options){.run_id = NULL}, &lines, &report), 0);
	assert_int_equal(report.problems, 3);
	assert_non_null(strstr(lines.data, "stream.data: no such object"));
	assert_non_null(strstr(lines.data, "artifact.sha256: no such object"));
}

static void without_a_store_objects_are_a_problem(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct store_view view = {.ledger = fixture->ledger};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX);
	struct verify_report report;

	seal_large(fixture);
	assert_int_equal(verify_with(&view, false, &(struct verify_options){.run_id = NULL}, &lines, &report), 0);
	assert_int_equal(report.problems, 3);
	assert_non_null(strstr(lines.data, "stream.data: there is no store"));
}

static void a_run_that_is_not_there_is_not_found(void **state)
{
	struct store_view view = {.ledger = ((struct ledger_fixture *)*state)->ledger};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX);
	struct verify_report report;

	assert_int_equal(verify_with(&view, true, &(struct verify_options){.run_id = "run-aaaaaaaaaaaaaaaa"}, &lines, &report),
	                 ERR_NOT_FOUND);
}

static void a_head_holds_for_what_was_added_since(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct store_view view = {.ledger = fixture->ledger};
	const struct verify_source source = {.dump = dump, .object = object, .context = &view};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX), head = BUF_INIT(VERIFY_HEAD_BYTES_MAX);
	char expected[256];
	struct ledger_attempt attempt;
	struct verify_report report;

	fixture_run(fixture, &attempt);
	assert_int_equal(head_write(&source, &head, NULL), 0);
	snprintf(expected, sizeof expected, "caisson.head/v1 %s %s 1 sha256:", fixture->ledger->ops->id(fixture->ledger),
	         key_fingerprint(fixture->key));
	assert_int_equal(strncmp(head.data, expected, strlen(expected)), 0);
	fixture_run(fixture, &attempt);
	assert_int_equal(verify_with(&view, true, &(struct verify_options){.head = head.data}, &lines, &report), 0);
	assert_int_equal(report.problems, 0);
}

static void a_head_of_another_ledger_does_not_hold(void **state)
{
	struct ledger_fixture *fixture = *state;
	struct store_view view = {.ledger = fixture->ledger};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX), head = BUF_INIT(VERIFY_HEAD_BYTES_MAX);
	struct verify_report report;

	assert_int_equal(buf_printf(&head, NULL, "caisson.head/v1 led-aaaaaaaaaaaaaaaa %s 1 sha256:%064d\n",
	                            key_fingerprint(fixture->key), 0), 0);
	assert_int_equal(verify_with(&view, true, &(struct verify_options){.head = head.data}, &lines, &report), 0);
	assert_int_equal(report.problems, 1);
	assert_non_null(strstr(lines.data, "head: is of ledger led-aaaaaaaaaaaaaaaa"));
}

static void a_malformed_head_is_no_head(void **state)
{
#define ZERO "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	static const char *const heads[] = {
		"x",
		"caisson.head/v2 a b 1 " ZERO,
		"caisson.head/v1 a b -1 " ZERO,
		"caisson.head/v1 a b 1 " ZERO " more",
		"caisson.head/v1 a b 1 sha256:0",
		"caisson.head/v1 a b 99999999999999999999 " ZERO,
	};
	struct store_view view = {.ledger = ((struct ledger_fixture *)*state)->ledger};
	BUF_AUTO struct buf lines = BUF_INIT(LINES_MAX);
	struct verify_report report;

	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
		assert_int_equal(verify_with(&view, true, &(struct verify_options){.head = heads[i]}, &lines, &report),
		                 ERR_INVALID);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_empty_ledger_verifies),
		CASE(an_unsealed_run_is_noted_and_no_problem),
		CASE(a_detached_run_is_noted_while_it_waits_and_while_it_is_driven),
		CASE(a_column_that_came_later_is_null_in_what_was_sealed_before),
		CASE(a_queue_that_does_not_follow_from_the_rest_is_found),
		CASE(objects_are_asked_for_and_named_when_they_fail),
		CASE(without_a_store_objects_are_a_problem),
		CASE(a_run_that_is_not_there_is_not_found),
		CASE(a_head_holds_for_what_was_added_since),
		CASE(a_head_of_another_ledger_does_not_hold),
		CASE(a_malformed_head_is_no_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
