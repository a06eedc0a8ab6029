/* test_json.c - strict parsing, the canonical form, fields with their path, and bytes that are no text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static json_t *parse(const char *text)
{
	json_t *value = NULL;
	struct err err = ERR_INIT;

	if (json_parse(text, strlen(text), &value, &err) != 0)
		fail_msg("%s: %s", text, err.text);
	return value;
}

static void a_wrong_document_names_line_and_column(void **state)
{
	(void)state;
#define BYTES(text) text, sizeof(text) - 1
	static const struct {
		const char *text;
		size_t length;
		const char *error; /* the text begins so */
	} cases[] = {
		{BYTES(""), "line 1, column 0: "},
		{BYTES("{\"a\":1,\"a\":2}"), "line 1, column 10: duplicate object key"},
		{BYTES("{\n\"a\": {\"b\":1,\n  \"b\":2}}"), "line 3, column 5: duplicate object key"},
		{BYTES("{} x"), "line 1, column 4: end of file expected"},
		{BYTES("{}\0"), "line 1, column 3: end of file expected"},
		{BYTES("\xef\xbb\xbf{}"), "line 1, column 1: "},
		{BYTES("{\"a\":\"\xff\"}"), "line 1, column 6: invalid UTF-8: unable to decode byte 0xff"},
		{BYTES("{\"a\":\"\xed\xa0\x80\"}"), "line 1, column 6: invalid UTF-8: unable to decode byte 0xed"},
		{BYTES("{\"a\":\"\xc0\x80\"}"), "line 1, column 6: invalid UTF-8: unable to decode byte 0xc0"},
		{BYTES("{\"a\":\"\\ud800\"}"), "line 1, column "},
		{BYTES("{\"a\":\"x\\u0000y\"}"), "line 1, column "},
		{BYTES("{\"a\\u0000\":1}"), "line 1, column "},
		{BYTES("{\"a\":\"x\0y\"}"), "line 1, column "},
		{BYTES("{\"a\":9223372036854775808}"), "line 1, column 24: too big integer"},
		{BYTES("{\"a\":1e999}"), "line 1, column 10: real number overflow"},
		{BYTES("{\"a\":NaN}"), "line 1, column "},
		{BYTES("{\"a\":01}"), "line 1, column "},
		{BYTES("{\"a\":1,}"), "line 1, column "},
		{BYTES("{'a':1}"), "line 1, column "},
		{BYTES("{\"a\":1}//"), "line 1, column "},
		{BYTES("{\"a\":\x1b[2J}"), "line 1, column "},
		{BYTES("{\"a\":"), "line 1, column "},
	};
#undef BYTES

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		json_t *value = NULL;
		struct err err = ERR_INIT;
		assert_int_equal(json_parse(cases[i].text, cases[i].length, &value, &err), ERR_INVALID);
		assert_null(value);
		if (strncmp(err.text, cases[i].error, strlen(cases[i].error)) != 0)
			fail_msg("%s: got \"%s\", not \"%s\"", cases[i].text, err.text, cases[i].error);
		for (const char *c = err.text; *c; c++)
			assert_in_range(*c, 0x20, 0x7e);
	}
}

static void a_deep_document_is_refused(void **state)
{
	(void)state;
	enum { DEPTH = 20000 };
	static char text[2 * DEPTH];
	json_t *value = NULL;
	struct err err = ERR_INIT;

	memset(text, '[', DEPTH);
	memset(text + DEPTH, ']', DEPTH);
	assert_int_equal(json_parse(text, sizeof text, &value, &err), ERR_INVALID);
	assert_non_null(strstr(err.text, "depth"));
}

static void the_canonical_form_is_one_text(void **state)
{
	(void)state;
	static const struct {
		const char *text, *canonical;
	} cases[] = {
		{"{ }", "{}"},
		{" [ 1 , -0, true,false , null ]\n", "[1,0,true,false,null]"},
		{"{\"b\":1,\"a\":{\"d\":2,\"c\":[]},\"B\":3}", "{\"B\":3,\"a\":{\"c\":[],\"d\":2},\"b\":1}"},
		/* By bytes: U+FF5E (ef bd 9e) stands before U+1F4E6 (f0 9f 93 a6), although UTF-16 would have it the other way. */
		{"{\"\xf0\x9f\x93\xa6\":1,\"\xef\xbd\x9e\":2,\"z\":3}", "{\"z\":3,\"\xef\xbd\x9e\":2,\"\xf0\x9f\x93\xa6\":1}"},
		{"{\"a\":1,\"\":2,\"aa\":3}", "{\"\":2,\"a\":1,\"aa\":3}"},
		{"[\"\\u00e9\\/\\u001f\\u007f\\n\\t\\\"\\\\\"]", "[\"\xc3\xa9/\\u001F\x7f\\n\\t\\\"\\\\\"]"},
		{"[9223372036854775807,-9223372036854775808]", "[9223372036854775807,-9223372036854775808]"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		JSON_AUTO json_t *value = parse(cases[i].text);
		BUF_AUTO struct buf first = BUF_INIT(1000), second = BUF_INIT(1000);
		assert_int_equal(json_canonical(value, &first, NULL), 0);
		assert_string_equal(first.data, cases[i].canonical);
		JSON_AUTO json_t *again = parse(first.data);
		assert_int_equal(json_canonical(again, &second, NULL), 0);
		assert_string_equal(second.data, first.data);
	}
}

static void a_real_number_has_no_canonical_form(void **state)
{
	(void)state;
	static const char *const texts[] = {"[1.0]", "[1e2]", "{\"a\":{\"b\":[0,[0.5]]}}"};

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		JSON_AUTO json_t *value = parse(texts[i]);
		BUF_AUTO struct buf text = BUF_INIT(1000);
		assert_int_equal(json_canonical(value, &text, NULL), ERR_INVALID);
		assert_int_equal(text.len, 0);
	}
}

static void the_canonical_form_keeps_to_the_buffers_limit(void **state)
{
	(void)state;
	static const char text[] = "{\"key\":[1,2],\"longer\":{\"k\":\"text\"}}";
	JSON_AUTO json_t *value = parse(text);

	/* Wherever the end falls: in a key, in a value, before a separator that would still fit. */
	for (size_t max = 0; max < sizeof text - 1; max++) {
		BUF_AUTO struct buf tight = BUF_INIT(max);
		assert_int_equal(json_canonical(value, &tight, NULL), ERR_LIMIT);
	}
	BUF_AUTO struct buf fits = BUF_INIT(sizeof text - 1);
	assert_int_equal(json_canonical(value, &fits, NULL), 0);
	assert_string_equal(fits.data, text);
}

static void a_place_knows_its_path(void **state)
{
	(void)state;
	JSON_AUTO json_t *value = parse("{\"limits\":{\"wall_ms\":1},\"inputs\":[{},{\"a b\":2}]}");
	struct json_at root, limits, wall, inputs, second, odd, absent;

	json_at_root(value, &root);
	json_at_key(&root, "limits", &limits);
	json_at_key(&limits, "wall_ms", &wall);
	assert_string_equal(wall.path, "$.limits.wall_ms");
	assert_int_equal(json_integer_value(wall.value), 1);
	json_at_key(&root, "inputs", &inputs);
	json_at_index(&inputs, 1, &second);
	json_at_key(&second, "a b", &odd);
	assert_string_equal(odd.path, "$.inputs[1][\"a b\"]");
	assert_int_equal(json_integer_value(odd.value), 2);
	json_at_key(&second, "none", &absent);
	assert_string_equal(absent.path, "$.inputs[1].none");
	assert_null(absent.value);
	json_at_key(&absent, "deeper", &absent);
	assert_string_equal(absent.path, "$.inputs[1].none.deeper");
	assert_null(absent.value);
	json_at_index(&inputs, 2, &absent);
	assert_null(absent.value);
	json_at_key(&root, "\x1b[2J\xc3\xa9", &odd);
	assert_string_equal(odd.path, "$[\"?[2J??\"]");
}

static void a_long_path_is_cut(void **state)
{
	(void)state;
	struct json_at at;

	json_at_root(NULL, &at);
	for (int i = 0; i < 100; i++)
		json_at_key(&at, "abcdefg", &at);
	assert_int_equal(strlen(at.path), JSON_PATH_MAX - 1);
	json_at_index(&at, 5, &at);
	assert_int_equal(strlen(at.path), JSON_PATH_MAX - 1);
}

static void an_unknown_key_is_named(void **state)
{
	(void)state;
	static const char *const keys[] = {"a", "b", NULL};
	JSON_AUTO json_t *good = parse("{\"b\":1}");
	JSON_AUTO json_t *bad = parse("{\"a\":1,\"c\":2}");
	JSON_AUTO json_t *array = parse("[]");
	struct json_at at;
	struct err err = ERR_INIT;

	json_at_root(good, &at);
	assert_int_equal(json_only_keys(&at, keys, &err), 0);
	json_at_root(bad, &at);
	assert_int_equal(json_only_keys(&at, keys, &err), ERR_INVALID);
	assert_string_equal(err.text, "$.c: unknown field");
	json_at_root(array, &at);
	assert_int_equal(json_only_keys(&at, keys, &err), ERR_INVALID);
	assert_string_equal(err.text, "$: must be an object");
}

static void integers_are_read_within_their_range(void **state)
{
	(void)state;
	JSON_AUTO json_t *value = parse("{\"one\":1,\"ten\":10,\"eleven\":11,\"zero\":0,\"text\":\"1\",\"real\":1.0,\"true\":true,\"null\":null}");
	static const char *const wrong[] = {"eleven", "zero", "text", "real", "true", "null"};
	struct json_at root, at;
	struct err err = ERR_INIT;
	int64_t number = 5;

	json_at_root(value, &root);
	json_at_key(&root, "absent", &at);
	assert_int_equal(json_read_int(&at, 1, 10, &number, &err), 0);
	assert_int_equal(number, 5);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		json_at_key(&root, wrong[i], &at);
		assert_int_equal(json_read_int(&at, 1, 10, &number, &err), ERR_INVALID);
		assert_int_equal(number, 5);
	}
	assert_string_equal(err.text, "$.null: must be an integer from 1 to 10");
	json_at_key(&root, "one", &at);
	assert_int_equal(json_read_int(&at, 1, 10, &number, &err), 0);
	assert_int_equal(number, 1);
	json_at_key(&root, "ten", &at);
	assert_int_equal(json_read_int(&at, 1, 10, &number, &err), 0);
	assert_int_equal(number, 10);
}

static void booleans_and_strings_are_read_strictly(void **state)
{
	(void)state;
	JSON_AUTO json_t *value = parse("{\"yes\":true,\"one\":1,\"text\":\"\xc3\xa9t\xc3\xa9\"}");
	JSON_AUTO json_t *nul = json_stringn("a\0b", 3);
	struct json_at root, at;
	struct err err = ERR_INIT;
	bool flag = false;
	const char *text = NULL;

	json_at_root(value, &root);
	json_at_key(&root, "yes", &at);
	assert_int_equal(json_read_bool(&at, &flag, &err), 0);
	assert_true(flag);
	assert_int_equal(json_read_string(&at, 10, &text, &err), ERR_INVALID);
	json_at_key(&root, "one", &at);
	assert_int_equal(json_read_bool(&at, &flag, &err), ERR_INVALID);
	assert_string_equal(err.text, "$.one: must be true or false");
	json_at_key(&root, "text", &at);
	assert_int_equal(json_read_string(&at, 4, &text, &err), ERR_INVALID);
	assert_string_equal(err.text, "$.text: must be at most 4 bytes");
	assert_int_equal(json_read_string(&at, 5, &text, &err), 0);
	assert_string_equal(text, "\xc3\xa9t\xc3\xa9");
	json_at_root(nul, &at);
	assert_int_equal(json_read_string(&at, 5, &text, &err), ERR_INVALID);
	assert_string_equal(err.text, "$: must not contain a NUL");
}

static void bytes_that_are_no_text_are_escaped(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t length;
		const char *text;
	} cases[] = {
		{"", 0, ""},
		{"plain \\ \"text\"", 14, "plain \\ \"text\""},
		{"\xc3\xa9\xf0\x9f\x93\xa6", 6, "\xc3\xa9\xf0\x9f\x93\xa6"},
		{"a\nb", 3, "a\\x0ab"},
		{"a\0b", 3, "a\\x00b"},
		{"\x1b[2J", 4, "\\x1b[2J"},
		{"\x7f", 1, "\\x7f"},
		{"\xc2\x9b" "2J", 4, "\\xc2\\x9b2J"},
		{"\xc2\xa0", 2, "\xc2\xa0"},
		{"\xff" "a\\", 3, "\\xffa\\x5c"},
		{"caf\xc3", 4, "caf\\xc3"},
		{"\xed\xa0\x80", 3, "\\xed\\xa0\\x80"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		JSON_AUTO json_t *object = json_object();
		assert_int_equal(json_set_bytes(object, "name", cases[i].bytes, cases[i].length, NULL), 0);
		assert_string_equal(json_string_value(json_object_get(object, "name")), cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_document_names_line_and_column),
		cmocka_unit_test(a_deep_document_is_refused),
		cmocka_unit_test(the_canonical_form_is_one_text),
		cmocka_unit_test(a_real_number_has_no_canonical_form),
		cmocka_unit_test(the_canonical_form_keeps_to_the_buffers_limit),
		cmocka_unit_test(a_place_knows_its_path),
		cmocka_unit_test(a_long_path_is_cut),
		cmocka_unit_test(an_unknown_key_is_named),
		cmocka_unit_test(integers_are_read_within_their_range),
		cmocka_unit_test(booleans_and_strings_are_read_strictly),
		cmocka_unit_test(bytes_that_are_no_text_are_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
