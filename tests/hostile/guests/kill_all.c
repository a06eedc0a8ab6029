/* kill_all.c - H07, H08: kill_all self: kill(-1, SIGKILL) among its own; kill_all init: tries each way to end what watches it. */
#include <dirent.h>
#include <signal.h>
#include <sys/ptrace.h>

#include "probe.h"

static int kill_own(void)
{
	pid_t children[3];
	int killed = 0, status;

	for (int i = 0; i < 3; i++) {
		children[i] = fork();
		if (children[i] == 0)
			for (;;)
				pause();
	}
	PROBE("kill.all", kill(-1, SIGKILL));
	for (int i = 0; i < 3; i++)
		if (waitpid(children[i], &status, 0) == children[i] && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			killed++;
	report_number("killed", killed);
	return 0;
}

static void kill_visible(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	long killed = 0;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && pid != getpid() && kill(pid, SIGKILL) == 0)
			killed++;
	}
	report_number("killed.visible", killed);
}

static int kill_init(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
	siginfo_t info = {.si_signo = SIGKILL, .si_code = SI_QUEUE};

	report_number("parent", getppid());
	PROBE("kill.init", kill(1, SIGKILL));
	PROBE("kill.parent", kill(getppid(), SIGKILL));
	PROBE("stop.init", kill(1, SIGSTOP));
	PROBE("tgkill.init", syscall(SYS_tgkill, 1, 1, SIGKILL));
	PROBE("sigqueue.init", syscall(SYS_rt_sigqueueinfo, 1, SIGKILL, &info));
	PROBE("pidfd.init", pidfd < 0 ? -1 : syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0));
	PROBE("ptrace.init", ptrace(PTRACE_SEIZE, 1, NULL, NULL));
	kill_visible();
	return 3;
}

int main(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[1], "init") == 0 ? kill_init() : kill_own();
}
