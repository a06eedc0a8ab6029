/* shapes.c - H11, H12: never the same process for long.
 *
 * shapes: each millisecond a new pid and, by exec, a new name. pids: children that end at once, through all numbers there are. */
#include <sys/prctl.h>
#include <time.h>

#include "probe.h"

static void become_another(const char *program, long number)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	char name[32];

	nanosleep(&moment, NULL);
	if (fork() != 0)
		_exit(0);
	snprintf(name, sizeof(name), "shape-%ld", number + 1);
	execl(program, name, name + strlen("shape-"), NULL);
	_exit(1);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "pids") == 0)
		for (;;) {
			if (fork() == 0)
				_exit(0);
			while (waitpid(-1, NULL, 0) > 0)
				;
		}
	if (argc > 1) {
		prctl(PR_SET_NAME, argv[0]);
		become_another("/box/prog", strtol(argv[1], NULL, 10));
	}
	if (fork() == 0)
		become_another("/box/prog", 0);
	for (;;)
		pause();
}
