/* priority.c - H34: wants to run before everybody else, and on processors that it was not given. */
#include <sched.h>
#include <sys/resource.h>

#include "probe.h"

enum { IOPRIO_WHO_PROCESS = 1, IOPRIO_REAL_TIME = 1 << 13 };

int main(void)
{
	const struct sched_param first = {.sched_priority = 1};
	cpu_set_t before, all, after;

	PROBE("fifo", sched_setscheduler(0, SCHED_FIFO, &first));
	PROBE("round_robin", sched_setscheduler(0, SCHED_RR, &first));
	PROBE("nice", setpriority(PRIO_PROCESS, 0, -20));
	PROBE("ioprio", syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_REAL_TIME));
	if (sched_getaffinity(0, sizeof(before), &before) != 0)
		die("sched_getaffinity");
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	if (sched_getaffinity(0, sizeof(after), &after) != 0)
		die("sched_getaffinity");
	CPU_OR(&after, &after, &before);
	printf("affinity=%s\n", CPU_EQUAL(&after, &before) ? "kept" : "wider");
	return 0;
}
