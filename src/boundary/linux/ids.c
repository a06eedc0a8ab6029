/* ids.c - finds, picks and locks user ids, and maps them. */
#include "boundary/linux/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum {
	TABLE_MAX_BYTES = 4 * 1024 * 1024,
	USER_NAME_MAX = 256,
	IDS_OF_ONE = 2, /* subordinate: init and guest of one boundary */
};

/* ---- the tables in /etc ---- */

/* Appends the file; an absent one has no lines. */
static int read_table(const char *path, struct buf *text, struct err *err)
{
	FD_AUTO int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return buf_puts(text, "\n", err);
	int rc = fd < 0 ? err_sys(err, errno, "%s", path) : fd_read_rest(fd, text, err);
	return rc < 0 ? rc : buf_puts(text, "\n", err);
}

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');
	return end && end[1] ? end + 1 : NULL;
}

/* "name:first:count" of subuid(5) and subgid(5). */
static bool read_range(const char *line, uint64_t *ret_first, uint64_t *ret_count)
{
	size_t name = strcspn(line, ":\n");
	return line[name] == ':' && sscanf(line + name, ":%" SCNu64 ":%" SCNu64, ret_first, ret_count) == 2;
}

static bool overlaps(const char *text, uint32_t first)
{
	for (const char *line = text; line; line = next_line(line)) {
		uint64_t given, count;
		if (read_range(line, &given, &count) && given < (uint64_t)first + IDS_RANGE_SIZE && first < given + count)
			return true;
	}
	return false;
}

/* The user's name as /etc/passwd has it: "name:x:uid:…". */
static bool find_name(const char *passwd, uint32_t uid, char ret[static USER_NAME_MAX])
{
	for (const char *line = passwd; line; line = next_line(line)) {
		size_t name = strcspn(line, ":\n");
		const char *password = line[name] == ':' ? line + name + 1 : NULL, *number = password ? strchr(password, ':') : NULL;
		if (!number || name == 0 || name >= USER_NAME_MAX || strtoul(number + 1, NULL, 10) != uid)
			continue;
		memcpy(ret, line, name);
		ret[name] = '\0';
		return true;
	}
	return false;
}

/* The largest range that the table gives to the name or the number. */
static bool find_range(const char *table, const char *name, const char *number, uint32_t *ret_first, uint32_t *ret_count)
{
	uint64_t best = 0;
	for (const char *line = table; line; line = next_line(line)) {
		uint64_t first, count;
		size_t length = strcspn(line, ":\n");
		bool ours = (strlen(name) == length && memcmp(line, name, length) == 0) ||
		            (strlen(number) == length && memcmp(line, number, length) == 0);
		if (!ours || !read_range(line, &first, &count) || first == 0 || count <= best || first + count > UINT32_MAX)
			continue;
		*ret_first = (uint32_t)first;
		best = count;
	}
	*ret_count = (uint32_t)best;
	return best >= IDS_OF_ONE;
}

static int find_subordinate(struct ids_source *source, bool *ret_found, struct err *err)
{
	BUF_AUTO struct buf passwd = BUF_INIT(TABLE_MAX_BYTES), uids = BUF_INIT(TABLE_MAX_BYTES), gids = BUF_INIT(TABLE_MAX_BYTES);
	char name[USER_NAME_MAX] = "", number[16];
	uint32_t uid_count, gid_count;
	int rc = read_table("/etc/passwd", &passwd, err);
	if (rc == 0)
		rc = read_table("/etc/subuid", &uids, err);
	if (rc == 0)
		rc = read_table("/etc/subgid", &gids, err);
	if (rc < 0)
		return rc;
	snprintf(number, sizeof(number), "%" PRIu32, source->uid);
	find_name(passwd.data, source->uid, name);
	*ret_found = find_range(uids.data, name, number, &source->first_uid, &uid_count) &&
	             find_range(gids.data, name, number, &source->first_gid, &gid_count);
	if (*ret_found)
		source->count = uid_count < gid_count ? uid_count : gid_count;
	return 0;
}

int ids_find_source(struct ids_source *ret, struct err *err)
{
	struct ids_source source = {.kind = IDS_RANGES_OF_ROOT, .uid = geteuid(), .gid = getegid()};
	bool found = false;
	if (source.uid == 0) {
		source.first_uid = source.first_gid = IDS_FIRST;
		*ret = source;
		return 0;
	}
	source.kind = IDS_CALLERS_OWN;
	if (access(IDS_UID_HELPER, X_OK) == 0 && access(IDS_GID_HELPER, X_OK) == 0) {
		int rc = find_subordinate(&source, &found, err);
		if (rc < 0)
			return rc;
	}
	if (found)
		source.kind = IDS_SUBORDINATE;
	*ret = source;
	return 0;
}

/* ---- locks ---- */

static int open_lock_file(const char *dir_path, struct err *err)
{
	FD_AUTO int dir = fd_open_private_dir(dir_path, err);
	if (dir < 0)
		return dir;
	int fd = openat(dir, "ids", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? err_sys(err, errno, "%s/ids", dir_path) : fd;
}

static bool lock_byte(int fd, uint32_t index)
{
	struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = index, .l_len = 1};
	return fcntl(fd, F_OFD_SETLK, &range) == 0;
}

static struct ids ids_at(const struct ids_source *source, uint32_t index)
{
	bool range = source->kind == IDS_RANGES_OF_ROOT;
	uint32_t step = range ? IDS_RANGE_SIZE : IDS_OF_ONE, guest = range ? IDS_GUEST : 1;
	uint32_t uid = source->first_uid + index * step, gid = source->first_gid + index * step;
	return (struct ids){.lock = -1, .init_uid = uid, .init_gid = gid, .guest_uid = uid + guest, .guest_gid = gid + guest};
}

/* A range of root's that is given away to somebody cannot be used. */
static int pick(const struct ids_source *source, int fd, uint32_t start, struct ids *ret, struct err *err)
{
	BUF_AUTO struct buf given = BUF_INIT(2 * TABLE_MAX_BYTES);
	uint32_t pairs = source->count / IDS_OF_ONE, count = IDS_RANGES;
	int rc = 0;
	if (source->kind == IDS_SUBORDINATE && pairs < count)
		count = pairs;
	if (source->kind == IDS_RANGES_OF_ROOT && (rc = read_table("/etc/subuid", &given, err)) == 0)
		rc = read_table("/etc/subgid", &given, err);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		uint32_t index = (start + i) % count;
		struct ids ids = ids_at(source, index);
		if ((given.data && overlaps(given.data, ids.init_uid)) || !lock_byte(fd, index))
			continue;
		*ret = ids;
		return 0;
	}
	return rc < 0 ? rc : err_set(err, ERR_BUSY, "all %" PRIu32 " ranges of user ids are in use", count);
}

int ids_acquire(const struct ids_source *source, const char *dir, uint32_t start, struct ids *ret, struct err *err)
{
	if (source->kind == IDS_CALLERS_OWN) {
		*ret = (struct ids){.lock = -1, .init_uid = source->uid, .init_gid = source->gid, .guest_uid = source->uid,
		                    .guest_gid = source->gid};
		return 0;
	}
	FD_AUTO int fd = open_lock_file(dir, err);
	if (fd < 0)
		return fd;
	int rc = pick(source, fd, start, ret, err);
	if (rc == 0)
		ret->lock = fd_take(&fd);
	return rc;
}

void ids_release(struct ids *ids)
{
	fd_close(&ids->lock);
}

/* ---- maps ---- */

static int write_map(int pid, const char *name, uint32_t init, uint32_t guest, struct err *err)
{
	char path[64], map[96];
	if (init == guest)
		snprintf(map, sizeof(map), "%d %" PRIu32 " 1\n", IDS_GUEST, guest);
	else
		snprintf(map, sizeof(map), "%d %" PRIu32 " 1\n%d %" PRIu32 " 1\n", IDS_INIT, init, IDS_GUEST, guest);
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	int rc = fd_write_text(AT_FDCWD, path, map);
	return rc < 0 ? err_sys(err, -rc, "%s", path) : 0;
}

int ids_write_maps(const struct ids *ids, int pid, struct err *err)
{
	int rc = write_map(pid, "uid_map", ids->init_uid, ids->guest_uid, err);
	return rc < 0 ? rc : write_map(pid, "gid_map", ids->init_gid, ids->guest_gid, err);
}
