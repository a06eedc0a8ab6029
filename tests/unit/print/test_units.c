/* test_units.c - sizes, times and counts: what is read, what is refused, and why the refusal helps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "print/units.h"

#define refused(call, words)                                                                                                       \
	do {                                                                                                                       \
		int64_t value = 77;                                                                                                \
		struct err err = ERR_INIT;                                                                                         \
		assert_int_equal((call), ERR_INVALID);                                                                             \
		assert_non_null(strstr(err.text, (words)));                                                                        \
		assert_int_equal(value, 77);                                                                                       \
	} while (0)

static int64_t size_of(const char *text)
{
	int64_t bytes = -1;

	assert_int_equal(units_parse_size(text, &bytes, NULL), 0);
	return bytes;
}

static int64_t ms_of(const char *text)
{
	int64_t ms = -1;

	assert_int_equal(units_parse_time_ms(text, &ms, NULL), 0);
	return ms;
}

static void sizes_are_multiples_of_1024(void **state)
{
	(void)state;
	assert_int_equal(size_of("0"), 0);
	assert_int_equal(size_of("4097"), 4097);
	assert_int_equal(size_of("64K"), 65536);
	assert_int_equal(size_of("256M"), 268435456);
	assert_int_equal(size_of("2G"), INT64_C(2147483648));
	assert_int_equal(size_of("9223372036854775807"), INT64_MAX);
}

static void sizes_that_could_be_misread_are_refused(void **state)
{
	static const char *const bad[] = {"",    "K",    "-1",   "+1",  " 1",   "1 K",  "1.5G", "1k",
	                                  "1KB", "1MiB", "0x10", "1e3", "64Kx", "none", NULL};

	(void)state;
	for (const char *const *text = bad; *text; text++)
		refused(units_parse_size(*text, &value, &err), "is not a size");
}

static void sizes_that_overflow_are_refused(void **state)
{
	(void)state;
	refused(units_parse_size("9223372036854775808", &value, &err), "is not a size");
	refused(units_parse_size("9007199254740992K", &value, &err), "too large");
	refused(units_parse_size("8589934592G", &value, &err), "too large");
}

static void times_are_whole_milliseconds(void **state)
{
	(void)state;
	assert_int_equal(ms_of("0ms"), 0);
	assert_int_equal(ms_of("250ms"), 250);
	assert_int_equal(ms_of("2s"), 2000);
	assert_int_equal(ms_of("0.5s"), 500);
	assert_int_equal(ms_of("1.125s"), 1125);
	assert_int_equal(ms_of("1.5m"), 90000);
	assert_int_equal(ms_of("24h"), 86400000);
}

static void a_time_without_unit_names_the_units(void **state)
{
	(void)state;
	refused(units_parse_time_ms("2", &value, &err), "no unit");
	refused(units_parse_time_ms("0.5", &value, &err), "no unit");
}

static void times_that_could_be_misread_are_refused(void **state)
{
	static const char *const bad[] = {"",   "s",    ".5s",   "1.s",    "-1s",     "1 s", "1S",
	                                  "1d", "1sec", "1..5s", "1.5.5s", "1.0625s", NULL};

	(void)state;
	for (const char *const *text = bad; *text; text++)
		refused(units_parse_time_ms(*text, &value, &err), "is not a time");
	refused(units_parse_time_ms("0.5ms", &value, &err), "whole number of milliseconds");
	refused(units_parse_time_ms("9223372036854775807h", &value, &err), "too large");
}

static void counts_are_plain_numbers(void **state)
{
	int64_t count = -1;

	(void)state;
	assert_int_equal(units_parse_count("64", &count, NULL), 0);
	assert_int_equal(count, 64);
	refused(units_parse_count("64K", &value, &err), "whole number");
	refused(units_parse_count("", &value, &err), "whole number");
	refused(units_parse_count("-1", &value, &err), "whole number");
}

static void figures_read_well(void **state)
{
	char text[UNITS_TEXT_SIZE];

	(void)state;
	assert_string_equal(units_format_size(0, text), "0 bytes");
	assert_string_equal(units_format_size(1023, text), "1023 bytes");
	assert_string_equal(units_format_size(1536, text), "1.5 KiB");
	assert_string_equal(units_format_size(268435456, text), "256 MiB");
	assert_string_equal(units_format_size(-1, text), "unknown");
	assert_string_equal(units_format_size(INT64_MAX, text), "unknown");
	assert_string_equal(units_format_time_ms(999, text), "999 ms");
	assert_string_equal(units_format_time_ms(1001, text), "1.001 s");
	assert_string_equal(units_format_time_ms(-1, text), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_multiples_of_1024),
		cmocka_unit_test(sizes_that_could_be_misread_are_refused),
		cmocka_unit_test(sizes_that_overflow_are_refused),
		cmocka_unit_test(times_are_whole_milliseconds),
		cmocka_unit_test(a_time_without_unit_names_the_units),
		cmocka_unit_test(times_that_could_be_misread_are_refused),
		cmocka_unit_test(counts_are_plain_numbers),
		cmocka_unit_test(figures_read_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
