/* test_router.c - R16: only a free worker of the profile that was verified a moment ago, else none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "keeper/router.h"

static const int64_t now_ns = 1000 * NS_PER_S;

static struct router_worker worker(enum stats_worker state, int64_t age_s)
{
	return (struct router_worker){.profile = "linux", .state = state, .verified_at_ns = now_ns - age_s * NS_PER_S, .last_owner = ""};
}

static void a_free_worker_verified_a_moment_ago_gets_it(void **state)
{
	(void)state;
	size_t index = 99;
	const struct router_worker workers[] = {worker(STATS_BUSY, 0), worker(STATS_AVAILABLE, ROUTER_FRESH_S)};
	assert_int_equal(router_choose(workers, 2, "linux", "uid:1", now_ns, &index), ROUTE_TAKEN);
	assert_int_equal(index, 1);
}

static void an_old_verification_is_none(void **state)
{
	(void)state;
	size_t index = 99;
	struct router_worker workers[] = {worker(STATS_AVAILABLE, ROUTER_FRESH_S + 1)};
	assert_int_equal(router_choose(workers, 1, "linux", "uid:1", now_ns, &index), ROUTE_WAIT);
	workers[0].verified_at_ns = now_ns + 1; /* a clock that went back proves nothing */
	assert_int_equal(router_choose(workers, 1, "linux", "uid:1", now_ns, &index), ROUTE_WAIT);
	assert_int_equal(index, 99);
}

static void never_a_worker_of_another_profile(void **state)
{
	(void)state;
	size_t index = 99;
	const struct router_worker workers[] = {worker(STATS_AVAILABLE, 0)};
	assert_int_equal(router_choose(workers, 1, "docker", "uid:1", now_ns, &index), ROUTE_NONE);
	assert_int_equal(router_choose(workers, 0, "linux", "uid:1", now_ns, &index), ROUTE_NONE);
	assert_int_equal(index, 99);
}

static void the_owners_last_worker_is_preferred(void **state)
{
	(void)state;
	size_t index = 99;
	struct router_worker workers[] = {worker(STATS_AVAILABLE, 0), worker(STATS_AVAILABLE, 0), worker(STATS_AVAILABLE, 0)};
	workers[1].last_owner = "uid:1";
	assert_int_equal(router_choose(workers, 3, "linux", "uid:1", now_ns, &index), ROUTE_TAKEN);
	assert_int_equal(index, 1);
	workers[1].state = STATS_QUARANTINED; /* then another that may */
	assert_int_equal(router_choose(workers, 3, "linux", "uid:1", now_ns, &index), ROUTE_TAKEN);
	assert_int_not_equal(index, 1);
}

static void quarantine_and_failed_verification_are_no_hope(void **state)
{
	(void)state;
	size_t index;
	struct router_worker workers[] = {worker(STATS_QUARANTINED, 0), worker(STATS_UNVERIFIED, 0)};
	assert_int_equal(router_choose(workers, 2, "linux", "uid:1", now_ns, &index), ROUTE_NONE);
	workers[1].verifying = true;
	assert_int_equal(router_choose(workers, 2, "linux", "uid:1", now_ns, &index), ROUTE_WAIT);
	workers[0].verifying = true; /* of a quarantine it says nothing */
	workers[1].verifying = false;
	assert_int_equal(router_choose(workers, 2, "linux", "uid:1", now_ns, &index), ROUTE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_free_worker_verified_a_moment_ago_gets_it),
		cmocka_unit_test(an_old_verification_is_none),
		cmocka_unit_test(never_a_worker_of_another_profile),
		cmocka_unit_test(the_owners_last_worker_is_preferred),
		cmocka_unit_test(quarantine_and_failed_verification_are_no_hope),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
