/* test_verify.c - what verification says of a ledger that nobody has changed: unsealed runs, the store, heads, and questions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
		CASE(objects_are_asked_for_and_named_when_they_fail),
		CASE(without_a_store_objects_are_a_problem),
		CASE(a_run_that_is_not_there_is_not_found),
		CASE(a_head_holds_for_what_was_added_since),
		CASE(a_head_of_another_ledger_does_not_hold),
		CASE(a_malformed_head_is_no_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
