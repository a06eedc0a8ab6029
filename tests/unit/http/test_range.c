/* test_range.c - which part of an object a Range header means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/range.h"

static void assert_part(const char *text, uint64_t size, uint64_t first, uint64_t length)
{
	struct range range = {0};
	assert_int_equal(range_parse(text, size, &range), RANGE_PART);
	assert_int_equal(range.first, first);
	assert_int_equal(range.length, length);
}

static void a_range_is_cut_to_the_object(void **state)
{
	(void)state;
	assert_part("bytes=0-0", 10, 0, 1);
	assert_part("bytes=3-", 10, 3, 7);
	assert_part("bytes=3-9", 10, 3, 7);
	assert_part("bytes=3-10", 10, 3, 7);
	assert_part("bytes=9-18446744073709551615", 10, 9, 1);
	assert_part("bytes=9-99999999999999999999999", 10, 9, 1);
	assert_part("BYTES=0-1", 10, 0, 2);
	assert_part("bytes=0-", UINT64_MAX, 0, UINT64_MAX);
}

static void a_suffix_counts_from_the_end(void **state)
{
	(void)state;
	assert_part("bytes=-1", 10, 9, 1);
	assert_part("bytes=-10", 10, 0, 10);
	assert_part("bytes=-99999999999999999999999", 10, 0, 10);
}

static void what_lies_outside_is_told(void **state)
{
	static const char *const texts[] = {"bytes=10-", "bytes=10-20", "bytes=99999999999999999999999-", "bytes=-0"};
	struct range range;
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(range_parse(texts[i], 10, &range), RANGE_OUTSIDE);
	assert_int_equal(range_parse("bytes=0-", 0, &range), RANGE_OUTSIDE);
	assert_int_equal(range_parse("bytes=-1", 0, &range), RANGE_OUTSIDE);
}

static void what_makes_no_sense_or_asks_for_more_is_ignored(void **state)
{
	static const char *const texts[] = {"",           "bytes",     "bytes=",        "bytes=-",    "bytes=a-b",
	                                    "bytes=1",    "bytes=5-4", "bytes=1-2,4-5", "bytes=1-2 ", "bytes= 1-2",
	                                    "bytes=+1-2", "bytes=--1", "bytes=1--2",    "lines=1-2",  "bytes=1-2-3"};
	struct range range;
	(void)state;
	assert_int_equal(range_parse(NULL, 10, &range), RANGE_ALL);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (range_parse(texts[i], 10, &range) != RANGE_ALL)
			fail_msg("'%s'", texts[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_is_cut_to_the_object),
		cmocka_unit_test(a_suffix_counts_from_the_end),
		cmocka_unit_test(what_lies_outside_is_told),
		cmocka_unit_test(what_makes_no_sense_or_asks_for_more_is_ignored),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
