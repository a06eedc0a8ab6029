/* calls.c - H32, H87, H88, H89, H102: calls that a guest may not have: `calls mount`, `calls namespaces`, `calls kernel`, and
 * of the last only the harmless ones, `calls harmless`; `calls clocks`; `calls flood`: two of them, very often. */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>

#include "probe.h"

/* Numbers that the headers of this Debian may lack. */
enum {
	NR_OPEN_TREE = 428,
	NR_MOVE_MOUNT,
	NR_FSOPEN,
	NR_FSMOUNT = 432,
	NR_FSPICK,
	NR_PIDFD_OPEN,
	NR_CLONE3,
	NR_PIDFD_GETFD = 438,
	NR_MOUNT_SETATTR = 442,
};

enum { FLOOD = 200000 };

static void try_mounts(void)
{
	PROBE("mount.tmpfs", mount("none", "/tmp", "tmpfs", 0, NULL));
	PROBE("mount.bind", mount("/box", "/tmp", NULL, MS_BIND, NULL));
	PROBE("mount.remount", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
	PROBE("mount.proc", mount("proc", "/proc", "proc", 0, NULL));
	PROBE("umount", umount2("/tmp", MNT_DETACH));
	PROBE("umount.proc", umount2("/proc", MNT_DETACH));
	PROBE("pivot_root", syscall(SYS_pivot_root, ".", "."));
	PROBE("chroot", chroot("/box"));
	PROBE("fsopen", syscall(NR_FSOPEN, "tmpfs", 0));
	PROBE("fspick", syscall(NR_FSPICK, AT_FDCWD, "/tmp", 0));
	PROBE("open_tree", syscall(NR_OPEN_TREE, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */));
	PROBE("move_mount", syscall(NR_MOVE_MOUNT, AT_FDCWD, "/tmp", AT_FDCWD, "/box", 0));
	PROBE("fsmount", syscall(NR_FSMOUNT, -1, 0, 0));
	PROBE("mount_setattr", syscall(NR_MOUNT_SETATTR, AT_FDCWD, "/usr", 0, NULL, 0));
	PROBE("swapon", syscall(SYS_swapon, "/box/swap", 0));
	PROBE("quotactl", syscall(SYS_quotactl, 0, NULL, 0, NULL));
}

static void try_namespace(const char *name, unsigned long flag)
{
	char text[64];
	pid_t child;

	snprintf(text, sizeof(text), "unshare.%s", name);
	child = fork();
	if (child == 0) {
		PROBE(text, syscall(SYS_unshare, flag));
		_exit(0);
	}
	waitpid(child, NULL, 0);
	snprintf(text, sizeof(text), "clone.%s", name);
	errno = 0;
	child = (pid_t)syscall(SYS_clone, flag | SIGCHLD, NULL, NULL, NULL, 0);
	if (child == 0)
		_exit(0);
	report(text, child);
	if (child > 0)
		waitpid(child, NULL, 0);
}

static void try_setns(void)
{
	static const char *const names[] = {"user", "mnt", "net", "pid"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64], text[64];
		int fd;

		snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		snprintf(text, sizeof(text), "setns.%s", names[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		PROBE(text, syscall(SYS_setns, fd, 0));
	}
}

static void try_namespaces(void)
{
	struct clone_args arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	long child;

	try_namespace("user", CLONE_NEWUSER);
	try_namespace("mount", CLONE_NEWNS);
	try_namespace("pid", CLONE_NEWPID);
	try_namespace("net", CLONE_NEWNET);
	try_namespace("ipc", CLONE_NEWIPC);
	try_namespace("uts", CLONE_NEWUTS);
	try_namespace("cgroup", CLONE_NEWCGROUP);
	errno = 0;
	child = syscall(NR_CLONE3, &arguments, sizeof(arguments));
	if (child == 0)
		_exit(0);
	report("clone3.user", child);
	try_setns();
}

/* Those that do no harm where they are allowed. */
static void try_harmless(void)
{
	struct io_uring_params ring = {0};
	struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(event), .config = PERF_COUNT_SW_CPU_CLOCK};
	union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	union {
		struct file_handle handle;
		char bytes[sizeof(struct file_handle) + 8];
	} file = {.handle.handle_bytes = 8};

	PROBE("io_uring_setup", syscall(SYS_io_uring_setup, 8, &ring));
	PROBE("bpf", syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map)));
	PROBE("perf_event_open", syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
	PROBE("request_key", syscall(SYS_request_key, "user", "caisson", NULL, 0));
	PROBE("keyctl", syscall(SYS_keyctl, 0 /* get keyring id */, -3, 1));
	PROBE("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, &file, O_RDONLY));
	PROBE("pidfd_getfd", syscall(NR_PIDFD_GETFD, syscall(NR_PIDFD_OPEN, getppid(), 0), 0, 0));
	PROBE("userfaultfd", syscall(SYS_userfaultfd, 0));
	PROBE("fanotify_init", syscall(SYS_fanotify_init, 0, 0));
}

static void try_kernel(void)
{
	static char area[4096];
	struct timespec now = {0};
	struct rlimit before, after;

	PROBE("add_key", syscall(SYS_add_key, "user", "caisson", "x", 1, -5));
	PROBE("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
	PROBE("init_module", syscall(SYS_init_module, area, 0, ""));
	PROBE("finit_module", syscall(SYS_finit_module, -1, "", 0));
	PROBE("delete_module", syscall(SYS_delete_module, "x", 0));
	PROBE("reboot", syscall(SYS_reboot, 0, 0, 0, 0));
	PROBE("settimeofday", syscall(SYS_settimeofday, NULL, NULL));
	PROBE("clock_settime", syscall(SYS_clock_settime, CLOCK_REALTIME, &now));
	PROBE("syslog", syscall(SYS_syslog, 3, area, 1));
	PROBE("acct", syscall(SYS_acct, NULL));
	PROBE("sethostname", sethostname("x", 1));
	PROBE("iopl", syscall(SYS_iopl, 3));
	PROBE("mknod", mknod("/box/null", S_IFCHR | 0666, 0x103));
	PROBE("lookup_dcookie", syscall(SYS_lookup_dcookie, 0, area, 1));
	PROBE("unknown.462", syscall(462, 0, 0, 0));
	PROBE("unknown.900", syscall(900, 0, 0, 0));
	/* Whatever the call says, the limit must stay as it was. */
	getrlimit(RLIMIT_CORE, &before);
	setrlimit(RLIMIT_CORE, &(struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max});
	getrlimit(RLIMIT_CORE, &after);
	report_number("core.kept", before.rlim_cur == after.rlim_cur);
	printf("alive=yes\n");
}

static void try_clocks(void)
{
	struct timex times = {.modes = ADJ_OFFSET_SINGLESHOT}, wall = {.modes = ADJ_SETOFFSET};
	struct timespec now;
	struct timeval second;

	clock_gettime(CLOCK_REALTIME, &now);
	second = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
	PROBE("clock_settime", syscall(SYS_clock_settime, CLOCK_REALTIME, &now));
	PROBE("clock_settime.tai", syscall(SYS_clock_settime, CLOCK_TAI, &now));
	PROBE("settimeofday", syscall(SYS_settimeofday, &second, NULL));
	PROBE("adjtimex", syscall(SYS_adjtimex, &times));
	PROBE("clock_adjtime", syscall(SYS_clock_adjtime, CLOCK_REALTIME, &wall));
	PROBE("rtc", open("/dev/rtc0", O_RDONLY | O_CLOEXEC));
}

static void flood(void)
{
	long refused = 0;

	for (long i = 0; i < FLOOD; i++)
		refused += syscall(i % 2 ? SYS_reboot : NR_CLONE3, 0, 0, 0, 0) == -1 && (errno == EPERM || errno == ENOSYS);
	report_number("refused", refused);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "kernel";

	if (strcmp(how, "mount") == 0)
		try_mounts();
	else if (strcmp(how, "namespaces") == 0)
		try_namespaces();
	else if (strcmp(how, "clocks") == 0)
		try_clocks();
	else if (strcmp(how, "flood") == 0)
		flood();
	else {
		try_harmless();
		if (strcmp(how, "harmless") != 0)
			try_kernel();
	}
	return 0;
}
