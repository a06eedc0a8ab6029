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

/* A process ends when it has used the hard limit of processor time: what it is to have must be less, for the keeper to be first. */
static int hard_limits(struct plan_host *ret, struct err *err)
{
	int64_t cpu_s = INT64_MAX, data = INT64_MAX, address = INT64_MAX;
	const struct {
		int resource;
		int64_t *ret;
		const char *what;
	} limits[] = {
		{RLIMIT_NOFILE, &ret->open_files_hard, "open files"},
		{RLIMIT_STACK, &ret->stack_hard, "the stack"},
		{RLIMIT_NPROC, &ret->processes_hard, "processes"},
		{RLIMIT_FSIZE, &ret->file_hard, "a file's size"},
		{RLIMIT_CPU, &cpu_s, "processor time"},
		{RLIMIT_DATA, &data, "data"},
		{RLIMIT_AS, &address, "address space"},
	};
	int result = 0;

	for (size_t i = 0; result == 0 && i < sizeof(limits) / sizeof(limits[0]); i++)
		result = hard_limit(limits[i].resource, limits[i].ret, limits[i].what, err);
	ret->cpu_hard_ms = cpu_s > INT64_MAX / 1000 ? INT64_MAX : cpu_s * 1000 - 1;
	ret->memory_hard = data < address ? data : address;
	return result;
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
	return hard_limits(ret, err);
}
