/* test_id.c - identifiers have one shape, and no two are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/id.h"

static void an_identifier_has_its_shape(void **state)
{
	(void)state;
	static const char *const prefixes[] = {"run", "at", "b"};
	char id[ID_SIZE];

	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
		id_new(prefixes[i], id);
		assert_int_equal(strlen(id), strlen(prefixes[i]) + 1 + ID_RANDOM_CHARS);
		assert_true(id_valid(prefixes[i], id));
	}
}

static void other_shapes_are_not_valid(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"", "run", "run-", "run-abcdefghijklmno", "run-abcdefghijklmnopq", "run-abcdefghijklmno1", "run-ABCDEFGHIJKLMNOP",
		"run_abcdefghijklmnop", "att-abcdefghijklmnop", "run-abcdefghijklmn/p", "run-abcdefghijklmno\n",
	};

	assert_true(id_valid("run", "run-abcdefghijklm267"));
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_false(id_valid("run", wrong[i]));
}

static void the_beginning_of_an_identifier_is_told_from_other_text(void **state)
{
	(void)state;
	static const char *const wrong[] = {"", "run", "run-", "run-a", "run-a1", "run-ab/", "att-abc", "run-abcdefghijklmnopq", "run-ab%"};

	assert_true(id_begins("run", "run-ab"));
	assert_true(id_begins("run", "run-abcdefghijklm267"));
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_false(id_begins("run", wrong[i]));
}

static void every_character_place_varies(void **state)
{
	(void)state;
	char first[ID_SIZE], next[ID_SIZE];
	bool varied[ID_RANDOM_CHARS] = {false};

	id_new("run", first);
	for (int i = 0; i < 200; i++) {
		id_new("run", next);
		assert_string_not_equal(first, next);
		for (size_t c = 0; c < ID_RANDOM_CHARS; c++)
			varied[c] |= first[4 + c] != next[4 + c];
	}
	for (size_t c = 0; c < ID_RANDOM_CHARS; c++)
		assert_true(varied[c]);
}

static void random_bytes_fill_all_that_is_asked(void **state)
{
	(void)state;
	unsigned char bytes[600], any[600] = {0};

	for (int i = 0; i < 32; i++) {
		id_random(bytes, sizeof bytes);
		for (size_t b = 0; b < sizeof bytes; b++)
			any[b] |= bytes[b];
	}
	for (size_t b = 0; b < sizeof bytes; b++)
		assert_int_not_equal(any[b], 0);
	id_random(bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_identifier_has_its_shape),
		cmocka_unit_test(other_shapes_are_not_valid),
		cmocka_unit_test(the_beginning_of_an_identifier_is_told_from_other_text),
		cmocka_unit_test(every_character_place_varies),
		cmocka_unit_test(random_bytes_fill_all_that_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
