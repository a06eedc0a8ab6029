/* cgroup_limits.c - writes the limits of a plan into a boundary's groups.
 *
 * A limit counts only after it was read back equal: v1 accepts and ignores some (memory.kmem.limit_in_bytes), and rounds others. */
#include "boundary/linux/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/fd.h"

enum { VALUE_MAX = 64, CPU_PERIOD_US = 100000 };

/* One limit: write, read back, say so. `expected` is what the file must show afterwards. */
struct setting {
	enum controller controller;
	const char *line;  /* evidence */
	const char *file;
	const char *value, *expected;
};

static int apply(struct cgroups *groups, const struct setting *setting, struct evidence_list *evidence, struct err *err)
{
	char shown[CPU_LIST_TEXT_SIZE]; /* the longest of all values */
	int group = cgroups_of(groups, setting->controller);
	int rc = OMITTED(setting->line) ? 0 : fd_write_text(group, setting->file, setting->value);
	if (rc < 0)
		return err_set(err, ERR_UNENFORCEABLE, "%s: %s cannot be set to %s: %s", setting->line, setting->file, setting->value,
		               strerror(-rc));
	ssize_t length = fd_read_text(group, setting->file, shown, sizeof(shown));
	if (length < 0)
		return err_sys(err, (int)-length, "%s: cannot be read back", setting->line);
	if (strcmp(shown, setting->expected) != 0)
		return err_set(err, ERR_UNENFORCEABLE, "%s: wrote %s, reads %s", setting->line, setting->value, shown);
	return evidence_add(evidence, setting->line, EVIDENCE_OBSERVED, err, "%s %s", setting->file, shown);
}

static int limit_memory(struct cgroups *groups, int64_t bytes, struct evidence_list *evidence, struct err *err)
{
	char value[VALUE_MAX];
	snprintf(value, sizeof(value), "%" PRId64, bytes);
	const struct setting v2[] = {
		{CONTROLLER_MEMORY, "limit.memory", "memory.max", value, value},
		{CONTROLLER_MEMORY, "limit.swap", "memory.swap.max", "0", "0"},
		{CONTROLLER_MEMORY, "limit.oom_group", "memory.oom.group", "1", "1"},
	};
	/* memsw below limit is EINVAL: the order matters. */
	const struct setting v1[] = {
		{CONTROLLER_MEMORY, "limit.memory", "memory.limit_in_bytes", value, value},
		{CONTROLLER_MEMORY, "limit.swap", "memory.memsw.limit_in_bytes", value, value},
	};
	bool is_v2 = groups->host->controllers[CONTROLLER_MEMORY].v2;
	const struct setting *settings = is_v2 ? v2 : v1;
	size_t count = is_v2 ? sizeof(v2) / sizeof(v2[0]) : sizeof(v1) / sizeof(v1[0]);
	for (size_t i = 0; i < count; i++) {
		int rc = apply(groups, &settings[i], evidence, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int limit_cpus(struct cgroups *groups, int64_t centi, struct evidence_list *evidence, struct err *err)
{
	char quota[VALUE_MAX], both[VALUE_MAX];
	int64_t us = centi * (CPU_PERIOD_US / 100);
	snprintf(quota, sizeof(quota), "%" PRId64, us);
	snprintf(both, sizeof(both), "%" PRId64 " %d", us, CPU_PERIOD_US);
	if (groups->host->controllers[CONTROLLER_CPU].v2)
		return apply(groups, &(struct setting){CONTROLLER_CPU, "limit.cpus", "cpu.max", both, both}, evidence, err);
	return apply(groups, &(struct setting){CONTROLLER_CPU, "limit.cpus", "cpu.cfs_quota_us", quota, quota}, evidence, err);
}

/* A v1 group has no CPU and no memory node until it is told, and none that its parent does not have. The parent is told what is above
 * it; one that was filled already, maybe by whoever gave it to us, is left as it is. */
static int inherit(int group, const char *file, struct err *err)
{
	char own[NAME_MAX], above[NAME_MAX], value[CPU_LIST_TEXT_SIZE];
	snprintf(own, sizeof(own), "../%s", file);
	snprintf(above, sizeof(above), "../../%s", file);
	ssize_t length = fd_read_text(group, own, value, sizeof(value));
	if (length > 0)
		return 0;
	if (length == 0)
		length = fd_read_text(group, above, value, sizeof(value));
	int rc = length < 0 ? (int)length : fd_write_text(group, own, value);
	return rc < 0 ? err_set(err, ERR_UNENFORCEABLE, "limit.pin: %s of the parent group cannot be set: %s", file, strerror(-rc)) : 0;
}

/* v1: memory nodes are no limit of ours, but a group without one takes no process. */
static int give_memory_nodes(int group, struct err *err)
{
	char nodes[CPU_LIST_TEXT_SIZE];
	int rc = inherit(group, "cpuset.cpus", err);
	if (rc < 0 || (rc = inherit(group, "cpuset.mems", err)) < 0)
		return rc;
	ssize_t length = fd_read_text(group, "../cpuset.mems", nodes, sizeof(nodes));
	rc = length < 0 ? (int)length : fd_write_text(group, "cpuset.mems", nodes);
	return rc < 0 ? err_set(err, ERR_UNENFORCEABLE, "limit.pin: cpuset.mems cannot be set: %s", strerror(-rc)) : 0;
}

/* What is set may still be more than what is there: of a parent's CPUs, and of those that are on. */
static int check_effective(const struct cgroups *groups, const char *pin, struct err *err)
{
	char shown[CPU_LIST_TEXT_SIZE];
	bool v2 = groups->host->controllers[CONTROLLER_CPUSET].v2;
	const char *file = v2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus";
	ssize_t length = fd_read_text(cgroups_of(groups, CONTROLLER_CPUSET), file, shown, sizeof(shown));
	if (length < 0)
		return err_sys(err, (int)-length, "limit.pin: %s cannot be read", file);
	return strcmp(shown, pin) == 0 ? 0 : err_set(err, ERR_UNENFORCEABLE, "limit.pin: asked for %s, %s is %s", pin, file, shown);
}

static int limit_pin(struct cgroups *groups, const struct cpu_list *list, struct evidence_list *evidence, struct err *err)
{
	char pin[CPU_LIST_TEXT_SIZE];
	int group = cgroups_of(groups, CONTROLLER_CPUSET);
	bool v2 = groups->host->controllers[CONTROLLER_CPUSET].v2;
	cpu_list_format(list, pin);
	int rc = v2 ? 0 : give_memory_nodes(group, err);
	if (rc == 0)
		rc = apply(groups, &(struct setting){CONTROLLER_CPUSET, "limit.pin", "cpuset.cpus", pin, pin}, evidence, err);
	if (rc == 0)
		rc = check_effective(groups, pin, err);
	if (rc == 0 && OMITTED("pin")) { /* as if somebody widened it now */
		fd_read_text(group, v2 ? "../cpuset.cpus.effective" : "../cpuset.cpus", pin, sizeof(pin));
		fd_write_text(group, "cpuset.cpus", pin);
	}
	return rc;
}

int cgroups_set_limits(struct cgroups *groups, const struct plan_limits *limits, struct evidence_list *evidence, struct err *err)
{
	char pids[VALUE_MAX];
	snprintf(pids, sizeof(pids), "%" PRId64, limits->pids);
	int rc = limit_memory(groups, limits->memory_bytes, evidence, err);
	if (rc == 0)
		rc = FAULT_ERR("linux.limited", err);
	if (rc == 0)
		rc = apply(groups, &(struct setting){CONTROLLER_PIDS, "limit.pids", "pids.max", pids, pids}, evidence, err);
	if (rc == 0 && groups->used[CONTROLLER_CPU])
		rc = limit_cpus(groups, limits->cpus_centi, evidence, err);
	if (rc == 0 && groups->used[CONTROLLER_CPUSET])
		rc = limit_pin(groups, &limits->pin, evidence, err);
	return rc;
}
