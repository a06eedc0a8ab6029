/* probe.c - what this host can enforce, a line each, for `doctor`. Reads and tries; changes nothing.
 *
 * Whether it all works together is shown by a run, which `doctor` does besides. */
#include "boundary/linux/linux_boundary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

struct report {
	boundary_probe_fn line;
	void *context;
	int stopped; /* what the callback answered */
};

static void say(struct report *report, struct probe_line *line, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void say(struct report *report, struct probe_line *line, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(line->reason, sizeof(line->reason), format, arguments);
	va_end(arguments);
	if (report->stopped == 0)
		report->stopped = report->line(report->context, line);
}

static struct probe_line begin(const char *name, bool required, bool holds, const char *remedy)
{
	struct probe_line line = {.required = required, .result = holds ? PROBE_OK : PROBE_MISSING};
	snprintf(line.name, sizeof(line.name), "%s", name);
	if (!holds)
		snprintf(line.remedy, sizeof(line.remedy), "%s", remedy);
	return line;
}

static void probe_controllers(const struct linux_provider *provider, struct report *report)
{
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		const struct host_controller *controller = &provider->host.controllers[i];
		char name[EVIDENCE_NAME_MAX];
		snprintf(name, sizeof(name), "cgroup.%s", controller_name((enum controller)i));
		struct probe_line line = begin(name, controller_always_used((enum controller)i), controller->present, "mount cgroup2 with this controller enabled");
		say(report, &line, "%s", !controller->present ? "no hierarchy has it" : controller->v2 ? "v2" : "v1");
	}
}

/* The parent in the unified hierarchy must be offered the controllers that no v1 hierarchy has. */
static void probe_delegation(const struct linux_provider *provider, struct report *report)
{
	char path[CGROUP_PATH_MAX], text[512] = "";
	if (!provider->host.unified)
		return;
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", provider->host.unified_mount);
	fd_read_text(AT_FDCWD, path, text, sizeof(text));
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		const char *name = controller_name((enum controller)i);
		if (!provider->host.controllers[i].v2 || i == CONTROLLER_CPUACCT)
			continue;
		struct probe_line line = begin("cgroup.delegation", controller_always_used((enum controller)i),
		                               controller_in_list(text, (enum controller)i),
		                               "enable it: write +CONTROLLER to cgroup.subtree_control of the root group");
		say(report, &line, "%s in cgroup.subtree_control of the root group", name);
	}
}

static void probe_memory_and_swap(const struct linux_provider *provider, struct report *report)
{
	const struct host_controller *memory = &provider->host.controllers[CONTROLLER_MEMORY];
	char path[CGROUP_PATH_MAX];
	struct stat status;
	if (!memory->present)
		return;
	if (!memory->v2) {
		snprintf(path, sizeof(path), "%s/memory.memsw.limit_in_bytes", memory->mount);
		struct probe_line line = begin("limit.swap", true, stat(path, &status) == 0, "boot with swapaccount=1");
		say(report, &line, "memory.memsw.limit_in_bytes");
		return;
	}
	struct probe_line line = begin("limit.swap", true, true, "");
	say(report, &line, "memory.swap.max, checked by each run");
}

/* Tried for real in a child: every namespace that a boundary has. */
static void probe_namespaces(struct report *report)
{
	int status = -1;
	pid_t child = fork();
	if (child == 0)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) == 0
		      ? 0 : errno);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	bool holds = child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	struct probe_line line = begin("namespaces", true, holds,
	        "raise user.max_user_namespaces; allow unprivileged user namespaces in AppArmor or kernel.unprivileged_userns_clone");
	say(report, &line, "%s", holds ? "user, mnt, pid, net, ipc, uts, cgroup" : strerror(WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN));
}

static void probe_kernel(const struct linux_provider *provider, struct report *report)
{
	const struct host *host = &provider->host;
	struct probe_line kernel = begin("kernel", true, host->kernel >= HOST_KERNEL_FLOOR, "use Linux 6.1 or newer");
	say(report, &kernel, "%d.%d", host->kernel / 1000, host->kernel % 1000);

	struct probe_line unified = begin("cgroup.kill", false, host->unified, "mount cgroup2: without it a unit is killed member by member");
	say(report, &unified, "%s", host->unified ? host->unified_mount : "no v2 hierarchy is mounted");

	char text[32] = "";
	bool seccomp = fd_read_text(AT_FDCWD, "/proc/sys/kernel/seccomp/actions_avail", text, sizeof(text)) != -ENOENT;
	struct probe_line filter = begin("seccomp", true, seccomp, "use a kernel with CONFIG_SECCOMP_FILTER");
	say(report, &filter, "%s", seccomp ? "filters" : "none");

	struct probe_line landlock = begin("landlock", false, host->landlock_abi > 0, "boot with landlock in lsm=");
	if (host->landlock_abi > 0 && host->landlock_abi < 6) {
		landlock.result = PROBE_DEGRADED;
		snprintf(landlock.remedy, sizeof(landlock.remedy), "Linux 6.12 adds scopes for abstract sockets and signals");
	}
	say(report, &landlock, "ABI %d", host->landlock_abi);
}

static void probe_ids(struct report *report)
{
	struct ids ids = {.lock = -1};
	struct err err = ERR_INIT;
	int rc = ids_acquire(0, &ids, &err);
	struct probe_line line = begin("ids", true, rc == 0, "make /run/caisson writable for root");
	say(report, &line, "%s", rc == 0 ? "a range of user ids is free" : err.text);
	ids_release(&ids);
}

int linux_probe(struct linux_provider *provider, boundary_probe_fn line, void *context, struct err *err)
{
	struct report report = {.line = line, .context = context};
	(void)err; /* what cannot be read is a line, not a failure */
	probe_kernel(provider, &report);
	probe_controllers(provider, &report);
	probe_delegation(provider, &report);
	probe_memory_and_swap(provider, &report);
	probe_namespaces(&report);
	probe_ids(&report);
	return report.stopped;
}
