/* join.c - enters control groups and becomes a program: the bare group that exactness.py holds a receipt's figures against.
 *
 * Usage: join PROCS_FILE… -- PROGRAM [ARGUMENT…]
 * Nothing but the exec happens after the join; the sum of a bare group is the program's own, and that of becoming it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "join: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	int at = 1;

	for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
		int group = open(argv[at], O_WRONLY | O_CLOEXEC);
		if (group < 0 || write(group, "0", 1) != 1)
			die(argv[at]);
	}
	if (at + 1 >= argc) {
		errno = EINVAL;
		die("usage: join PROCS_FILE... -- PROGRAM");
	}
	execv(argv[at + 1], argv + at + 1);
	die(argv[at + 1]);
}
