/* probe.h - what the guest programs share: one machine-readable line `name=value` for each thing they try. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>

/* "name=0" when the result is not negative, else the errno's name. Keeps errno, so that what failed because an earlier call had
 * failed can be reported with the earlier one's reason. */
static inline void report(const char *name, long result)
{
	int error = errno;
	const char *text = result >= 0 ? "0" : strerrorname_np(error);

	printf("%s=%s\n", name, text && (result >= 0 || error != 0) ? text : "EUNKNOWN");
	fflush(stdout);
	errno = error;
}

#define PROBE(name, call) report((name), (long)(call))

static inline void report_number(const char *name, long value)
{
	printf("%s=%ld\n", name, value);
	fflush(stdout);
}

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(99);
}

/* Waits for a child that ends by itself; prints how: "name=exit:N" or "name=signal:N". */
static inline void report_child(const char *name, pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		die("waitpid");
	if (WIFSIGNALED(status))
		printf("%s=signal:%d\n", name, WTERMSIG(status));
	else
		printf("%s=exit:%d\n", name, WEXITSTATUS(status));
	fflush(stdout);
}
