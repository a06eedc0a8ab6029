/* guest.c - main: what it does between its birth and the guest's first instruction.
 *
 * The order matters. Groups are joined while main still is the worker's own user, and before its cgroup namespace, whose root they
 * become. Landlock comes after the pivot; no_new_privs before both filters; the seccomp filter last, because it forbids the rest. */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/ioprio.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
#include "guest_filter.h"
#include "init/calls.h"

enum { GUEST_GATE_FD = 3, GUEST_PATH_MAX = 4096 };

/* Dispositions are default already: the worker reset what its caller ignored, and init sets none. */
static void reset_signals(void)
{
	sigset_t none;
	sigemptyset(&none);
	if (OMITTED("signals"))
		signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Writing 0 moves the writer; the permission is that of whoever opened the file. */
static void join_groups(const struct init_setup *setup)
{
	for (int i = 0; i < setup->join_count; i++)
		if (setup->join_fds[i] >= 0 && write(setup->join_fds[i], "0", 1) != 1)
			init_fail("cgroups", errno);
	if (!OMITTED("ns.cgroup") && unshare(CLONE_NEWCGROUP) != 0)
		init_fail("cgroup namespace", errno);
}

static void prefer_as_oom_victim(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "1000", 4) != 4)
		init_fail("oom_score_adj", errno);
	close(fd);
}

static void limit(const char *name, int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit now, want = {.rlim_cur = soft, .rlim_max = hard};
	if (OMITTED(name))
		return;
	if (getrlimit(resource, &now) != 0)
		init_fail(name, errno);
	if (now.rlim_max < want.rlim_max)
		want.rlim_max = now.rlim_max; /* raising a hard limit needs a capability; enroll compares what matters */
	if (want.rlim_cur > want.rlim_max)
		want.rlim_cur = want.rlim_max;
	if (setrlimit(resource, &want) != 0)
		init_fail(name, errno);
}

/* RLIMIT_CORE is 1, not 0: a piped core handler runs for 0 but not for 1 (core(5)); the filter keeps the guest from changing it.
 * Pending signals and message queues are charged to the host's user as well. */
static void set_limits(const struct init_setup *setup)
{
	limit("rlimit.core", RLIMIT_CORE, 1, 1);
	limit("rlimit.open_files", RLIMIT_NOFILE, setup->open_files, setup->open_files);
	limit("rlimit.stack", RLIMIT_STACK, setup->stack_bytes, RLIM_INFINITY);
	limit("rlimit.sigpending", RLIMIT_SIGPENDING, 64, 64);
	limit("rlimit.msgqueue", RLIMIT_MSGQUEUE, 0, 0);
	limit("rlimit.memlock", RLIMIT_MEMLOCK, 65536, 65536);
	limit("rlimit.rtprio", RLIMIT_RTPRIO, 0, 0);
	limit("rlimit.nice", RLIMIT_NICE, 0, 0);
}

/* What the caller set for his own programs would end a guest in ways that no verdict names. The hard ones are the plan's to look at. */
static void raise_limits(void)
{
	static const int inherited[] = {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_AS, RLIMIT_NPROC};
	struct rlimit now;
	for (size_t i = 0; i < sizeof(inherited) / sizeof(inherited[0]); i++) {
		if (getrlimit(inherited[i], &now) != 0)
			init_fail("limits", errno);
		if (now.rlim_cur == now.rlim_max)
			continue;
		now.rlim_cur = now.rlim_max;
		if (setrlimit(inherited[i], &now) != 0)
			init_fail("limits", errno);
	}
}

/* Neither real time nor any advantage, on processors or disks, whoever we were started by: that is his. To be nicer than others is
 * inherited. By system calls: this libc has no sched_setscheduler(2). */
static void be_ordinary(void)
{
	static const struct sched_param none = {.sched_priority = 0};
	if (OMITTED("scheduling"))
		return;
	long policy = syscall(SYS_sched_getscheduler, 0) & ~(long)SCHED_RESET_ON_FORK;
	if (policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE && syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none) != 0)
		init_fail("scheduling", errno);
	if (getpriority(PRIO_PROCESS, 0) < 0 && setpriority(PRIO_PROCESS, 0, 0) != 0)
		init_fail("scheduling", errno);
	long io = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
	if (io < 0 || (IOPRIO_PRIO_CLASS(io) == IOPRIO_CLASS_RT && syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 0) != 0))
		init_fail("scheduling", errno);
}

static void keep_descriptors(int gate)
{
	if (gate != GUEST_GATE_FD && dup3(gate, GUEST_GATE_FD, O_CLOEXEC) < 0)
		init_fail("descriptors", errno);
	if (fcntl(GUEST_GATE_FD, F_SETFD, FD_CLOEXEC) != 0 || fcntl(INIT_CONTROL_FD, F_SETFD, FD_CLOEXEC) != 0)
		init_fail("descriptors", errno);
	if (!OMITTED("fds") && call_close_range(INIT_CONTROL_FD + 1, ~0U) != 0)
		init_fail("descriptors", errno);
}

static void filter_calls(void)
{
	struct sock_fprog program = {.len = GUEST_FILTER_COUNT, .filter = (struct sock_filter *)(uintptr_t)guest_filter};
	if (!OMITTED("seccomp") && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
		init_fail(errno == EACCES ? "no_new_privs" : "seccomp", errno); /* seccomp(2): EACCES is no_new_privs not set */
}

static uint32_t become_guest(const struct init_setup *setup)
{
	uint32_t attested = 0;
	if (!OMITTED("keyring") && syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
		attested |= UINT32_C(1) << INIT_DID_KEYRING;
	if (!OMITTED("ids.guest"))
		attested |= init_become(setup, INIT_GUEST, OMITTED("caps.guest") ? ~UINT64_C(0) : 0);
	if (!OMITTED("no_new_privs") && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		init_fail("no_new_privs", errno);
	if (!OMITTED("cwd") && chdir(init_string(setup, setup->cwd)) != 0 && errno != ENOENT && errno != ENOTDIR && errno != EACCES)
		init_fail("cwd", errno); /* one that the guest cannot have is for enroll to name, behind what may be the reason */
	if (setup->landlock_abi > 0 && !OMITTED("landlock") && init_restrict_files(setup))
		attested |= UINT32_C(1) << INIT_DID_LANDLOCK;
	return attested;
}

static void pass_gate(void)
{
	char go;
	ssize_t got;
	do
		got = read(GUEST_GATE_FD, &go, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(1); /* closed, not opened: never launched */
}

static void make_list(const struct init_setup *setup, uint32_t count, uint32_t offset, char **list)
{
	const char *text = count > 0 ? init_string(setup, offset) : "";
	for (uint32_t i = 0; i < count; i++, text += strlen(text) + 1)
		list[i] = (char *)(uintptr_t)text;
	list[count] = NULL;
}

static const char *value_of(char *const *env, const char *name)
{
	size_t length = strlen(name);
	for (; *env; env++)
		if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
			return *env + length + 1;
	return "";
}

/* execvp(3)'s search in the guest's own PATH; a file that exists but cannot be executed is remembered. Returns errno. */
static int execute(char *const *argv, char *const *env)
{
	if (strchr(argv[0], '/')) {
		execve(argv[0], argv, env);
		return errno;
	}
	int error = ENOENT;
	for (const char *part = value_of(env, "PATH"); *part;) {
		char path[GUEST_PATH_MAX];
		size_t length = strcspn(part, ":");
		int printed = snprintf(path, sizeof(path), "%.*s%s%s", (int)length, part, length > 0 ? "/" : "./", argv[0]);
		if (printed > 0 && (size_t)printed < sizeof(path)) {
			execve(path, argv, env);
			if (errno != ENOENT && errno != ENOTDIR)
				error = errno;
		}
		part += length + (part[length] == ':');
	}
	return error;
}

_Noreturn void init_run_main(const struct init_setup *setup, int gate)
{
	static char *argv[INIT_MAX_ARGS + 1], *env[INIT_MAX_ARGS + 1];
	reset_signals();
	personality(PER_LINUX); /* the caller's own (setarch(8)) would be inherited: no address randomization, executable data, another uname */
	if (!OMITTED("session") && setsid() < 0)
		init_fail("session", errno);
	join_groups(setup);
	if (!OMITTED("oom_score"))
		prefer_as_oom_victim();
	keep_descriptors(gate);
	umask(OMITTED("umask") ? 0077 : 022);
	set_limits(setup);
	raise_limits();
	be_ordinary();
	make_list(setup, setup->argc, setup->argv, argv);
	make_list(setup, setup->envc, setup->env, env);
	uint32_t attested = become_guest(setup);
	filter_calls();

	init_report(&(struct init_report){.kind = INIT_REPORT_AT_GATE, .attested = attested});
	pass_gate();
	int error = execute(argv, env);
	init_report(&(struct init_report){.kind = INIT_REPORT_NOT_EXECUTED, .error = error});
	_exit(127);
}
