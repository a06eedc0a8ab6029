/* host.c - reads the facts of this host. */
#include "keeper/host.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

static int hard_limit(int resource, int64_t *ret, const char *what, struct err *err)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) < 0)
		return err_sys(err, errno, "the limit of %s", what);
	*ret = limit.rlim_max > INT64_MAX ? INT64_MAX : (int64_t)limit.rlim_max;
	return 0;
}

int host_facts(struct plan_host *ret, struct err *err)
{
	struct sysinfo memory;
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return err_sys(err, errno, "the usable CPUs of this host");
	if (sysinfo(&memory) < 0)
		return err_sys(err, errno, "the memory of this host");
	*ret = (struct plan_host){
		.page_bytes = sysconf(_SC_PAGESIZE),
		.cpus = CPU_COUNT(&cpus),
		.memory_bytes = (int64_t)memory.totalram * memory.mem_unit,
	};
	for (int cpu = 0; cpu < CPU_LIST_CPUS; cpu++)
		if (CPU_ISSET((size_t)cpu, &cpus))
			cpu_list_add(&ret->cpu_list, cpu);
	int result = hard_limit(RLIMIT_NOFILE, &ret->open_files_hard, "open files", err);
	return result < 0 ? result : hard_limit(RLIMIT_STACK, &ret->stack_hard, "the stack", err);
}
