/* test_batch_line.c - lines of a batch: what is a manifest, under which key it goes, and where it is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/batch_line.h"

#define MANIFEST "{\"version\":\"caisson.manifest/v1\",\"command\":{\"argv\":[\"true\"]}"

static void expect_key(const char *text, const char *key)
{
	struct batch_line line;

	batch_line_parse(text, strlen(text), 17, "nightly", &line);
	assert_int_equal(line.refusal.err.code, 0);
	assert_int_equal(line.number, 17);
	assert_string_equal(line.key, key);
	assert_non_null(json_object_get(line.manifest, "command"));
	batch_line_done(&line);
}

static void expect_refused(const char *text, const char *path, const char *message)
{
	struct batch_line line;

	batch_line_parse(text, strlen(text), 17, "nightly", &line);
	assert_int_not_equal(line.refusal.err.code, 0);
	assert_null(line.manifest);
	assert_string_equal(line.refusal.path, path);
	assert_int_equal(strncmp(line.refusal.err.text, "line 17: ", strlen("line 17: ")), 0);
	if (!strstr(line.refusal.err.text, message))
		fail_msg("\"%s\" is not in: %s", message, line.refusal.err.text);
	assert_string_equal(line.key, "nightly-17"); /* also the result of a line that is wrong has one */
}

static void a_line_goes_under_its_own_key_or_one_made_of_the_batchs(void **state)
{
	(void)state;
	expect_key(MANIFEST "}", "nightly-17");
	expect_key("{\"manifest\":" MANIFEST "}}", "nightly-17");
	expect_key("{\"key\":\"mine\",\"manifest\":" MANIFEST "}}", "mine");
	expect_key(" {\"manifest\" : " MANIFEST "} , \"key\" : \"mine\"}\r", "mine");
}

static void an_error_names_line_and_place(void **state)
{
	(void)state;
	expect_refused(MANIFEST ",\"limits\":{\"wall_ms\":0}}", "$.limits.wall_ms", "line 17: $.limits.wall_ms: must be");
	expect_refused("{\"manifest\":" MANIFEST ",\"x\":1}}", "$.manifest.x", "$.manifest.x: unknown field");
	expect_refused("{\"manifest\":" MANIFEST "},\"x\":1}", "$.x", "unknown field");
	expect_refused("{\"manifest\":" MANIFEST "},\"key\":1}", "$.key", "must be a string");
	expect_refused("{\"manifest\":" MANIFEST "},\"key\":\"a b\"}", "$.key", "printable ASCII");
	expect_refused("{\"manifest\":3}", "$.manifest", "must be an object");
	expect_refused("{\"version\":\"caisson.manifest/v1\"}", "$.command", "");
	expect_refused("[]", "$", "must be an object");
	expect_refused("3", "", "column 1");
}

/* The parser would say "line 1", which is the line of no file. */
static void an_error_of_syntax_names_the_column_alone(void **state)
{
	(void)state;
	expect_refused("{\"a\":1,}", "", "line 17: column 8: ");
	expect_refused(MANIFEST "} {}", "", "column");
	expect_refused("{\"a\":1,\"a\":1}", "", "duplicate");
	expect_refused("\xff", "", "invalid UTF-8");
}

static void a_fraction_is_named(void **state)
{
	(void)state;
	expect_refused(MANIFEST ",\"limits\":{\"wall_ms\":1.5}}", "$.limits.wall_ms", "must be an integer");
}

static void a_line_that_is_too_long_is_told_as_one(void **state)
{
	(void)state;
	struct batch_line line;

	batch_line_too_long(3, "b", &line);
	assert_int_equal(line.refusal.err.code, ERR_LIMIT);
	assert_string_equal(line.key, "b-3");
}

static void the_longest_key_of_a_batch_leaves_room_for_a_number(void **state)
{
	(void)state;
	char key[BATCH_KEY_MAX + 1] = "";
	struct batch_line line;

	memset(key, 'k', BATCH_KEY_MAX);
	batch_line_parse(MANIFEST "}", strlen(MANIFEST "}"), INT64_MAX, key, &line);
	assert_int_equal(line.refusal.err.code, 0);
	assert_int_equal(key_check(line.key, NULL), 0);
	assert_string_equal(line.key + BATCH_KEY_MAX, "-9223372036854775807");
	batch_line_done(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_goes_under_its_own_key_or_one_made_of_the_batchs),
		cmocka_unit_test(an_error_names_line_and_place),
		cmocka_unit_test(an_error_of_syntax_names_the_column_alone),
		cmocka_unit_test(a_fraction_is_named),
		cmocka_unit_test(a_line_that_is_too_long_is_told_as_one),
		cmocka_unit_test(the_longest_key_of_a_batch_leaves_room_for_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
