/* test_stats.c - which bucket a duration falls into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "keeper/api/stats_internal.h"

static void a_duration_at_a_bound_is_within_it_and_a_nanosecond_more_is_not(void **state)
{
	(void)state;
	struct stats_histogram histogram = {0};
	stats_observe(&histogram, 500 * 1000);
	stats_observe(&histogram, 500 * 1000 + 1);
	assert_int_equal(histogram.buckets[0], 1);
	assert_int_equal(histogram.buckets[1], 1);
	assert_int_equal(histogram.count, 2);
	assert_int_equal(histogram.sum_us, 1001);
}

static void a_duration_beyond_every_bound_is_counted(void **state)
{
	(void)state;
	struct stats_histogram histogram = {0};
	uint64_t in_buckets = 0;
	stats_observe(&histogram, 2 * 3600 * NS_PER_S);
	for (size_t i = 0; i < STATS_BUCKETS; i++)
		in_buckets += histogram.buckets[i];
	assert_int_equal(in_buckets, 0);
	assert_int_equal(histogram.count, 1);
}

static void a_duration_that_is_not_known_is_not_counted(void **state)
{
	(void)state;
	struct stats_histogram histogram = {0};
	stats_observe(&histogram, -1);
	assert_int_equal(histogram.count, 0);
}

static void bounds_grow(void **state)
{
	(void)state;
	for (size_t i = 1; i < STATS_BUCKETS; i++)
		assert_true(stats_bounds_us[i] > stats_bounds_us[i - 1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_duration_at_a_bound_is_within_it_and_a_nanosecond_more_is_not),
		cmocka_unit_test(a_duration_beyond_every_bound_is_counted),
		cmocka_unit_test(a_duration_that_is_not_known_is_not_counted),
		cmocka_unit_test(bounds_grow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
