/* parallel.c - runs one command so many times, so many at a time, and prints how long that took: the peer of a batch.
 *
 * Usage: parallel COUNT WIDTH COMMAND…
 * Prints nanoseconds. Every run must end with 0. Small on purpose, as pairs.c. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static _Noreturn void die(const char *what, int errnum)
{
	fprintf(stderr, "parallel: %s: %s\n", what, strerror(errnum));
	exit(EXIT_FAILURE);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void start(char **argv, const posix_spawn_file_actions_t *actions)
{
	pid_t pid;
	int errnum = posix_spawn(&pid, argv[0], actions, NULL, argv, environ);

	if (errnum)
		die(argv[0], errnum);
}

static void await_one(void)
{
	int status = 0;

	while (waitpid(-1, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid", errno);
	if (status != 0)
		die("a run failed", ECHILD);
}

int main(int argc, char **argv)
{
	posix_spawn_file_actions_t actions;
	long count = argc > 3 ? strtol(argv[1], NULL, 10) : 0, width = argc > 3 ? strtol(argv[2], NULL, 10) : 0, under_way = 0;

	if (count < 1 || width < 1)
		die("usage: parallel COUNT WIDTH COMMAND...", EINVAL);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);

	int64_t started_ns = now_ns();

	for (long i = 0; i < count; i++, under_way++) {
		for (; under_way == width; under_way--)
			await_one();
		start(argv + 3, &actions);
	}
	for (; under_way > 0; under_way--)
		await_one();
	printf("%lld\n", (long long)(now_ns() - started_ns));
	return 0;
}
