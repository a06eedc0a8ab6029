/* front_process.c - starts caisson-front, and ends it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "keeper/api/api_internal.h"

enum {
	INTAKE_FD = 3,
	NUMBER_SIZE = 16,
	END_MS = 2000, /* it has nothing to finish */
};

/* In the child of a process with threads: only what is allowed after fork. */
static _Noreturn void become_front(const char *path, char *const *arguments, int intake)
{
	static char *const no_environment[] = {NULL};
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		_exit(127);
	if (intake == INTAKE_FD ? fcntl(intake, F_SETFD, 0) < 0 : dup2(intake, INTAKE_FD) < 0)
		_exit(127);
	if (close_range(INTAKE_FD + 1, ~0U, 0) == 0)
		execve(path, arguments, no_environment);
	_exit(127);
}

int front_start(struct api *api, struct err *err)
{
	char uid[NUMBER_SIZE], gid[NUMBER_SIZE], name[] = "caisson-front";
	char *const arguments[] = {name, uid, gid, NULL};
	int pair[2];
	snprintf(uid, sizeof(uid), "%u", (unsigned)api->options.front_uid);
	snprintf(gid, sizeof(gid), "%u", (unsigned)api->options.front_gid);
	api->front.started_at_ns = clock_mono_ns();
	int result = channel_pair(pair, err);
	if (result)
		return result;
	FD_AUTO int ours = pair[0];
	FD_AUTO int theirs = pair[1];
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(err, errno, "start the front");
	if (pid == 0)
		become_front(api->options.front_path, arguments, theirs);
	int pidfd = pidfd_open(pid, 0);
	if (pidfd < 0) {
		result = err_sys(err, errno, "watch the front");
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return result;
	}
	api->front.pidfd = pidfd;
	api->front.intake = fd_take(&ours);
	return 0;
}

void front_end(struct front_process *front)
{
	fd_close(&front->intake);
	if (front->pidfd < 0)
		return;
	struct pollfd end = {.fd = front->pidfd, .events = POLLIN};
	if (poll(&end, 1, END_MS) <= 0)
		pidfd_send_signal(front->pidfd, SIGKILL, NULL, 0);
	siginfo_t information;
	/* A keeper that reaps whatever is dead may have been faster. */
	while (waitid(P_PIDFD, (id_t)front->pidfd, &information, WEXITED) < 0 && errno == EINTR)
		;
	fd_close(&front->pidfd);
}
