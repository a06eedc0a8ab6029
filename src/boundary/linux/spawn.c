/* spawn.c - brings guest init and main into existence, up to the gate.
 *
 * The worker clones a child straight into all namespaces and the v2 group, and executes guest init there. It then writes the id maps and
 * says so; init sets up, bears main, and both report. The setup travels as a sealed memfd (init/setup.h). */
#include "boundary/linux/linux_boundary.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "boundary/linux/birth.h"
#include "boundary/linux/capability.h"

/* Descriptors that the child needs, all of them numbered INIT_FIRST_FREE_FD or above until the child moves them into place. */
struct handover {
	int streams[3];
	int setup, control;
	int joins[CONTROLLER_COUNT];
	int join_count;
	int *others; /* further descriptors that stay where they are */
	size_t other_count;
};

static void handover_done(struct handover *handover)
{
	for (int i = 0; i < 3; i++)
		fd_close(&handover->streams[i]);
	for (int i = 0; i < handover->join_count; i++)
		fd_close(&handover->joins[i]);
	fd_close(&handover->setup);
	fd_close(&handover->control);
	free(handover->others);
}

/* Moves *fd above the numbers that init's own descriptors get. */
static int lift(int *fd, struct err *err)
{
	if (*fd >= INIT_FIRST_FREE_FD)
		return 0;
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, INIT_FIRST_FREE_FD);
	if (high < 0)
		return err_sys(err, errno, "descriptor");
	close(*fd);
	*fd = high;
	return 0;
}

/* ---- the setup ---- */

static int append_list(struct buf *blob, char *const *list, size_t count, uint32_t *ret_offset, struct err *err)
{
	*ret_offset = (uint32_t)blob->len;
	for (size_t i = 0; i < count; i++) {
		int rc = buf_append(blob, list[i], strlen(list[i]) + 1, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int append_mounts(struct buf *blob, const struct view *view, struct init_setup *setup, struct err *err)
{
	size_t bytes = view->count * sizeof(struct init_mount);
	struct init_mount *mounts = calloc(view->count, sizeof(*mounts));
	int rc = mounts ? 0 : err_set(err, ERR_NO_MEMORY, "setup");
	/* The targets stand behind the array, in the same order. */
	uint32_t offset = (uint32_t)(blob->len + bytes);
	for (size_t i = 0; i < view->count && rc == 0; i++) {
		mounts[i] = (struct init_mount){.fd = view->mounts[i].fd, .target = offset};
		offset += (uint32_t)strlen(view->mounts[i].target) + 1;
	}
	setup->mounts = (uint32_t)blob->len;
	setup->mount_count = (uint32_t)view->count;
	if (rc == 0)
		rc = buf_append(blob, mounts, bytes, err);
	for (size_t i = 0; i < view->count && rc == 0; i++)
		rc = buf_append(blob, view->mounts[i].target, strlen(view->mounts[i].target) + 1, err);
	free(mounts);
	return rc;
}

static int append_strings(struct buf *blob, const struct plan_unit *unit, struct init_setup *setup, struct err *err)
{
	char *const hostname[] = {(char *)(uintptr_t)"caisson"}, *const cwd[] = {unit->cwd};
	char *const writable[] = {(char *)(uintptr_t)"/box", (char *)(uintptr_t)"/tmp", (char *)(uintptr_t)"/dev/shm",
	                          (char *)(uintptr_t)"/out"};
	setup->argc = (uint32_t)unit->argc;
	setup->envc = (uint32_t)unit->env_count;
	setup->writable_count = sizeof(writable) / sizeof(writable[0]);
	int rc = append_list(blob, unit->argv, unit->argc, &setup->argv, err);
	if (rc == 0)
		rc = append_list(blob, unit->env, unit->env_count, &setup->env, err);
	if (rc == 0)
		rc = append_list(blob, cwd, 1, &setup->cwd, err);
	if (rc == 0)
		rc = append_list(blob, hostname, 1, &setup->hostname, err);
	return rc < 0 ? rc : append_list(blob, writable, setup->writable_count, &setup->writable, err);
}

static int64_t longest_grace_ms(const struct plan_limits *limits)
{
	return limits->on_limit_grace_ms > limits->cancel_grace_ms ? limits->on_limit_grace_ms : limits->cancel_grace_ms;
}

static void fill_setup(const struct linux_boundary *boundary, const struct handover *handover, struct init_setup *setup)
{
	const struct plan_limits *limits = &boundary->spec.plan->limits;
	bool shared = ids_shared(&boundary->ids);
	*setup = (struct init_setup){
		.magic = INIT_SETUP_MAGIC,
		.guest_uid = IDS_GUEST,
		.guest_gid = IDS_GUEST,
		.init_uid = shared ? IDS_GUEST : IDS_INIT,
		.init_gid = shared ? IDS_GUEST : IDS_INIT,
		.keep_groups = shared,
		.deadline_ms = limits->wall_ms + longest_grace_ms(limits) + LINUX_INIT_GRACE_MS,
		.open_files = (uint64_t)limits->open_files,
		.stack_bytes = (uint64_t)limits->stack_bytes,
		.unified_guest_fd = boundary->groups.guest,
		.work_fd = boundary->view.work,
		.join_count = handover->join_count,
		.landlock_abi = boundary->provider->host.landlock_abi,
	};
	memcpy(setup->join_fds, handover->joins, sizeof(int) * (size_t)handover->join_count);
}

static int seal_setup(const void *bytes, size_t size, int *ret, struct err *err)
{
	FD_AUTO int fd = memfd_create("caisson-setup", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_sys(err, errno, "memfd_create");
	int rc = fd_write_all(fd, bytes, size);
	if (rc < 0)
		return err_sys(err, -rc, "setup");
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
		return err_sys(err, errno, "setup: seal");
	*ret = fd_take(&fd);
	return 0;
}

static int make_setup(const struct linux_boundary *boundary, struct handover *handover, struct err *err)
{
	BUF_AUTO struct buf blob = BUF_INIT(INIT_SETUP_MAX_BYTES);
	struct init_setup setup;
	fill_setup(boundary, handover, &setup);
	int rc = buf_append(&blob, &setup, sizeof(setup), err);
	if (rc == 0)
		rc = append_mounts(&blob, &boundary->view, &setup, err);
	if (rc == 0)
		rc = append_strings(&blob, &boundary->spec.plan->unit, &setup, err);
	if (rc < 0)
		return err_context(err, rc, "setup");
	setup.size = (uint32_t)blob.len;
	memcpy(blob.data, &setup, sizeof(setup));
	return seal_setup(blob.data, blob.len, &handover->setup, err);
}

/* ---- descriptors ---- */

/* A guest may own the object: an ordinary user's that has his uid. */
static int open_stdin(const struct linux_boundary *boundary, struct err *err)
{
	const struct plan_unit *unit = &boundary->spec.plan->unit;
	FD_AUTO int object = -1;
	int64_t size;
	if (unit->standard_input != ENDPOINT_INPUT) {
		int fd = fcntl(boundary->provider->null, F_DUPFD_CLOEXEC, INIT_FIRST_FREE_FD);
		return fd < 0 ? err_sys(err, errno, "stdin") : fd;
	}
	int rc = store_get_checked(boundary->spec.store, &unit->stdin_input.digest, &object, &size, err);
	if (rc == 0)
		rc = view_open_read_only(object, err);
	return rc < 0 ? err_context(err, rc, "stdin") : rc;
}

static int open_streams(struct linux_boundary *boundary, struct handover *handover, struct err *err)
{
	handover->streams[0] = open_stdin(boundary, err);
	if (handover->streams[0] < 0)
		return handover->streams[0];
	for (int i = 0; i < 2; i++) {
		int pipe_ends[2];
		if (pipe2(pipe_ends, O_CLOEXEC) != 0)
			return err_sys(err, errno, "pipe");
		boundary->streams[i] = pipe_ends[0];
		handover->streams[i + 1] = pipe_ends[1];
		if (fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK) != 0)
			return err_sys(err, errno, "pipe");
	}
	return 0;
}

static int open_control(struct linux_boundary *boundary, struct handover *handover, struct err *err)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return err_sys(err, errno, "control socket");
	boundary->control = pair[0];
	handover->control = pair[1];
	return 0;
}

/* Mounts and groups keep their numbers in init; they must only be clear of the fixed ones. */
static int list_other(struct handover *handover, int *fd, struct err *err)
{
	if (*fd < 0)
		return 0; /* not used */
	int rc = lift(fd, err);
	if (rc == 0)
		handover->others[handover->other_count++] = *fd;
	return rc;
}

static int list_others(struct linux_boundary *boundary, struct handover *handover, struct err *err)
{
	struct view *view = &boundary->view;
	handover->others = calloc(view->count + 2 + CONTROLLER_COUNT, sizeof(int));
	if (!handover->others)
		return err_set(err, ERR_NO_MEMORY, "handover");
	int rc = list_other(handover, &view->work, err);
	for (size_t i = 0; i < view->count && rc == 0; i++)
		rc = list_other(handover, &view->mounts[i].fd, err);
	if (rc == 0)
		rc = list_other(handover, &boundary->groups.guest, err);
	for (int i = 0; i < handover->join_count && rc == 0; i++)
		rc = list_other(handover, &handover->joins[i], err);
	return rc;
}

static int prepare_handover(struct linux_boundary *boundary, struct handover *handover, struct err *err)
{
	int rc = cgroups_open_joins(&boundary->groups, handover->joins, err);
	if (rc < 0)
		return rc;
	handover->join_count = rc;
	if ((rc = open_streams(boundary, handover, err)) < 0 || (rc = open_control(boundary, handover, err)) < 0 ||
	    (rc = list_others(boundary, handover, err)) < 0 || (rc = make_setup(boundary, handover, err)) < 0)
		return rc;
	int *fixed[] = {&handover->streams[0], &handover->streams[1], &handover->streams[2], &handover->setup, &handover->control};
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if ((rc = lift(fixed[i], err)) < 0)
			return rc;
	return 0;
}

/* ---- birth ---- */

/* The child is still the worker's own user, who means nothing in the new user namespace, so that exec would take its capabilities there
 * away. Ambient ones stay (capabilities(7)): the few that init needs until it gives everything up. */
static bool keep_capabilities(void)
{
	static const int needed[] = {CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, CAP_SETPCAP, CAP_KILL, CAP_SYS_RESOURCE};
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	if (syscall(SYS_capget, &header, data) != 0)
		return false;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		data[0].inheritable |= UINT32_C(1) << needed[i];
	if (syscall(SYS_capset, &header, data) != 0)
		return false;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, needed[i], 0, 0) != 0)
			return false;
	return true;
}

/* exec resets what is caught, not what is ignored. */
static bool reset_ignored_signals(const struct linux_provider *provider)
{
	const struct linux_sigaction by_default = {.handler = SIG_DFL};
	for (int number = 1; number <= LINUX_SIGNALS; number++)
		if ((provider->ignored_signals >> (number - 1) & 1) &&
		    syscall(SYS_rt_sigaction, number, &by_default, NULL, sizeof(by_default.mask)) != 0)
			return false;
	return true;
}

/* What the child of a birth is given. */
struct newborn {
	const struct linux_provider *provider;
	const struct handover *handover;
};

/* In the child, between clone and exec: async-signal-safe calls only, and nothing is written but its own stack. */
static void execute_init(const void *context)
{
	const struct newborn *newborn = context;
	const struct linux_provider *provider = newborn->provider;
	const struct handover *handover = newborn->handover;
	const int targets[][2] = {{handover->streams[0], 0}, {handover->streams[1], 1}, {handover->streams[2], 2},
	                          {handover->setup, INIT_SETUP_FD}, {handover->control, INIT_CONTROL_FD}};
	static char *const argv[] = {(char *)(uintptr_t)"caisson-init", NULL};
#ifdef CAISSON_FAULT_POINTS
	extern char **environ;
	char *const *env = environ; /* CAISSON_OMIT must reach it */
#else
	static char *const env[] = {NULL};
#endif
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		if (dup2(targets[i][0], targets[i][1]) < 0)
			_exit(120);
	for (size_t i = 0; i < handover->other_count; i++)
		if (fcntl(handover->others[i], F_SETFD, 0) != 0)
			_exit(121);
	if (!keep_capabilities() || !reset_ignored_signals(provider))
		_exit(123);
	syscall(SYS_execveat, provider->init, "", argv, env, AT_EMPTY_PATH);
	_exit(122);
}

/* All but the network, which was made before, and the cgroup namespace, which main makes behind its joins. A test build leaves some out. */
static uint64_t namespace_flags(void)
{
	uint64_t flags = OMITTED("ns.user") ? 0 : CLONE_NEWUSER;
	flags |= OMITTED("ns.mnt") ? 0 : CLONE_NEWNS;
	flags |= OMITTED("ns.pid") ? 0 : CLONE_NEWPID;
	flags |= OMITTED("ns.ipc") ? 0 : CLONE_NEWIPC;
	flags |= OMITTED("ns.uts") ? 0 : CLONE_NEWUTS;
	return flags;
}

static int clone_init(struct linux_boundary *boundary, const struct handover *handover, struct err *err)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_PIDFD | namespace_flags(),
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	if (boundary->groups.init >= 0 && !OMITTED("cgroup.unified.init")) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)boundary->groups.init;
	}
	if (!OMITTED("ns.net") && setns(boundary->network, CLONE_NEWNET) != 0)
		return err_sys(err, errno, "network namespace");
	pid_t pid = birth(&args, execute_init, &(struct newborn){boundary->provider, handover});
	fd_close(&boundary->network);
	if (setns(boundary->provider->own_network, CLONE_NEWNET) != 0)
		return err_sys(err, errno, "return to our network namespace");
	if (pid < 0)
		return linux_userns_failed(-pid, "clone3 with new namespaces", err);
	boundary->init_pid = pid;
	boundary->init_pidfd = pidfd;
	return 0;
}

/* ---- reports ---- */

int linux_command(struct linux_boundary *boundary, enum init_command_kind kind, struct err *err)
{
	struct init_command command = {.kind = kind};
	ssize_t sent;
	do
		sent = send(boundary->control, &command, sizeof(command), MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)sizeof(command) ? 0 : err_set(err, ERR_LOST, "guest init is gone");
}

int linux_receive(struct linux_boundary *boundary, struct init_report *ret, int *ret_pidfd, struct err *err)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control;
	struct iovec part = {.iov_base = ret, .iov_len = sizeof(*ret)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	ssize_t got;
	*ret_pidfd = -1;
	do
		got = recvmsg(boundary->control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got <= 0)
		return err_set(err, ERR_LOST, "guest init is gone");
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(ret_pidfd, CMSG_DATA(header), sizeof(int));
	if (got != (ssize_t)sizeof(*ret) || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		fd_close(ret_pidfd);
		return err_set(err, ERR_PROTOCOL, "guest init sent a report of a wrong size");
	}
	ret->step[INIT_STEP_MAX - 1] = '\0';
	return 1;
}

/* The pid of a pidfd in our own pid namespace, by the kernel's word. */
static int pid_of(int pidfd, pid_t *ret, struct err *err)
{
	char path[64], text[512];
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	ssize_t length = fd_read_text(AT_FDCWD, path, text, sizeof(text));
	const char *line = length < 0 ? NULL : strstr(text, "\nPid:");
	long pid = line ? strtol(line + 5, NULL, 10) : -1;
	if (pid <= 0)
		return err_set(err, ERR_UNVERIFIED, "main: its pid cannot be read");
	*ret = (pid_t)pid;
	return 0;
}

struct birth {
	bool born, set_up, at_gate;
};

static int note_report(struct linux_boundary *boundary, const struct init_report *report, int *pidfd, struct birth *birth, struct err *err)
{
	switch ((enum init_report_kind)report->kind) {
	case INIT_REPORT_FAILED:
		return err_sys(err, report->error, "guest init: %s", report->step);
	case INIT_REPORT_BORN:
		if (birth->born || *pidfd < 0)
			break;
		birth->born = true;
		boundary->main_pidfd = fd_take(pidfd);
		return pid_of(boundary->main_pidfd, &boundary->main_pid, err);
	case INIT_REPORT_SET_UP:
		birth->set_up = true;
		boundary->init_attested = report->attested;
		return 0;
	case INIT_REPORT_AT_GATE:
		birth->at_gate = true;
		boundary->main_attested = report->attested;
		return 0;
	case INIT_REPORT_NOT_EXECUTED:
	case INIT_REPORT_EXITED:
		return err_set(err, ERR_STATE, "main ended before the gate");
	}
	return err_set(err, ERR_PROTOCOL, "guest init: unexpected report %u", report->kind);
}

static int await_gate(struct linux_boundary *boundary, struct err *err)
{
	int64_t deadline_ns = clock_mono_ns() + LINUX_CREATE_TIMEOUT_MS * NS_PER_MS;
	struct birth birth = {0};
	while (!birth.born || !birth.set_up || !birth.at_gate) {
		struct init_report report;
		FD_AUTO int pidfd = -1;
		int rc = linux_receive(boundary, &report, &pidfd, err);
		if (rc < 0)
			return rc;
		if (rc > 0) {
			if ((rc = note_report(boundary, &report, &pidfd, &birth, err)) < 0)
				return rc;
			continue;
		}
		int64_t left_ms = (deadline_ns - clock_mono_ns()) / NS_PER_MS;
		if (left_ms <= 0)
			return err_set(err, ERR_TIMEOUT, "guest init was not ready within %d ms", LINUX_CREATE_TIMEOUT_MS);
		struct pollfd source = {.fd = boundary->control, .events = POLLIN};
		if (poll(&source, 1, (int)left_ms) < 0 && errno != EINTR)
			return err_sys(err, errno, "poll");
	}
	return 0;
}

#define FIRST_USER_NAMESPACE UINT64_C(0xEFFFFFFD) /* PROC_USER_INIT_INO, in no header of user space */

/* CAP_SYS_RESOURCE in the user namespace that all others are below. */
static bool has_resource_capability(const struct host *host)
{
	return host->namespaces[NS_USER] == FIRST_USER_NAMESPACE && capability_effective(CAP_SYS_RESOURCE);
}

/* Main has set its score, and could lower it again; but not below what somebody with that capability has set. */
static int fix_oom_score(struct linux_boundary *boundary, struct err *err)
{
	char path[64];
	if (geteuid() != 0 || OMITTED("oom_score") || !has_resource_capability(&boundary->provider->host))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d", boundary->main_pid);
	FD_AUTO int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || pidfd_send_signal(boundary->main_pidfd, 0, NULL, 0) != 0) /* alive behind the open: the directory is main's */
		return err_sys(err, errno, "main: %s", path);
	int rc = fd_write_text(dir, "oom_score_adj", "1000");
	boundary->oom_score_fixed = rc == 0;
	return rc < 0 ? err_sys(err, -rc, "oom_score") : 0;
}

int linux_spawn(struct linux_boundary *boundary, struct err *err)
{
	struct handover handover = {.streams = {-1, -1, -1}, .setup = -1, .control = -1};
	int rc = prepare_handover(boundary, &handover, err);
	if (rc == 0)
		rc = clone_init(boundary, &handover, err);
	if (rc == 0)
		rc = FAULT_ERR("linux.cloned", err);
	if (rc == 0)
		rc = linux_check_namespaces(boundary, boundary->init_pid, NS_CGROUP, NULL, err);
	if (rc == 0)
		rc = ids_write_maps(&boundary->ids, boundary->init_pid, err);
	if (rc == 0)
		rc = linux_command(boundary, INIT_COMMAND_MAPPED, err);
	handover_done(&handover); /* init has it all now, and alone: its end of the control socket must not stay open here */
	view_close_mounts(&boundary->view);
	if (rc == 0)
		rc = await_gate(boundary, err);
	return rc < 0 ? rc : fix_oom_score(boundary, err);
}
