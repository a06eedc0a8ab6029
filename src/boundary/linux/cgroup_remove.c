/* cgroup_remove.c - kills and removes the groups of a boundary by name alone: cleanup, recovery and sweep use the same code.
 *
 * v2 kills a whole tree at once (cgroup.kill). Without a v2 mount the group's pids.max becomes 0, so that nothing new is born, and its
 * members are killed by pidfd until none is left. v1-frozen tasks die only when they are thawed, and only Caisson's own freezer
 * group could freeze them, which it never makes. */
#include "boundary/linux/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"

enum { MEMBERS_TEXT_MAX = 1024 * 1024, KILL_BATCH = 64, BACKOFF_FIRST_MS = 1, BACKOFF_MAX_MS = 64 };

static int open_parent(const char *mount, const char *parent)
{
	char path[CGROUP_PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", mount, parent);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int time_left_ms(int64_t deadline_ns)
{
	int64_t left = (deadline_ns - clock_mono_ns()) / NS_PER_MS;
	return left < 0 ? 0 : left > 1000 ? 1000 : (int)left;
}

static bool member_of(int group, pid_t pid)
{
	static const char *const list = "cgroup.procs";
	char line[32];
	FILE *file = NULL;
	bool found = false;
	int fd = openat(group, list, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !(file = fdopen(fd, "re"))) {
		fd_close(&fd);
		return false;
	}
	while (!found && fgets(line, sizeof(line), file))
		found = strtol(line, NULL, 10) == pid;
	fclose(file);
	return found;
}

/* SIGKILL to one member. The pidfd is opened first and membership checked again behind it, so that a number which was given to somebody
 * else in between is never signalled. The pidfd, for waiting, or -1. */
static int kill_member(int group, pid_t pid)
{
	int pidfd = pidfd_open(pid, 0);
	if (pidfd < 0)
		return -1;
	if (!member_of(group, pid) || pidfd_send_signal(pidfd, SIGKILL, NULL, 0) != 0)
		fd_close(&pidfd);
	return pidfd;
}

/* One round over a v1 group: kills up to KILL_BATCH members and waits for them. The number found, or -errno. */
static int kill_round(int group, int64_t deadline_ns)
{
	struct pollfd dying[KILL_BATCH];
	char line[32];
	int found = 0, waiting = 0;
	int fd = openat(group, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "re");
	if (!file)
		return -errno;
	while (waiting < KILL_BATCH && fgets(line, sizeof(line), file)) {
		int pidfd = kill_member(group, (pid_t)strtol(line, NULL, 10));
		found++;
		if (pidfd >= 0)
			dying[waiting++] = (struct pollfd){.fd = pidfd, .events = POLLIN};
	}
	fclose(file);
	for (int i = 0; i < waiting; i++) {
		poll(&dying[i], 1, time_left_ms(deadline_ns));
		close(dying[i].fd);
	}
	return found;
}

static int kill_legacy(int group, int64_t deadline_ns, int *survivors)
{
	fd_write_text(group, "pids.max", "0");
	for (;;) {
		int found = kill_round(group, deadline_ns);
		if (found <= 0)
			return found;
		*survivors += found;
		if (time_left_ms(deadline_ns) == 0)
			return -ETIMEDOUT;
	}
}

static int count_members(int top, const char *leaf)
{
	char line[32];
	int count = 0;
	FD_AUTO int group = openat(top, leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = group < 0 ? -1 : openat(group, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		count++;
	fclose(file);
	return count;
}

static bool populated(int top)
{
	char text[256];
	return fd_read_text(top, "cgroup.events", text, sizeof(text)) >= 0 && strstr(text, "populated 1");
}

/* Kills a v2 tree. cgroup.events' notification lags behind the truth (facts), so it is read with a growing pause. */
static int kill_unified(int top, int64_t deadline_ns, int *survivors)
{
	int pause_ms = BACKOFF_FIRST_MS;
	if (!populated(top))
		return 0;
	*survivors += count_members(top, "guest");
	int rc = fd_write_text(top, "cgroup.kill", "1");
	if (rc < 0)
		return rc;
	(void)FAULT("linux.group_killed");
	while (populated(top)) {
		int left = time_left_ms(deadline_ns);
		if (left == 0)
			return -ETIMEDOUT;
		poll(NULL, 0, pause_ms < left ? pause_ms : left);
		pause_ms = pause_ms < BACKOFF_MAX_MS ? pause_ms * 2 : BACKOFF_MAX_MS;
	}
	return 0;
}

/* rmdir answers EBUSY for a moment after the last member died. */
static int remove_group(int at, const char *name, int64_t deadline_ns)
{
	int pause_ms = BACKOFF_FIRST_MS;
	while (unlinkat(at, name, AT_REMOVEDIR) != 0) {
		int left = time_left_ms(deadline_ns);
		if (errno == ENOENT)
			return 0;
		if (errno != EBUSY || left == 0)
			return -errno;
		poll(NULL, 0, pause_ms < left ? pause_ms : left);
		pause_ms = pause_ms < BACKOFF_MAX_MS ? pause_ms * 2 : BACKOFF_MAX_MS;
	}
	return 0;
}

static int destroy_in(int parent, const char *name, bool unified, int64_t deadline_ns, int *survivors)
{
	FD_AUTO int group = fd_open_beneath(parent, name, O_RDONLY | O_DIRECTORY, 0);
	if (group == -ENOENT)
		return 0;
	if (group < 0)
		return group;
	int rc = unified ? kill_unified(group, deadline_ns, survivors) : kill_legacy(group, deadline_ns, survivors);
	(void)FAULT("linux.group_emptied");
	if (rc == 0 && unified && ((rc = remove_group(group, "guest", deadline_ns)) < 0 ||
	                           (rc = remove_group(group, "init", deadline_ns)) < 0))
		return rc;
	return rc < 0 ? rc : remove_group(parent, name, deadline_ns);
}

void cgroups_remove_guest(const struct cgroups *groups)
{
	struct cgroup_mounts list = cgroups_list_mounts(groups->host);
	if (groups->top >= 0)
		unlinkat(groups->top, "guest", AT_REMOVEDIR);
	for (int i = 0; i < list.count; i++) {
		char path[CGROUP_PATH_MAX + CGROUP_NAME_MAX];
		snprintf(path, sizeof(path), "%s/%s/%s", list.mounts[i], groups->place->parent, groups->name);
		rmdir(path); /* the v2 one still has init's */
	}
}

int cgroups_destroy(const struct host *host, const char *parent, const char *name, int64_t deadline_ns, int *survivors, struct err *err)
{
	struct cgroup_mounts list = cgroups_list_mounts(host);
	for (int i = 0; i < list.count; i++) {
		FD_AUTO int dir = open_parent(list.mounts[i], parent);
		if (dir == -ENOENT)
			continue;
		bool unified = host->unified && strcmp(list.mounts[i], host->unified_mount) == 0;
		int rc = dir < 0 ? dir : destroy_in(dir, name, unified, deadline_ns, survivors);
		if (rc == -ETIMEDOUT || rc == -EBUSY)
			return err_set(err, ERR_TIMEOUT, "cgroup %s/%s/%s still has members", list.mounts[i], parent, name);
		if (rc < 0)
			return err_sys(err, -rc, "cgroup %s/%s/%s", list.mounts[i], parent, name);
	}
	return 0;
}

int cgroups_verify_absent(const struct host *host, const char *parent, const char *name, struct err *err)
{
	struct cgroup_mounts list = cgroups_list_mounts(host);
	for (int i = 0; i < list.count; i++) {
		char path[CGROUP_PATH_MAX + CGROUP_NAME_MAX];
		struct stat status;
		snprintf(path, sizeof(path), "%s/%s/%s", list.mounts[i], parent, name);
		if (lstat(path, &status) == 0)
			return err_set(err, ERR_UNVERIFIED, "cgroup %s is still there", path);
		if (errno != ENOENT)
			return err_sys(err, errno, "cgroup %s", path);
	}
	return 0;
}
