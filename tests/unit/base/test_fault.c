/* test_fault.c - a fault fires once, at the passage that was asked for, and nowhere else. Built with fault points, unlike the program. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fault.h"

enum { FAILED_TWICE = 255 };

/* Passes the place "a.b" `steps` times in a child, which has a history of its own. Its exit code: 32 times the passage that failed plus
 * the negated error code, 0 when none failed. */
static pid_t start(const char *faults, int steps)
{
	int result = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child > 0)
		return child;
	setenv("CAISSON_FAULT", faults, 1);
	for (int i = 1; i <= steps; i++) {
		int r = FAULT("a.b");
		if (r < 0)
			result = result == 0 ? i * 32 - r : FAILED_TWICE;
	}
	_exit(result);
}

static int run(const char *faults, int steps)
{
	int status;
	pid_t child = start(faults, steps);

	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void an_error_fires_at_the_first_passage_and_only_there(void **state)
{
	(void)state;
	assert_int_equal(run("a.b:eio", 1), 32 - ERR_IO);
	assert_int_equal(run("a.b:enospc", 3), 32 - ERR_NO_SPACE);
}

static void a_later_passage_can_be_chosen(void **state)
{
	(void)state;
	assert_int_equal(run("a.b@3:eio", 5), 3 * 32 - ERR_IO);
	assert_int_equal(run("a.b@3:eio", 2), 0);
}

static void other_places_are_not_hit(void **state)
{
	(void)state;
	assert_int_equal(run("a:kill,a.b.c:kill,b:kill", 3), 0);
	assert_int_equal(run("", 3), 0);
	assert_int_equal(run("x:eio,a.b@2:enospc", 3), 2 * 32 - ERR_NO_SPACE);
}

static void a_kill_is_a_kill(void **state)
{
	(void)state;
	assert_int_equal(run("a.b:kill", 1), -SIGKILL);
}

static void a_stop_lasts_until_it_is_continued(void **state)
{
	(void)state;
	int status;
	pid_t child = start("a.b:stop", 2);

	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(kill(child, SIGCONT), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_delay_takes_its_time(void **state)
{
	(void)state;
	int64_t before_ns = clock_mono_ns();

	assert_int_equal(run("a.b:delay_30", 2), 0);
	assert_true(clock_mono_ns() - before_ns >= 30 * NS_PER_MS);
}

static void a_fault_that_is_not_understood_aborts(void **state)
{
	(void)state;
	static const char *const wrong[] = {"a.b", "a.b:explode", "a.b:delay_", "a.b:delay_x", "a.b@0:kill", "a.b@x:kill"};

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_int_equal(run(wrong[i], 1), -SIGABRT);
}

static void omissions_are_named_whole(void **state)
{
	(void)state;
	unsetenv("CAISSON_OMIT");
	assert_false(OMITTED("seccomp"));
	setenv("CAISSON_OMIT", "ns.pid,seccomp", 1);
	assert_true(OMITTED("ns.pid"));
	assert_true(OMITTED("seccomp"));
	assert_false(OMITTED("ns.pi"));
	assert_false(OMITTED("ns"));
	assert_false(OMITTED("seccomp2"));
	unsetenv("CAISSON_OMIT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_fires_at_the_first_passage_and_only_there),
		cmocka_unit_test(a_later_passage_can_be_chosen),
		cmocka_unit_test(other_places_are_not_hit),
		cmocka_unit_test(a_kill_is_a_kill),
		cmocka_unit_test(a_stop_lasts_until_it_is_continued),
		cmocka_unit_test(a_delay_takes_its_time),
		cmocka_unit_test(a_fault_that_is_not_understood_aborts),
		cmocka_unit_test(omissions_are_named_whole),
	};

	/* Children abort here on purpose. */
	setrlimit(RLIMIT_CORE, &(struct rlimit){.rlim_cur = 0, .rlim_max = 0});
	return cmocka_run_group_tests(tests, NULL, NULL);
}
