/* test_verdict_names.c - signals have the names that the C library knows them by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lifecycle/verdict.h"

static void ordinary_signals_agree_with_the_library(void **state)
{
	(void)state;
	for (int number = 1; number < 32; number++) {
		char want[16];
		/* 29 has two names, of which the library prefers SIGPOLL. */
		snprintf(want, sizeof(want), "SIG%s", number == SIGIO ? "IO" : sigabbrev_np(number));
		assert_string_equal(verdict_signal_name(number), want);
	}
}

static void real_time_signals_count_from_the_first(void **state)
{
	(void)state;
	assert_string_equal(verdict_signal_name(SIGRTMIN), "SIGRTMIN");
	for (int number = SIGRTMIN + 1; number <= SIGRTMAX; number++) {
		char want[16];
		snprintf(want, sizeof(want), "SIGRTMIN+%d", number - SIGRTMIN);
		assert_string_equal(verdict_signal_name(number), want);
	}
}

static void numbers_without_a_name_stay_numbers(void **state)
{
	(void)state;
	assert_string_equal(verdict_signal_name(32), "SIG32");
	assert_string_equal(verdict_signal_name(33), "SIG33");
}

static void what_is_no_signal_has_no_name(void **state)
{
	(void)state;
	assert_string_equal(verdict_signal_name(0), "SIG?");
	assert_string_equal(verdict_signal_name(-1), "SIG?");
	assert_string_equal(verdict_signal_name(65), "SIG?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_signals_agree_with_the_library),
		cmocka_unit_test(real_time_signals_count_from_the_first),
		cmocka_unit_test(numbers_without_a_name_stay_numbers),
		cmocka_unit_test(what_is_no_signal_has_no_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
