/* test_key.c - idempotency keys: what cannot be a header is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/key.h"

static void words_are_keys(void **state)
{
	(void)state;
	char longest[KEY_MAX + 1] = "";

	memset(longest, 'k', KEY_MAX);
	assert_int_equal(key_check("build-42/a:b#1", NULL), 0);
	assert_int_equal(key_check(longest, NULL), 0);
}

static void what_a_header_cannot_hold_is_refused(void **state)
{
	(void)state;
	char too_long[KEY_MAX + 2] = "";

	memset(too_long, 'k', KEY_MAX + 1);
	assert_int_equal(key_check("", NULL), ERR_INVALID);
	assert_int_equal(key_check("a b", NULL), ERR_INVALID);
	assert_int_equal(key_check("a\r\nHost: b", NULL), ERR_INVALID);
	assert_int_equal(key_check("a\x7f", NULL), ERR_INVALID);
	assert_int_equal(key_check("k\xc3\xa4", NULL), ERR_INVALID);
	assert_int_equal(key_check(too_long, NULL), ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_keys),
		cmocka_unit_test(what_a_header_cannot_hold_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
