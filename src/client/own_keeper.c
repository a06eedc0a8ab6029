/* own_keeper.c - starts, restarts and stops a keeper of our own. */
#include "client/own_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "client/backoff.h"

enum {
	STOP_MS = 60 * 1000, /* it drains, and that is bounded too */
	LAST_WORDS_MAX = 512,
	STATUS_NOT_STARTED = 127,
};

bool own_keeper_is_needed(const char *socket_path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	FD_AUTO int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	size_t length = strlen(socket_path);

	if (fd < 0 || length >= sizeof(address.sun_path))
		return true;
	memcpy(address.sun_path, socket_path, length + 1);
	/* EAGAIN: so many want to speak to it that they have to queue. */
	return connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 && errno != EAGAIN;
}

/* In the child: dies with us, hears no Ctrl-C that is meant for us, and has none of our blocked signals. */
static void become_keeper(const struct own_keeper *keeper, pid_t parent)
{
	const char *const argv[] = {keeper->program, "serve", "--ledger", keeper->ledger, "--socket", keeper->socket, NULL};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent || setsid() < 0 ||
	    sigprocmask(SIG_SETMASK, &none, NULL) < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(keeper->log, STDOUT_FILENO) < 0 ||
	    dup2(keeper->log, STDERR_FILENO) < 0)
		_exit(STATUS_NOT_STARTED);
	execv(keeper->program, (char *const *)(uintptr_t)argv);
	_exit(STATUS_NOT_STARTED);
}

static int spawn(struct own_keeper *keeper, struct err *err)
{
	pid_t parent = getpid(), pid = 0;

	fd_close(&keeper->log);
	keeper->log = memfd_create("caisson-keeper-log", MFD_CLOEXEC);
	if (keeper->log < 0)
		return err_sys(err, errno, "make room for a keeper's log");
	pid = fork();
	if (pid == 0)
		become_keeper(keeper, parent);
	if (pid < 0)
		return err_sys(err, errno, "start a keeper");
	keeper->pid = pid;
	keeper->pidfd = pidfd_open(pid, 0);
	return keeper->pidfd < 0 ? err_sys(err, errno, "watch a keeper") : 0;
}

int own_keeper_start(struct own_keeper *keeper, const struct request *request, struct err *err)
{
	char id[ID_SIZE];

	*keeper = (struct own_keeper){.program = request->program, .ledger = request->ledger, .pidfd = -1, .log = -1};
	id_new("bat", id);
	if ((size_t)snprintf(keeper->socket, sizeof(keeper->socket), "%s/%s.sock", keeper->ledger, id) >= sizeof(keeper->socket))
		return err_set(err, ERR_LIMIT, "the ledger's path is too long for a socket in it: %s", keeper->ledger);
	return spawn(keeper, err);
}

/* The last line that it wrote. */
static void last_words(const struct own_keeper *keeper, char text[static LAST_WORDS_MAX])
{
	off_t end = lseek(keeper->log, 0, SEEK_END), from = end > LAST_WORDS_MAX - 1 ? end - (LAST_WORDS_MAX - 1) : 0;
	ssize_t got = fd_pread_full(keeper->log, text, LAST_WORDS_MAX - 1, from);

	text[got < 0 ? 0 : got] = '\0';
	while (*text && text[strlen(text) - 1] == '\n')
		text[strlen(text) - 1] = '\0';

	const char *line = strrchr(text, '\n');

	if (line)
		memmove(text, line + 1, strlen(line + 1) + 1);
}

static int reap(struct own_keeper *keeper)
{
	int status = 0;

	while (waitpid(keeper->pid, &status, 0) < 0 && errno == EINTR)
		;
	keeper->pid = 0;
	fd_close(&keeper->pidfd);
	return status;
}

int own_keeper_died(struct own_keeper *keeper, struct err *err)
{
	char words[LAST_WORDS_MAX] = "";
	int status = reap(keeper);

	if (++keeper->deaths < OWN_KEEPER_DEATHS_MAX) {
		keeper->respawn_at_ns = clock_mono_ns() + backoff_ms(keeper->deaths) * NS_PER_MS;
		return 0;
	}
	last_words(keeper, words);
	return err_set(err, ERR_LOST, "the keeper that was started (caisson serve --ledger %s) ended with %s %d%s%s",
	               keeper->ledger, WIFSIGNALED(status) ? "signal" : "status",
	               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), *words ? ": " : "", words);
}

int own_keeper_tick(struct own_keeper *keeper, int64_t now_ns, struct err *err)
{
	return keeper->pid || now_ns < keeper->respawn_at_ns ? 0 : spawn(keeper, err);
}

void own_keeper_stop(struct own_keeper *keeper)
{
	if (keeper->pid) {
		struct pollfd ended = {.fd = keeper->pidfd, .events = POLLIN};

		kill(keeper->pid, SIGTERM);
		while (poll(&ended, 1, STOP_MS) < 0 && errno == EINTR)
			;
		if (!ended.revents)
			kill(keeper->pid, SIGKILL);
		reap(keeper);
	}
	fd_close(&keeper->log);
	if (*keeper->socket)
		unlink(keeper->socket);
}
