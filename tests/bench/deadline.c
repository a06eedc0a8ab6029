/* deadline.c - kills a program at a time limit with a bare timer and nothing else: what exactness.py holds Caisson's kill against.
 *
 * Usage: deadline MILLISECONDS PROGRAM [ARGUMENT…] */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static _Noreturn void die(const char *what, int errnum)
{
	fprintf(stderr, "deadline: %s: %s\n", what, strerror(errnum));
	exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	long limit_ms = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
	struct itimerspec when = {.it_value = {.tv_sec = limit_ms / 1000, .tv_nsec = limit_ms % 1000 * 1000000}};
	uint64_t expirations;
	pid_t pid;

	if (limit_ms < 1)
		die("usage: deadline MILLISECONDS PROGRAM", EINVAL);
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	int errnum = posix_spawn(&pid, argv[2], NULL, NULL, argv + 2, environ);
	if (errnum)
		die(argv[2], errnum);
	if (timer < 0 || timerfd_settime(timer, 0, &when, NULL) != 0 || read(timer, &expirations, sizeof(expirations)) < 0)
		die("timerfd", errno);
	kill(pid, SIGKILL);
	return waitpid(pid, NULL, 0) == pid ? EXIT_SUCCESS : EXIT_FAILURE;
}
