/* host.c - reads the facts of this host. */
#include "keeper/host.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

int host_facts(struct plan_host *ret, struct err *err)
{
	struct sysinfo memory;
	struct rlimit files;
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return err_sys(err, errno, "the usable CPUs of this host");
	if (sysinfo(&memory) < 0)
		return err_sys(err, errno, "the memory of this host");
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_sys(err, errno, "the limit of open files");
	*ret = (struct plan_host){
		.page_bytes = sysconf(_SC_PAGESIZE),
		.cpus = CPU_COUNT(&cpus),
		.memory_bytes = (int64_t)memory.totalram * memory.mem_unit,
		.open_files_hard = files.rlim_max > INT64_MAX ? INT64_MAX : (int64_t)files.rlim_max,
	};
	for (int cpu = 0; cpu < CPU_LIST_CPUS; cpu++)
		if (CPU_ISSET((size_t)cpu, &cpus))
			cpu_list_add(&ret->cpu_list, cpu);
	return 0;
}
