/* mkfs.c - runs mkfs.ext4 on a descriptor, with nothing of our environment and an end to its time. */
#include "boundary/linux/mkfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

/* Fixed, so that the host's mke2fs.conf changes nothing. No journal and no room to grow; the tables of inodes are zero already. */
#define FEATURES "none,extent,flex_bg,metadata_csum,64bit,dir_index,filetype,sparse_super,large_file,huge_file,dir_nlink,extra_isize"
#define EXTENDED "nodiscard,lazy_itable_init=1,root_owner=0:0"

enum { IMAGE_FD = 3, SAID_MAX = 1024, NUMBER_MAX = 24 };

const char *mkfs_path(void)
{
	static const char *const places[] = {"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

/* In the child: async-signal-safe calls only. It must not outlive us, who alone know what it is for. */
_Noreturn static void execute(const char *path, int image, int said, pid_t parent, const char *inodes)
{
	const char *const argv[] = {"mkfs.ext4", "-q", "-F", "-b", "4096", "-I", "256", "-m", "0", "-N", inodes, "-O", FEATURES, "-E", EXTENDED,
	                            "/proc/self/fd/3", NULL};
	static char *const env[] = {(char *)(uintptr_t)"MKE2FS_CONFIG=/dev/null", (char *)(uintptr_t)"LC_ALL=C", NULL};
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent || dup2(said, STDERR_FILENO) < 0 || dup2(said, STDOUT_FILENO) < 0)
		_exit(127);
	if (image == IMAGE_FD ? fcntl(image, F_SETFD, 0) != 0 : dup2(image, IMAGE_FD) < 0)
		_exit(127);
	execve(path, (char *const *)(uintptr_t)argv, env);
	_exit(127);
}

/* What is said beyond the room is read and dropped. False when the deadline came before its end. */
static bool listen_to(int said, int64_t deadline_ns, char text[static SAID_MAX])
{
	char piece[SAID_MAX];
	size_t used = 0;
	text[0] = '\0';
	for (;;) {
		struct pollfd source = {.fd = said, .events = POLLIN};
		int64_t left_ms = (deadline_ns - clock_mono_ns()) / NS_PER_MS;
		int ready = poll(&source, 1, left_ms > 0 ? (int)left_ms : 0);
		if (ready < 0 && errno == EINTR)
			continue;
		ssize_t got = ready > 0 ? read(said, piece, sizeof(piece)) : 0;
		if (got <= 0)
			return ready > 0;
		size_t room = SAID_MAX - 1 - used, kept = (size_t)got < room ? (size_t)got : room;
		memcpy(text + used, piece, kept);
		used += kept;
		text[used] = '\0';
	}
}

/* The last line that is not empty. */
static const char *last_line(char *text)
{
	size_t length = strlen(text);
	while (length > 0 && text[length - 1] == '\n')
		text[--length] = '\0';
	const char *newline = strrchr(text, '\n');
	return newline ? newline + 1 : text;
}

static int await(pid_t pid, int said, struct err *err)
{
	char text[SAID_MAX];
	int status;
	bool ended = listen_to(said, clock_mono_ns() + MKFS_TIMEOUT_MS * NS_PER_MS, text);
	if (!ended)
		kill(pid, SIGKILL); /* ours, and not yet waited for: nobody else's number */
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(err, errno, "wait for mkfs.ext4");
	if (!ended)
		return err_set(err, ERR_TIMEOUT, "mkfs.ext4 took more than %d ms", MKFS_TIMEOUT_MS);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(err, ERR_UNENFORCEABLE, "limit.work: mkfs.ext4: %s", *text ? last_line(text) : "failed");
}

int mkfs_ext4(int image, int64_t inodes, struct err *err)
{
	char number[NUMBER_MAX];
	int ends[2];
	const char *path = mkfs_path();
	if (!path)
		return err_set(err, ERR_UNENFORCEABLE, "limit.work: scratch disk needs mkfs.ext4 (e2fsprogs)");
	snprintf(number, sizeof(number), "%" PRId64, inodes);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_sys(err, errno, "pipe");
	FD_AUTO int said = ends[0], saying = ends[1];
	pid_t self = getpid(), pid = fork();
	if (pid == 0)
		execute(path, image, saying, self, number);
	if (pid < 0)
		return err_sys(err, errno, "fork for mkfs.ext4");
	fd_close(&saying);
	return await(pid, said, err);
}
