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
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/fd.h"
#include "boundary/linux/capability.h"
#include "boundary/linux/scratch.h"
#include "boundary/linux/userns.h"

enum { OFFERED_MAX = 512 };

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

/* The controllers that a group below the parent would have: those of the parent, or, where it is yet to be made, those that the group above
 * gives on. */
static void read_offered(const struct linux_provider *provider, char text[static OFFERED_MAX])
{
	char group[PLACE_PARENT_MAX], path[CGROUP_PATH_MAX];
	memcpy(group, provider->place.parent, sizeof(group));
	snprintf(path, sizeof(path), "%s/%s/cgroup.controllers", provider->host.unified_mount, group);
	if (fd_read_text(AT_FDCWD, path, text, OFFERED_MAX) >= 0)
		return;
	char *slash = strrchr(group, '/');
	*(slash ? slash : group) = '\0';
	snprintf(path, sizeof(path), "%s/%s/cgroup.subtree_control", provider->host.unified_mount, group);
	if (fd_read_text(AT_FDCWD, path, text, OFFERED_MAX) < 0)
		text[0] = '\0';
}

/* Where boundaries get their groups, and whether that is offered the controllers that no v1 hierarchy has. */
static void probe_place(struct linux_provider *provider, struct report *report)
{
	char offered[OFFERED_MAX] = "";
	struct err err = ERR_INIT;
	BUF_AUTO struct buf advice = BUF_INIT(PROBE_REMEDY_MAX);
	bool placed = linux_place(provider, &err) == 0;
	if (!placed) {
		place_advise(&provider->host, provider->caller, &advice, NULL);
		err.text[strcspn(err.text, ";")] = '\0'; /* the advice stands behind it, and is the remedy here */
	}
	struct probe_line line = begin("cgroup.parent", true, placed, advice.data ? advice.data : "");
	say(report, &line, "%s%s", placed ? "/" : "", placed ? provider->place.parent : err.text);
	if (!placed || !provider->host.unified)
		return;
	read_offered(provider, offered);
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		const char *name = controller_name((enum controller)i);
		if (!provider->host.controllers[i].v2 || i == CONTROLLER_CPUACCT)
			continue;
		line = begin("cgroup.delegation", controller_always_used((enum controller)i),
		             controller_in_list(offered, (enum controller)i),
		             "enable it: write +CONTROLLER to cgroup.subtree_control of the groups above");
		say(report, &line, "%s for groups below /%s", name, provider->place.parent);
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

static void probe_capabilities(struct report *report)
{
	char missing[CAPABILITIES_TEXT_SIZE];
	bool holds = !capabilities_missing(missing);
	struct probe_line line = begin("capabilities", true, holds, "give them to root here, or run as an ordinary user with a delegated cgroup");
	say(report, &line, "%s%s", holds ? (geteuid() == 0 ? "root has what it needs" : "an ordinary user needs none") : "root is without ", missing);
}

/* Tried for real in a child: every namespace that a boundary has, and a call that needs the capabilities in it. */
static void probe_namespaces(struct report *report)
{
	int status = -1;
	char remedy[PROBE_REMEDY_MAX] = "see user_namespaces(7)";
	pid_t child = fork();
	if (child == 0) {
		bool made = unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
		                    CLONE_NEWCGROUP) == 0;
		_exit(made && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 ? 0 : errno);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	bool holds = child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	const struct userns_restriction *restriction = holds ? NULL : userns_restriction();
	if (restriction)
		snprintf(remedy, sizeof(remedy), "as root: sysctl -w %s=%s", restriction->setting, restriction->value);
	struct probe_line line = begin("namespaces", true, holds, remedy);
	say(report, &line, "%s", holds ? "user, mnt, pid, net, ipc, uts, cgroup" : restriction ? restriction->reason :
	    strerror(WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN));
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

static void probe_scratch(struct report *report)
{
	const char *missing = scratch_missing();
	struct probe_line line = begin("scratch.disk", false, !missing, "install e2fsprogs; load the loop module");
	say(report, &line, "%s", missing ? missing : "ext4 in a loop device");
}

/* Without a range everything is enforced still, but guest, init and caller are one user of the kernel. */
static void probe_ids(const struct linux_provider *provider, struct report *report)
{
	static const char *const kinds[] = {
		[IDS_RANGES_OF_ROOT] = "a range of user ids is free",
		[IDS_SUBORDINATE] = "two of the range in /etc/subuid and /etc/subgid are free",
		[IDS_CALLERS_OWN] = "a guest is the caller's own user of the kernel",
	};
	struct ids ids = {.lock = -1};
	struct err err = ERR_INIT;
	int rc = linux_acquire_ids(provider, 0, &ids, &err);
	struct probe_line line = begin("ids", true, rc == 0, "make its directory writable for us alone");
	if (rc == 0 && provider->ids.kind == IDS_CALLERS_OWN) {
		line.result = PROBE_DEGRADED;
		snprintf(line.remedy, sizeof(line.remedy),
		         "install " IDS_UID_HELPER " and " IDS_GID_HELPER " (package uidmap), and as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 with the user's name");
	}
	say(report, &line, "%s", rc == 0 ? kinds[provider->ids.kind] : err.text);
	ids_release(&ids);
}

int linux_probe(struct linux_provider *provider, boundary_probe_fn line, void *context, struct err *err)
{
	struct report report = {.line = line, .context = context};
	(void)err; /* what cannot be read is a line, not a failure */
	probe_kernel(provider, &report);
	probe_controllers(provider, &report);
	probe_place(provider, &report);
	probe_memory_and_swap(provider, &report);
	probe_capabilities(&report);
	probe_namespaces(&report);
	probe_scratch(&report);
	probe_ids(provider, &report);
	return report.stopped;
}
