/* sibling.c - H20: gives its own parent a child that it did not make; that one exits with 42 before main exits with 7. */
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "probe.h"

int main(void)
{
	const struct timespec later = {.tv_nsec = 100000000};

	errno = 0;
	long sibling = syscall(SYS_clone, (unsigned long)CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, 0);
	if (sibling == 0)
		_exit(42);
	report("clone.parent", sibling);
	nanosleep(&later, NULL);
	return 7;
}
