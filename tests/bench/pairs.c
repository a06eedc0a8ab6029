/* pairs.c - starts commands in turn, many times, and prints how long each took: the timing loop of bench.py.
 *
 * Usage: pairs ROUNDS COMMAND… ::: COMMAND… [::: …]
 * In each round every command runs once; the order turns by one each round, so that none always follows the same. One line per
 * run: the command's index, nanoseconds from before the spawn until it is reaped, wait status. The first round warms up and is
 * not printed; a command that fails ends it all with its line. Small on purpose: a large parent makes every fork slower. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define SEPARATOR ":::"

enum { COMMANDS_MAX = 16, ROUNDS_MAX = 100000 };

extern char **environ;

static _Noreturn void die(const char *what, int errnum)
{
	fprintf(stderr, "pairs: %s: %s\n", what, strerror(errnum));
	exit(EXIT_FAILURE);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Splits the words into commands in place, each ending with NULL. Returns how many there are. */
static size_t split(char **words, char **commands[COMMANDS_MAX])
{
	size_t count = 0;

	for (char **start = words; *start;) {
		if (count == COMMANDS_MAX)
			die("commands", E2BIG);
		commands[count++] = start;
		while (*start && strcmp(*start, SEPARATOR) != 0)
			start++;
		if (*start)
			*start++ = NULL;
	}
	return count;
}

/* Runs one command with its output thrown away; its complaints stay visible. Returns nanoseconds. */
static int64_t run(char **argv, const posix_spawn_file_actions_t *actions, int *ret_status)
{
	int64_t started_ns = now_ns();
	pid_t pid;
	int errnum = posix_spawn(&pid, argv[0], actions, NULL, argv, environ);

	if (errnum)
		die(argv[0], errnum);
	while (waitpid(pid, ret_status, 0) < 0) {
		if (errno != EINTR)
			die("waitpid", errno);
	}
	return now_ns() - started_ns;
}

int main(int argc, char **argv)
{
	char **commands[COMMANDS_MAX];
	posix_spawn_file_actions_t actions;
	long rounds = argc > 2 ? strtol(argv[1], NULL, 10) : 0;

	if (rounds < 1 || rounds > ROUNDS_MAX)
		die("usage: pairs ROUNDS COMMAND... ::: COMMAND...", EINVAL);
	size_t count = split(argv + 2, commands);

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	for (long round = 0; round <= rounds; round++) {
		for (size_t i = 0; i < count; i++) {
			size_t which = (i + (size_t)round) % count;
			int status;
			int64_t took_ns = run(commands[which], &actions, &status);

			if (round > 0 || status != 0)
				printf("%zu %lld %d\n", which, (long long)took_ns, status);
			if (status != 0)
				return EXIT_FAILURE;
		}
	}
	return EXIT_SUCCESS;
}
