/* kernel_files.c - H16, H86, H94, H103: tries to write the files by which a kernel is steered; `kernel_files cgroup` those of the
 * cgroups, `freeze` those that stop a group; `secrets` reads those that tell about the host. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "probe.h"

static void try_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	PROBE(path, fd < 0 ? -1 : write(fd, text, strlen(text)));
	if (fd >= 0)
		close(fd);
}

static void try_cgroups(void)
{
	static const char *const paths[] = {
		"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/pids/pids.max",
		"/sys/fs/cgroup/unified/cgroup.procs", "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/unified/cgroup.kill",
		"/sys/fs/cgroup/freezer/freezer.state", "/sys/kernel/uevent_helper", "/sys/power/state",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		try_write(paths[i], "1");
	PROBE("mkdir:/sys/fs/cgroup/x", mkdir("/sys/fs/cgroup/x", 0755));
	PROBE("mkdir:/sys/fs/cgroup/memory/x", mkdir("/sys/fs/cgroup/memory/x", 0755));
	PROBE("mkdir:/sys/x", mkdir("/sys/x", 0755));
}

static void try_freeze(void)
{
	static const char *const groups[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer", "/proc/self/cgroup"};
	char path[128];

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		snprintf(path, sizeof(path), "%s/child", groups[i]);
		PROBE(path, mkdir(path, 0755));
		snprintf(path, sizeof(path), "%s/cgroup.freeze", groups[i]);
		try_write(path, "1");
		snprintf(path, sizeof(path), "%s/freezer.state", groups[i]);
		try_write(path, "FROZEN");
	}
}

static void try_secrets(void)
{
	static const char *const paths[] = {
		"/proc/cmdline", "/proc/kallsyms", "/proc/iomem", "/proc/ioports", "/proc/keys", "/proc/key-users", "/proc/interrupts",
		"/proc/config.gz", "/proc/kcore", "/proc/kmsg", "/proc/modules", "/proc/timer_list", "/proc/sched_debug", "/proc/diskstats",
		"/proc/meminfo", "/proc/sys/kernel/random/boot_id", "/dev/kmsg", "/dev/mem", "/sys/kernel/vmcoreinfo", "/sys/class/net",
		"/boot", "/root",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		PROBE(paths[i], open(paths[i], O_RDONLY | O_CLOEXEC));
}

int main(int argc, char **argv)
{
	static const char *const paths[] = {
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
		"/proc/sys/vm/drop_caches", "/proc/sys/fs/binfmt_misc/register", "/proc/sys/user/max_user_namespaces",
		"/proc/sys/user/max_inotify_instances",
		"/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/shmmax", "/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger",
		"/proc/self/uid_map", "/proc/self/gid_map", "/proc/self/setgroups", "/proc/1/oom_score_adj",
		"/proc/mtrr", "/proc/acpi/wakeup",
	};

	if (argc > 1 && strcmp(argv[1], "cgroup") == 0) {
		try_cgroups();
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "freeze") == 0) {
		try_freeze();
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "secrets") == 0) {
		try_secrets();
		return 0;
	}
	/* The bytes are what is there already, or harmless, should one of them be let through. */
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		try_write(paths[i], "0");
	return 0;
}
