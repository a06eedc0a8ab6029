/* owner.c - the files of living keepers: who holds the flock of its own is alive.
 *
 * A file is only ever removed by a process that holds its lock alone. So whoever gets the lock of a new file looks whether it still
 * has its name, and begins again when a sweep was faster. */
#include "ledger/sqlite/owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"

enum {
	OWNER_PATH_SIZE = ID_SIZE + 8, /* "owners/" and an id */
	OWNER_HOLD_TRIES = 16,
	OWNER_SWEEP_MAX = 1024,
};

static void path_of(const char *owner_id, char ret[static OWNER_PATH_SIZE])
{
	snprintf(ret, OWNER_PATH_SIZE, "owners/%.*s", ID_SIZE - 1, owner_id);
}

static int lock(int fd, int operation)
{
	int r;

	do
		r = flock(fd, operation);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static bool has_name(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/* The directory comes with the first owner. */
static int create(int dir, const char *path)
{
	int fd = fd_open_beneath(dir, path, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd != -ENOENT)
		return fd;
	if (mkdirat(dir, "owners", 0700) < 0 && errno != EEXIST)
		return -errno;
	return fd_open_beneath(dir, path, O_RDWR | O_CREAT | O_EXCL, 0600);
}

int owner_hold(int dir, const char *owner_id, int *ret_fd, struct err *err)
{
	char path[OWNER_PATH_SIZE];

	if (!id_valid("own", owner_id))
		return err_set(err, ERR_INVALID, "not an owner's id");
	path_of(owner_id, path);
	for (int i = 0; i < OWNER_HOLD_TRIES; i++) {
		FD_AUTO int fd = create(dir, path);
		int r;

		if (fd < 0)
			return err_sys(err, -fd, "ledger: cannot make %s", path);
		r = lock(fd, LOCK_EX);
		if (r < 0)
			return err_sys(err, -r, "ledger: cannot lock %s", path);
		if (has_name(fd)) {
			*ret_fd = fd_take(&fd);
			return 0;
		}
	}
	return err_set(err, ERR_BUSY, "ledger: %s is removed again and again", path);
}

void owner_release(int dir, const char *owner_id, int *fd)
{
	char path[OWNER_PATH_SIZE];

	if (*fd < 0)
		return;
	path_of(owner_id, path);
	(void)unlinkat(dir, path, 0);
	fd_close(fd);
}

/* Opens and locks a dead owner's file. -EWOULDBLOCK: it lives; -ENOENT. */
static int lock_of_dead(int dir, const char *path, int operation)
{
	FD_AUTO int fd = fd_open_beneath(dir, path, O_RDONLY | O_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return fd;
	r = lock(fd, operation | LOCK_NB);
	return r < 0 ? r : fd_take(&fd);
}

int owner_is_alive(int dir, const char *owner_id, bool *ret, struct err *err)
{
	FD_AUTO int fd = -1;
	char path[OWNER_PATH_SIZE];

	if (!id_valid("own", owner_id)) { /* somebody has written over it: nobody lives under such a name, and who did is fenced by it */
		*ret = false;
		return 0;
	}
	path_of(owner_id, path);
	/* Shared, so that two who look at once do not take each other for the owner. */
	fd = lock_of_dead(dir, path, LOCK_SH);
	if (fd >= 0 || fd == -ENOENT) {
		*ret = false;
		return 0;
	}
	if (fd != -EWOULDBLOCK)
		return err_sys(err, -fd, "ledger: cannot look at %s", path);
	*ret = true;
	return 0;
}

void owner_sweep(int dir)
{
	FD_AUTO int owners = fd_open_beneath(dir, "owners", O_RDONLY | O_DIRECTORY, 0);
	DIR *list = owners >= 0 ? fdopendir(owners) : NULL;

	if (!list)
		return;
	(void)fd_take(&owners);
	for (int i = 0; i < OWNER_SWEEP_MAX; i++) {
		const struct dirent *entry = readdir(list);
		FD_AUTO int fd = -1;
		char path[OWNER_PATH_SIZE];

		if (!entry)
			break;
		if (!id_valid("own", entry->d_name))
			continue;
		path_of(entry->d_name, path);
		fd = lock_of_dead(dir, path, LOCK_EX);
		if (fd >= 0)
			(void)unlinkat(dir, path, 0);
	}
	closedir(list);
}
