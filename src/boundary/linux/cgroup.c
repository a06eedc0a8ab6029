/* cgroup.c - makes the groups of one boundary, says who is in them, and reads their counters. */
#include "boundary/linux/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"

enum { VALUE_MAX = 64, LIST_MAX = 512, STAT_MAX = 8192 };

void cgroups_init(struct cgroups *groups, const struct host *host, const struct place *place, const struct boundary_identity *identity)
{
	*groups = (struct cgroups){.host = host, .place = place, .top = -1, .init = -1, .guest = -1};
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		groups->controller[i] = -1;
	snprintf(groups->name, sizeof(groups->name), "%s.%s", identity->ledger_id, identity->boundary_id);
}

void cgroups_done(struct cgroups *groups)
{
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		fd_close(&groups->controller[i]);
	fd_close(&groups->top);
	fd_close(&groups->init);
	fd_close(&groups->guest);
}

int cgroups_of(const struct cgroups *groups, enum controller controller)
{
	if (!groups->used[controller])
		return -1;
	return groups->host->controllers[controller].v2 ? groups->guest : groups->controller[controller];
}

/* Makes one directory (the parent may exist, ours may not) and opens it. */
static int make_group(int at, const char *path, bool may_exist, int *ret, struct err *err)
{
	if (mkdirat(at, path, 0755) != 0 && !(errno == EEXIST && may_exist))
		return err_sys(err, errno, "cgroup %s", path);
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "cgroup %s", path);
	*ret = fd;
	return 0;
}

static const char *limit_name(enum controller controller)
{
	return controller == CONTROLLER_CPUSET ? "pin" : controller_name(controller);
}

static int read_list(int group, const char *file, char text[static LIST_MAX], const char *where, struct err *err)
{
	ssize_t length = fd_read_text(group, file, text, LIST_MAX);
	return length < 0 ? err_sys(err, (int)-length, "%s: %s", where, file) : 0;
}

/* Gives a controller on, one level down. A group that has members itself cannot: those of one that we live in move into a leaf. */
static int enable(const struct cgroups *groups, int group, const char *name, const char *where, struct err *err)
{
	char word[VALUE_MAX];
	snprintf(word, sizeof(word), "+%s", name);
	int rc = fd_write_text(group, "cgroup.subtree_control", word);
	if (rc == -EBUSY && groups->place->inhabited) {
		rc = place_vacate(group);
		if (rc < 0)
			return err_sys(err, -rc, "%s: its members cannot move to " PLACE_LEAF, where);
		rc = fd_write_text(group, "cgroup.subtree_control", word);
	}
	return rc < 0 ? err_sys(err, -rc, "%s: cgroup.subtree_control %s", where, word) : 0;
}

/* Asks for the controllers that this boundary uses in v2, one level down. A controller that the parent does not offer is the host's
 * choice, and ours to refuse. */
static int delegate(const struct cgroups *groups, int group, const char *where, struct err *err)
{
	char offered[LIST_MAX], given[LIST_MAX];
	int rc = read_list(group, "cgroup.controllers", offered, where, err);
	if (rc == 0)
		rc = read_list(group, "cgroup.subtree_control", given, where, err);
	for (int i = 0; i < CONTROLLER_COUNT && rc == 0; i++) {
		const char *name = controller_name((enum controller)i);
		if (!groups->used[i] || !groups->host->controllers[i].v2 || i == CONTROLLER_CPUACCT ||
		    controller_in_list(given, (enum controller)i))
			continue;
		if (!controller_in_list(offered, (enum controller)i))
			return err_set(err, ERR_UNENFORCEABLE, "limit.%s: controller %s is not enabled in %s", limit_name((enum controller)i), name, where);
		rc = enable(groups, group, name, where, err);
	}
	return rc;
}

static int make_unified(struct cgroups *groups, struct err *err)
{
	char path[CGROUP_PATH_MAX];
	FD_AUTO int parent = -1;
	int rc;
	snprintf(path, sizeof(path), "%s/%s", groups->host->unified_mount, groups->place->parent);
	if ((rc = make_group(AT_FDCWD, path, true, &parent, err)) < 0 || (rc = delegate(groups, parent, path, err)) < 0 ||
	    (rc = make_group(parent, groups->name, false, &groups->top, err)) < 0 ||
	    (rc = delegate(groups, groups->top, groups->name, err)) < 0 ||
	    (rc = make_group(groups->top, "init", false, &groups->init, err)) < 0 ||
	    (rc = make_group(groups->top, "guest", false, &groups->guest, err)) < 0)
		return rc;
	return 0;
}

/* A place may be ours in the hierarchies of every run and not in that of a limit which few have. */
static int make_legacy(struct cgroups *groups, enum controller controller, struct err *err)
{
	char path[CGROUP_PATH_MAX];
	struct err failure = ERR_INIT;
	FD_AUTO int parent = -1;
	snprintf(path, sizeof(path), "%s/%s", groups->host->controllers[controller].mount, groups->place->parent);
	int rc = make_group(AT_FDCWD, path, true, &parent, &failure);
	if (rc == 0)
		rc = make_group(parent, groups->name, false, &groups->controller[controller], &failure);
	if (rc == 0)
		return 0;
	return controller_always_used(controller) ? err_set(err, rc, "%s", failure.text)
	                                          : err_set(err, ERR_UNENFORCEABLE, "limit.%s: %s", limit_name(controller), failure.text);
}

/* Hierarchies with several controllers (cpu,cpuacct) hold one group for both. */
static int share_or_make_legacy(struct cgroups *groups, enum controller controller, struct err *err)
{
	for (int i = 0; i < (int)controller; i++)
		if (groups->controller[i] >= 0 &&
		    strcmp(groups->host->controllers[i].mount, groups->host->controllers[controller].mount) == 0) {
			groups->controller[controller] = fcntl(groups->controller[i], F_DUPFD_CLOEXEC, 0);
			return groups->controller[controller] < 0 ? err_sys(err, errno, "dup") : 0;
		}
	return make_legacy(groups, controller, err);
}

static bool uses(enum controller controller, const struct plan_limits *limits)
{
	return controller_always_used(controller) || (controller == CONTROLLER_CPU && limits->cpus_centi > 0) ||
	       (controller == CONTROLLER_CPUSET && cpu_list_count(&limits->pin) > 0);
}

int cgroups_make(struct cgroups *groups, const struct plan_limits *limits, struct evidence_list *evidence, struct err *err)
{
	int rc = 0;
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		groups->used[i] = uses((enum controller)i, limits);
		if (groups->used[i] && !groups->host->controllers[i].present)
			return err_set(err, ERR_UNENFORCEABLE, "limit.%s: no %s controller is mounted on this host",
			               limit_name((enum controller)i), controller_name((enum controller)i));
	}
	if (groups->host->unified && (rc = make_unified(groups, err)) < 0)
		return rc;
	if ((rc = FAULT_ERR("linux.grouped", err)) < 0)
		return rc;
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (groups->used[i] && !groups->host->controllers[i].v2 &&
		    (rc = share_or_make_legacy(groups, (enum controller)i, err)) < 0)
			return rc;
	return cgroups_set_limits(groups, limits, evidence, err);
}

int cgroups_open_joins(const struct cgroups *groups, int ret[static CONTROLLER_COUNT], struct err *err)
{
	int count = 0;
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		char line[EVIDENCE_NAME_MAX];
		if (groups->controller[i] < 0)
			continue;
		snprintf(line, sizeof(line), "cgroup.%s", controller_name((enum controller)i));
		if (OMITTED(line))
			continue;
		/* A single thread that moves itself by "tasks" needs no lock on thread groups; "cgroup.procs" waits for RCU to take it. */
		int fd = openat(groups->controller[i], "tasks", O_WRONLY | O_CLOEXEC);
		if (fd < 0) {
			int error = errno;
			while (count > 0)
				close(ret[--count]);
			return err_sys(err, error, "%s: tasks", line);
		}
		ret[count++] = fd;
	}
	return count;
}

/* The number of members, and whether `pid` is one of them. */
static int read_members(int group, pid_t pid, bool *ret_member)
{
	char text[STAT_MAX * 8];
	int count = 0;
	ssize_t length = fd_read_text(group, "cgroup.procs", text, sizeof(text));
	if (length < 0)
		return (int)length;
	if (ret_member)
		*ret_member = false;
	for (char *at = text; *at;) {
		char *end;
		long member = strtol(at, &end, 10);
		if (end == at)
			break;
		count++;
		if (ret_member && member == pid)
			*ret_member = true;
		at = *end == '\n' ? end + 1 : end;
	}
	return count;
}

/* Exactly one process, and it is the expected one: anybody else in the group would be a stranger. */
static int verify_member(int group, const char *line, pid_t pid, struct evidence_list *evidence, struct err *err)
{
	bool member = false;
	int count = read_members(group, pid, &member);
	if (count < 0)
		return err_sys(err, -count, "%s: cgroup.procs", line);
	if (!member || count != 1)
		return err_set(err, ERR_UNVERIFIED, "%s: expected exactly the one process there, found %d, %s it", line, count,
		               member ? "with" : "without");
	return evidence_add(evidence, line, EVIDENCE_OBSERVED, err, "sole member");
}

int cgroups_verify(const struct cgroups *groups, pid_t init, pid_t main, struct evidence_list *evidence, struct err *err)
{
	int rc = 0;
	if (groups->host->unified) {
		if ((rc = verify_member(groups->guest, "cgroup.unified.guest", main, evidence, err)) < 0 ||
		    (rc = verify_member(groups->init, "cgroup.unified.init", init, evidence, err)) < 0)
			return rc;
	}
	for (int i = 0; i < CONTROLLER_COUNT && rc == 0; i++) {
		char line[EVIDENCE_NAME_MAX];
		snprintf(line, sizeof(line), "cgroup.%s", controller_name((enum controller)i));
		if (groups->controller[i] >= 0)
			rc = verify_member(groups->controller[i], line, main, evidence, err);
	}
	return rc;
}

/* A number behind a key in a flat keyed file ("usage_usec 123\n…"), or -1. */
static int64_t read_keyed(int group, const char *file, const char *key)
{
	char text[STAT_MAX];
	size_t length = strlen(key);
	if (group < 0 || fd_read_text(group, file, text, sizeof(text)) < 0)
		return -1;
	for (const char *at = text; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
		if (strncmp(at, key, length) == 0 && at[length] == ' ')
			return strtoll(at + length + 1, NULL, 10);
	return -1;
}

static int64_t read_number(int group, const char *file)
{
	int64_t value;
	return group >= 0 && fd_read_number(group, file, &value) == 0 ? value : -1;
}

struct cpu_times {
	int64_t total_ns, user_ns, system_ns;
};

static struct cpu_times read_cpu(const struct cgroups *groups)
{
	int group = cgroups_of(groups, CONTROLLER_CPUACCT);
	if (!groups->host->controllers[CONTROLLER_CPUACCT].v2)
		return (struct cpu_times){read_number(group, "cpuacct.usage"), read_number(group, "cpuacct.usage_user"),
		                          read_number(group, "cpuacct.usage_sys")};
	int64_t total = read_keyed(group, "cpu.stat", "usage_usec"), user = read_keyed(group, "cpu.stat", "user_usec");
	int64_t system = read_keyed(group, "cpu.stat", "system_usec");
	return (struct cpu_times){total < 0 ? -1 : total * 1000, user < 0 ? -1 : user * 1000, system < 0 ? -1 : system * 1000};
}

int cgroups_start_accounting(struct cgroups *groups, struct err *err)
{
	struct cpu_times now = read_cpu(groups);
	if (now.total_ns < 0)
		return err_set(err, ERR_UNVERIFIED, "limit.cpu: the CPU time of the group cannot be read");
	groups->cpu_base_ns = now.total_ns;
	groups->user_base_ns = now.user_ns;
	groups->system_base_ns = now.system_ns;
	/* v2 before 6.12 cannot reset its peak: then set-up is in the figure, a few hundred KiB. */
	if (groups->host->controllers[CONTROLLER_MEMORY].v2)
		return 0;
	int rc = fd_write_text(cgroups_of(groups, CONTROLLER_MEMORY), "memory.max_usage_in_bytes", "0");
	return rc < 0 ? err_sys(err, -rc, "memory.max_usage_in_bytes cannot be reset") : 0;
}

int64_t cgroups_cpu_ns(const struct cgroups *groups)
{
	int64_t total = read_cpu(groups).total_ns;
	return total < 0 ? -1 : total - groups->cpu_base_ns;
}

int64_t cgroups_anon_bytes(const struct cgroups *groups)
{
	bool v2 = groups->host->controllers[CONTROLLER_MEMORY].v2;
	return read_keyed(cgroups_of(groups, CONTROLLER_MEMORY), "memory.stat", v2 ? "anon" : "rss");
}

int64_t cgroups_oom_kills(const struct cgroups *groups)
{
	int group = cgroups_of(groups, CONTROLLER_MEMORY);
	return groups->host->controllers[CONTROLLER_MEMORY].v2 ? read_keyed(group, "memory.events", "oom_kill")
	                                                        : read_keyed(group, "memory.oom_control", "oom_kill");
}

int cgroups_population(const struct cgroups *groups)
{
	int group = groups->guest >= 0 ? groups->guest : cgroups_of(groups, CONTROLLER_PIDS);
	if (group < 0)
		return -1;
	int count = read_members(group, 0, NULL);
	return count < 0 ? -1 : count;
}

/* user and system are sampled by the tick; total is exact. They are scaled so that their sum is the total. */
static void split_cpu(int64_t total, int64_t user, int64_t system, struct boundary_usage *usage)
{
	int64_t sum = user + system;
	if (total < 0 || user < 0 || system < 0)
		return;
	usage->cpu_user_ns = sum > 0 ? (int64_t)((double)total * ((double)user / (double)sum)) : total;
	usage->cpu_system_ns = total - usage->cpu_user_ns;
}

void cgroups_read_usage(const struct cgroups *groups, struct boundary_usage *usage)
{
	struct cpu_times now = read_cpu(groups);
	int memory = cgroups_of(groups, CONTROLLER_MEMORY);
	bool v2 = groups->host->controllers[CONTROLLER_MEMORY].v2;
	if (now.total_ns >= 0) {
		usage->cpu_total_ns = now.total_ns - groups->cpu_base_ns;
		split_cpu(usage->cpu_total_ns, now.user_ns - groups->user_base_ns, now.system_ns - groups->system_base_ns, usage);
	}
	usage->memory_peak_bytes = read_number(memory, v2 ? "memory.peak" : "memory.max_usage_in_bytes");
	usage->pids_peak = read_number(cgroups_of(groups, CONTROLLER_PIDS), "pids.peak");
	usage->oom_kills = cgroups_oom_kills(groups);
}

int cgroups_watch_memory(const struct cgroups *groups, int *ret_fd, struct err *err)
{
	char text[VALUE_MAX];
	*ret_fd = -1;
	if (groups->host->controllers[CONTROLLER_MEMORY].v2)
		return 0;
	int group = cgroups_of(groups, CONTROLLER_MEMORY);
	FD_AUTO int control = openat(group, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	FD_AUTO int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (control < 0 || event < 0)
		return err_sys(err, errno, "memory.oom_control");
	snprintf(text, sizeof(text), "%d %d", event, control);
	int rc = fd_write_text(group, "cgroup.event_control", text);
	if (rc < 0)
		return err_sys(err, -rc, "cgroup.event_control");
	*ret_fd = fd_take(&event);
	return 0;
}
