/* identity.c - H84, H85, H96: what a guest is born with: descriptors, environments, signals, ids, limits. */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "probe.h"

enum { GROUPS_MAX = 64, ENVIRON_MAX = 65536, LINK_MAX_BYTES = 256 };

static void list_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	char target[LINK_MAX_BYTES];

	if (!directory)
		die("/proc/self/fd");
	while ((entry = readdir(directory))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);
		ssize_t n = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);

		if (entry->d_name[0] == '.' || fd == dirfd(directory))
			continue;
		printf("fd.%d=%.*s\n", fd, (int)(n < 0 ? 0 : n), target);
	}
	closedir(directory);
}

static void print_environ(const char *who, const char *path)
{
	static char text[ENVIRON_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	printf("environ.%s=%s\n", who, n < 0 ? strerrorname_np(errno) : "0");
	for (ssize_t i = 0; i < n; i += (ssize_t)strlen(text + i) + 1)
		printf("env.%s.%s\n", who, text + i);
	if (fd >= 0)
		close(fd);
	memset(text, 0, sizeof(text));
}

static void print_limit(const char *name, __rlimit_resource_t resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) != 0)
		die("getrlimit");
	printf("rlimit.%s=%lld:%lld\n", name, (long long)limit.rlim_cur, (long long)limit.rlim_max);
}

static void print_limits(void)
{
	print_limit("core", RLIMIT_CORE);
	print_limit("nofile", RLIMIT_NOFILE);
	print_limit("stack", RLIMIT_STACK);
	print_limit("sigpending", RLIMIT_SIGPENDING);
	print_limit("msgqueue", RLIMIT_MSGQUEUE);
	print_limit("nice", RLIMIT_NICE);
	print_limit("rtprio", RLIMIT_RTPRIO);
	print_limit("cpu", RLIMIT_CPU);
}

static void print_signals(void)
{
	struct sigaction action;
	sigset_t mask;
	int blocked = 0, ignored = 0;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int number = 1; number < NSIG; number++) {
		if (sigismember(&mask, number) == 1)
			blocked++;
		if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
			ignored++;
	}
	report_number("signals.blocked", blocked);
	report_number("signals.not_default", ignored);
}

static void print_ids(void)
{
	uid_t real, effective, saved;
	gid_t groups[GROUPS_MAX], real_group, effective_group, saved_group;
	char directory[LINK_MAX_BYTES], host[LINK_MAX_BYTES];
	mode_t mask = umask(022);

	getresuid(&real, &effective, &saved);
	getresgid(&real_group, &effective_group, &saved_group);
	printf("uid=%u:%u:%u\ngid=%u:%u:%u\n", real, effective, saved, real_group, effective_group, saved_group);
	report_number("groups", getgroups(GROUPS_MAX, groups));
	printf("umask=%03o\n", mask);
	errno = 0;
	report_number("nice", getpriority(PRIO_PROCESS, 0));
	report_number("scheduler", sched_getscheduler(0));
	printf("cwd=%s\n", getcwd(directory, sizeof(directory)) ? directory : strerrorname_np(errno));
	printf("hostname=%s\n", gethostname(host, sizeof(host)) == 0 ? host : "?");
	report_number("session", getsid(0) == getpid());
	report_number("no_new_privs", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	report_number("dumpable", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
	report_number("pdeathsig_call", prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0));
	PROBE("tty", open("/dev/tty", O_RDWR | O_CLOEXEC));
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "ids";

	if (strcmp(how, "fds") == 0)
		list_descriptors();
	else if (strcmp(how, "environ") == 0) {
		char parent[64];

		snprintf(parent, sizeof(parent), "/proc/%d/environ", (int)getppid());
		print_environ("self", "/proc/self/environ");
		print_environ("init", "/proc/1/environ");
		print_environ("parent", parent);
	} else {
		print_signals();
		print_ids();
		print_limits();
	}
	return 0;
}
