/* test_birth.c - a child on a borrowed stack: it executes, its parent goes on as if nothing had been, and a clone that fails says why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boundary/linux/birth.h"

static void execute(const void *context)
{
	char *const argv[] = {(char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", (char *)(uintptr_t)context, NULL};
	static char *const env[] = {NULL};
	volatile char own[4096]; /* more than a frame of the parent's */
	for (size_t i = 0; i < sizeof(own); i++)
		own[i] = 'x';
	execve("/bin/sh", argv, env);
	_exit(126);
}

static int end_of(pid_t pid)
{
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_child_executes_and_its_parent_goes_on(void **unused)
{
	char before[512], after[512];
	(void)unused;
	memset(before, 'b', sizeof(before));
	memcpy(after, before, sizeof(after));
	for (int code = 0; code < 3; code++) {
		static const char *const scripts[] = {"exit 0", "exit 1", "exit 2"};
		struct clone_args args = {.exit_signal = SIGCHLD};
		pid_t pid = birth(&args, execute, scripts[code]);
		assert_true(pid > 0);
		assert_int_equal(WEXITSTATUS(end_of(pid)), code);
	}
	assert_memory_equal(before, after, sizeof(before));
}

static void what_only_the_child_changes_stays_the_childs(void **unused)
{
	int ends[2];
	char text[4] = "", script[32];
	struct clone_args args = {.exit_signal = SIGCHLD};
	(void)unused;
	assert_int_equal(pipe(ends), 0);
	snprintf(script, sizeof(script), "echo ok >&%d", ends[1]);
	pid_t pid = birth(&args, execute, script);
	close(ends[1]);
	assert_int_equal(end_of(pid), 0);
	assert_int_equal(read(ends[0], text, sizeof(text)), 3);
	assert_memory_equal(text, "ok\n", 3);
	close(ends[0]);
}

static void a_clone_that_fails_says_why(void **unused)
{
	struct clone_args args = {.exit_signal = SIGCHLD, .flags = CLONE_NEWNS | CLONE_FS};
	(void)unused;
	assert_int_equal(birth(&args, execute, "exit 0"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_executes_and_its_parent_goes_on),
		cmocka_unit_test(what_only_the_child_changes_stays_the_childs),
		cmocka_unit_test(a_clone_that_fails_says_why),
	};
	return cmocka_run_group_tests_name("birth", tests, NULL, NULL);
}
