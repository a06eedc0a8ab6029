/* ids.c - picks and locks a range of user ids, and maps two of them. */
#include "boundary/linux/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define RUN_DIR "/run/caisson"

enum { SUBID_MAX_BYTES = 256 * 1024 };

/* Only root may name or hold ranges: a file that somebody else can lock would let them keep us from starting. */
static int open_lock_file(struct err *err)
{
	struct stat status;
	if (mkdir(RUN_DIR, 0700) != 0 && errno != EEXIST)
		return err_sys(err, errno, "%s", RUN_DIR);
	FD_AUTO int dir = open(RUN_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &status) != 0)
		return err_sys(err, errno, "%s", RUN_DIR);
	if (status.st_uid != geteuid() || (status.st_mode & 0077) != 0)
		return err_set(err, ERR_PERMISSION, "%s: must be ours and closed to others", RUN_DIR);
	int fd = openat(dir, "ids", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? err_sys(err, errno, "%s/ids", RUN_DIR) : fd;
}

/* "name:first:count" lines of subuid(5) and subgid(5). */
static bool overlaps(const char *text, uint32_t first)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		uint64_t given, count;
		const char *colon = strchr(line, ':');
		if (colon && sscanf(colon, ":%" SCNu64 ":%" SCNu64, &given, &count) == 2 && given < (uint64_t)first + IDS_RANGE_SIZE &&
		    first < given + count)
			return true;
	}
	return false;
}

static int read_given(struct buf *text, struct err *err)
{
	static const char *const files[] = {"/etc/subuid", "/etc/subgid"};
	for (size_t i = 0; i < 2; i++) {
		FD_AUTO int fd = open(files[i], O_RDONLY | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			continue;
		int rc = fd < 0 ? err_sys(err, errno, "%s", files[i]) : fd_read_rest(fd, text, err);
		if (rc == 0)
			rc = buf_puts(text, "\n", err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static bool lock_range(int fd, uint32_t index)
{
	struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = index, .l_len = 1};
	return fcntl(fd, F_OFD_SETLK, &range) == 0;
}

int ids_acquire(uint32_t start, struct ids *ret, struct err *err)
{
	BUF_AUTO struct buf given = BUF_INIT(SUBID_MAX_BYTES);
	int rc = read_given(&given, err);
	if (rc < 0)
		return rc;
	FD_AUTO int fd = open_lock_file(err);
	if (fd < 0)
		return fd;
	for (uint32_t i = 0; i < IDS_RANGES; i++) {
		uint32_t index = (start + i) % IDS_RANGES, first = IDS_FIRST + index * IDS_RANGE_SIZE;
		if (overlaps(given.data, first) || !lock_range(fd, index))
			continue;
		ret->base = first;
		ret->lock = fd_take(&fd);
		return 0;
	}
	return err_set(err, ERR_BUSY, "all %d ranges of user ids are in use", IDS_RANGES);
}

void ids_release(struct ids *ids)
{
	fd_close(&ids->lock);
}

int ids_write_maps(const struct ids *ids, int pid, struct err *err)
{
	static const char *const names[] = {"uid_map", "gid_map"};
	char map[96];
	snprintf(map, sizeof(map), "%d %" PRIu32 " 1\n%d %" PRIu32 " 1\n", IDS_INIT, ids->base + IDS_INIT, IDS_GUEST, ids->base + IDS_GUEST);
	for (int i = 0; i < 2; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, names[i]);
		int rc = fd_write_text(AT_FDCWD, path, map);
		if (rc < 0)
			return err_sys(err, -rc, "%s", path);
	}
	return 0;
}
