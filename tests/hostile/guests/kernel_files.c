/* kernel_files.c - H86, H94: tries to write the files by which a kernel is steered; `kernel_files cgroup` those of the cgroups. */
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
	/* The bytes are what is there already, or harmless, should one of them be let through. */
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		try_write(paths[i], "0");
	return 0;
}
