/* test_lease.c - a lease is lost by what was seen of it, never by a wall clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "lease/lease.h"

enum { TTL_MS = 30000 };

static int64_t at_ms(int64_t ms)
{
	return ms * NS_PER_MS;
}

static void one_that_was_never_seen_is_not_taken(void **state)
{
	struct lease_watch watch = {.seen = false};

	(void)state;
	assert_false(lease_may_take_over(&watch, false, TTL_MS, at_ms(1000000)));
}

static void one_seen_unchanged_for_its_ttl_is_taken_and_not_before(void **state)
{
	struct lease_watch watch = {.seen = false};

	(void)state;
	lease_observe(&watch, 1, 5, at_ms(100));
	lease_observe(&watch, 1, 5, at_ms(20000));
	assert_false(lease_may_take_over(&watch, false, TTL_MS, at_ms(100 + TTL_MS) - 1));
	assert_true(lease_may_take_over(&watch, false, TTL_MS, at_ms(100 + TTL_MS)));
}

static void a_renewal_or_a_new_generation_begins_anew(void **state)
{
	struct lease_watch watch = {.seen = false};

	(void)state;
	lease_observe(&watch, 1, 5, at_ms(0));
	lease_observe(&watch, 1, 6, at_ms(29000));
	assert_false(lease_may_take_over(&watch, false, TTL_MS, at_ms(31000)));
	lease_observe(&watch, 2, 6, at_ms(58000));
	assert_false(lease_may_take_over(&watch, false, TTL_MS, at_ms(60000)));
	assert_true(lease_may_take_over(&watch, false, TTL_MS, at_ms(88000)));
}

static void a_free_flock_is_enough_and_a_held_one_is_no_life_for_ever(void **state)
{
	struct lease_watch watch = {.seen = false};

	(void)state;
	assert_true(lease_may_take_over(&watch, true, TTL_MS, at_ms(0)));
	lease_observe(&watch, 1, 5, at_ms(0));
	assert_false(lease_may_take_over(&watch, false, TTL_MS, at_ms(TTL_MS) - 1));
	assert_true(lease_may_take_over(&watch, false, TTL_MS, at_ms(10 * TTL_MS)));
}

static void a_clock_that_goes_back_begins_anew(void **state)
{
	struct lease_watch watch = {.seen = false};

	(void)state;
	lease_observe(&watch, 1, 5, at_ms(50000));
	lease_observe(&watch, 1, 5, at_ms(10)); /* another boot */
	assert_false(lease_may_take_over(&watch, false, TTL_MS, at_ms(20000)));
	assert_true(lease_may_take_over(&watch, false, TTL_MS, at_ms(10 + TTL_MS)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_was_never_seen_is_not_taken),
		cmocka_unit_test(one_seen_unchanged_for_its_ttl_is_taken_and_not_before),
		cmocka_unit_test(a_renewal_or_a_new_generation_begins_anew),
		cmocka_unit_test(a_free_flock_is_enough_and_a_held_one_is_no_life_for_ever),
		cmocka_unit_test(a_clock_that_goes_back_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
