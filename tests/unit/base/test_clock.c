/* test_clock.c - clocks go forward, and times are spelled as RFC 3339 says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

static void durations_never_go_backwards(void **state)
{
	(void)state;
	int64_t mono = clock_mono_ns(), boot = clock_boot_ns();

	for (int i = 0; i < 1000; i++) {
		int64_t mono_next = clock_mono_ns(), boot_next = clock_boot_ns();
		assert_true(mono_next >= mono && boot_next >= boot);
		mono = mono_next;
		boot = boot_next;
	}
}

static void wall_time_is_in_milliseconds(void **state)
{
	(void)state;
	assert_in_range(clock_wall_ms(), INT64_C(1577836800000), INT64_C(253402300799999));
}

static void times_are_spelled_in_utc(void **state)
{
	(void)state;
	static const struct {
		int64_t wall_ms;
		const char *text;
	} cases[] = {
		{0, "1970-01-01T00:00:00.000Z"},
		{INT64_C(1795984894123), "2026-11-29T20:41:34.123Z"},
		{INT64_C(951782400007), "2000-02-29T00:00:00.007Z"},
		{INT64_C(253402300799999), "9999-12-31T23:59:59.999Z"},
		{INT64_MAX, "9999-12-31T23:59:59.999Z"},
		{-1, "1970-01-01T00:00:00.000Z"},
	};
	char text[CLOCK_TEXT_SIZE];

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_string_equal(clock_format(cases[i].wall_ms, text), cases[i].text);
}

/* So that no figure of a receipt contradicts its verdict. */
static void rounding_never_carries_a_time_over_a_limit(void **state)
{
	(void)state;
	static const int64_t limit_ms = 100, limit_ns = 100 * NS_PER_MS;

	assert_int_equal(clock_ns_to_ms(limit_ns - 1), limit_ms);
	assert_int_equal(clock_ns_to_ms(limit_ns), limit_ms);
	assert_int_equal(clock_ns_to_ms(limit_ns + 1), limit_ms);
	assert_int_equal(clock_ns_to_ms(limit_ns - NS_PER_MS / 2), limit_ms);
	assert_int_equal(clock_ns_to_ms(limit_ns - NS_PER_MS / 2 - 1), limit_ms - 1);
	assert_int_equal(clock_ns_to_ms(limit_ns + NS_PER_MS / 2), limit_ms + 1);
	assert_int_equal(clock_ns_to_ms(0), 0);
	assert_int_equal(clock_ns_to_ms(-1), -1);
	assert_int_equal(clock_ns_to_ms(INT64_MAX), INT64_MAX / NS_PER_MS + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_never_go_backwards),
		cmocka_unit_test(wall_time_is_in_milliseconds),
		cmocka_unit_test(times_are_spelled_in_utc),
		cmocka_unit_test(rounding_never_carries_a_time_over_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
