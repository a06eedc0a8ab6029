/* test_backoff.c - a lost call is made again soon, and then less and less often. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/backoff.h"

static void it_doubles_up_to_its_bound(void **state)
{
	(void)state;
	assert_int_equal(backoff_ms(1), BACKOFF_FIRST_MS);
	assert_int_equal(backoff_ms(2), 2 * BACKOFF_FIRST_MS);
	assert_int_equal(backoff_ms(4), 8 * BACKOFF_FIRST_MS);
	for (unsigned losses = 1; losses < 100; losses++)
		assert_true(backoff_ms(losses) <= backoff_ms(losses + 1) && backoff_ms(losses) <= BACKOFF_MAX_MS);
	assert_int_equal(backoff_ms(UINT_MAX), BACKOFF_MAX_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_doubles_up_to_its_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
