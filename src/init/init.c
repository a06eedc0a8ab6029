/* init.c - guest init: pid 1 of the guest's pid namespace.
 *
 * Theory of operation. The worker has made all of the guest's view as detached mounts and all of its cgroups; init only puts them
 * together from the inside, in namespaces that it was born into. Until main is born init is the worker's own user (unmapped in the new
 * user namespace, with all capabilities in it and none outside); then both give everything up: main becomes the guest (1000), init
 * becomes 0 of the namespace with CAP_KILL alone, so that neither can touch the other's memory and init can still send TERM.
 *
 * Main waits at the gate, a pipe whose write end only init has. Init opens it on the worker's command, arms a timer of its own, and from
 * then on reaps, stamps main's exit, and listens. It ends - and with it, by the kernel, every process of the guest - when the control
 * socket is at its end (the worker is gone) or the timer fires. */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "init/calls.h"

#define NS_PER_S INT64_C(1000000000)

struct init {
	const struct init_setup *setup;
	pid_t main_pid;
	int gate;     /* write end; -1 once it is open */
	int signals;  /* signalfd */
	int timer;
	int64_t launched_ns;
};

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void send_report(const struct init_report *report, int pidfd)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)report, .iov_len = sizeof(*report)};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control;
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	if (pidfd >= 0) {
		memset(&control, 0, sizeof(control));
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &pidfd, sizeof(int));
	}
	while (sendmsg(INIT_CONTROL_FD, &message, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			_exit(1); /* nobody listens any more */
}

void init_report(const struct init_report *report)
{
	send_report(report, -1);
}

void init_fail(const char *step, int error)
{
	struct init_report report = {.kind = INIT_REPORT_FAILED, .error = error};
	strncpy(report.step, step, sizeof(report.step) - 1);
	init_report(&report);
	_exit(1);
}

const char *init_string(const struct init_setup *setup, uint32_t offset)
{
	if (offset >= setup->size)
		init_fail("setup", EINVAL);
	return (const char *)setup + offset;
}

static const struct init_setup *map_setup(void)
{
	struct stat status;
	if (fstat(INIT_SETUP_FD, &status) != 0)
		init_fail("setup", errno);
	size_t size = (size_t)status.st_size;
	if (size < sizeof(struct init_setup) || size > INIT_SETUP_MAX_BYTES)
		init_fail("setup", EINVAL);
	const struct init_setup *setup = mmap(NULL, size, PROT_READ, MAP_PRIVATE, INIT_SETUP_FD, 0);
	if (setup == MAP_FAILED)
		init_fail("setup", errno);
	bool sound = setup->magic == INIT_SETUP_MAGIC && setup->size == size && setup->mount_count <= INIT_MAX_MOUNTS &&
	             setup->join_count >= 0 && setup->join_count <= INIT_MAX_JOINS && ((const char *)setup)[size - 1] == '\0' &&
	             setup->mounts + setup->mount_count * sizeof(struct init_mount) <= size && setup->argc > 0 && setup->argc <= INIT_MAX_ARGS && setup->envc <= INIT_MAX_ARGS;
	if (!sound)
		init_fail("setup", EINVAL);
	close(INIT_SETUP_FD);
	return setup;
}

/* The next command; false when the worker is gone. */
static bool next_command(struct init_command *ret)
{
	ssize_t got;
	do
		got = recv(INIT_CONTROL_FD, ret, sizeof(*ret), 0);
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(*ret);
}

static void await_maps(void)
{
	struct init_command command;
	if (!next_command(&command) || command.kind != INIT_COMMAND_MAPPED)
		_exit(1);
}

/* Main is born directly into the guest's v2 group (a join by write would be slow there, and wrong for an instant). This happens while
 * init still is the worker's own user, who may place processes in that group. */
static pid_t bear_main(const struct init_setup *setup, int *ret_pidfd)
{
	struct clone_args args = {.flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uint64_t)(uintptr_t)ret_pidfd};
	if (setup->unified_guest_fd >= 0 && !OMITTED("cgroup.unified.guest")) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)setup->unified_guest_fd;
	}
	long pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		init_fail("main", errno);
	return (pid_t)pid;
}

static void start_main(struct init *init)
{
	int gate[2], pidfd = -1;
	if (pipe2(gate, O_CLOEXEC) != 0)
		init_fail("gate", errno);
	init->main_pid = bear_main(init->setup, &pidfd);
	if (init->main_pid == 0) {
		close(gate[1]);
		init_run_main(init->setup, gate[0]);
	}
	close(gate[0]);
	init->gate = gate[1];
	send_report(&(struct init_report){.kind = INIT_REPORT_BORN}, pidfd);
	close(pidfd);
}

/* Closes every descriptor from `low` on but those in `kept`. */
static void close_others(int low, const int *kept, size_t count)
{
	for (;;) {
		int next = INT_MAX;
		for (size_t i = 0; i < count; i++)
			if (kept[i] >= low && kept[i] < next)
				next = kept[i];
		if (next > low && call_close_range((unsigned)low, next == INT_MAX ? ~0U : (unsigned)next - 1) != 0)
			init_fail("descriptors", errno);
		if (next == INT_MAX)
			return;
		low = next + 1;
	}
}

/* Init keeps none of the guest's streams (or they would never be at their end), no mount and no group. */
static void close_the_rest(const struct init *init)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		init_fail("null", errno);
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(null, fd) < 0)
			init_fail("null", errno);
	const int kept[] = {INIT_CONTROL_FD, init->gate, init->signals, init->timer};
	close_others(3, kept, sizeof(kept) / sizeof(kept[0]));
}

static void give_up_privileges(const struct init_setup *setup, uint32_t attested)
{
	if (!OMITTED("ids.init"))
		init_become(setup, INIT_ITSELF, OMITTED("caps.init") ? ~UINT64_C(0) : UINT64_C(1) << CAP_KILL);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		init_fail("no_new_privs", errno);
	if (!OMITTED("init.dumpable") && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
		attested |= UINT32_C(1) << INIT_DID_DUMPABLE;
	/* A change of credentials clears it, so it comes last. It is the second layer: the control socket is the first. */
	if (!OMITTED("init.pdeathsig") && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0)
		attested |= UINT32_C(1) << INIT_DID_PDEATHSIG;
	init_report(&(struct init_report){.kind = INIT_REPORT_SET_UP, .attested = attested});
}

static void open_gate(struct init *init)
{
	if (init->gate < 0)
		_exit(1); /* launched twice: whoever asks is confused */
	int64_t ms = init->setup->deadline_ms;
	struct itimerspec when = {.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}};
	if (timerfd_settime(init->timer, 0, &when, NULL) != 0)
		_exit(1);
	init->launched_ns = now_ns();
	if (write(init->gate, "x", 1) != 1) /* pid 1 of a namespace does not die of its own SIGPIPE */
		_exit(1);
	close(init->gate);
	init->gate = -1;
}

static void obey(struct init *init)
{
	struct init_command command;
	if (!next_command(&command))
		_exit(0);
	switch (command.kind) {
	case INIT_COMMAND_LAUNCH:
		open_gate(init);
		return;
	case INIT_COMMAND_TERMINATE:
		kill(-1, SIGTERM); /* everybody in this pid namespace but init */
		return;
	default:
		_exit(1);
	}
}

static void reap(struct init *init)
{
	struct signalfd_siginfo ignored;
	while (read(init->signals, &ignored, sizeof(ignored)) > 0)
		;
	int64_t at_ns = now_ns();
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
		if (pid <= 0)
			return;
		if (pid != init->main_pid)
			continue;
		init->main_pid = -1;
		init_report(&(struct init_report){.kind = INIT_REPORT_EXITED, .wait_status = status, .launched_ns = init->launched_ns,
		        .exited_ns = at_ns});
	}
}

_Noreturn static void watch(struct init *init)
{
	struct pollfd sources[] = {
		{.fd = init->signals, .events = POLLIN},
		{.fd = INIT_CONTROL_FD, .events = POLLIN},
		{.fd = init->timer, .events = POLLIN},
	};
	for (;;) {
		if (poll(sources, 3, -1) < 0 && errno != EINTR)
			_exit(1);
		if (sources[0].revents)
			reap(init);
		if (sources[1].revents)
			obey(init);
		if (sources[2].revents)
			_exit(0); /* nobody stopped the guest in time, so this does */
	}
}

static uint32_t name_host(const struct init_setup *setup)
{
	const char *name = init_string(setup, setup->hostname);
	if (OMITTED("hostname") || sethostname(name, strlen(name)) != 0 || setdomainname("", 0) != 0)
		return 0;
	return UINT32_C(1) << INIT_DID_HOSTNAME;
}

int main(void)
{
	struct init init = {.setup = map_setup(), .gate = -1};
	sigset_t child;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_SETMASK, &child, NULL);
	init.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	init.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (init.signals < 0 || init.timer < 0)
		init_fail("descriptors", errno);

	await_maps();
	uint32_t attested = name_host(init.setup);
	if (!OMITTED("ucounts") && init_limit_namespaces())
		attested |= UINT32_C(1) << INIT_DID_UCOUNTS;
	init_build_view(init.setup);
	init_empty_bounding_set();
	start_main(&init);
	init_leave_host();
	close_the_rest(&init);
	give_up_privileges(init.setup, attested);
	watch(&init);
}
