/* fork_bomb.c - H01: forks without end, parents exiting at once; main goes on forking too. */
#include "probe.h"

int main(void)
{
	for (;;) {
		pid_t child = fork();

		if (child != 0)
			continue;
		while (fork() >= 0)
			if (fork() > 0)
				_exit(0);
	}
}
