/* fd.c - descriptors: scope cleanup, whole reads and writes, and opening only what we mean. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
enum {
	READ_CHUNK_BYTES = 16 * 1024,
	OPEN_TRIES_MAX = 32, /* openat2 says EAGAIN when a rename elsewhere raced with its walk */
	NUMBER_TEXT_SIZE = 32,
};

void fd_close(int *fd)
{
	if (*fd < 0)
		return;
	int saved = errno;
	close(*fd);
	errno = saved;
	*fd = -1;
}

int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

int fd_write_all(int fd, const void *bytes, size_t count)
{
	const char *at = bytes;
	int fault = FAULT("fd.write");

	if (fault < 0)
		return fault == ERR_NO_SPACE ? -ENOSPC : -EIO;
	while (count > 0) {
		ssize_t n = write(fd, at, count);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		at += n;
		count -= (size_t)n;
	}
	return 0;
}

ssize_t fd_read_full(int fd, void *bytes, size_t count)
{
	size_t done = 0;

	while (done < count) {
		ssize_t n = read(fd, (char *)bytes + done, count - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

ssize_t fd_pread_full(int fd, void *bytes, size_t count, off_t offset)
{
	size_t done = 0;

	while (done < count) {
		ssize_t n = pread(fd, (char *)bytes + done, count - done, offset + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int fd_read_rest(int fd, struct buf *buf, struct err *err)
{
	char chunk[READ_CHUNK_BYTES];

	for (;;) {
		ssize_t n = fd_read_full(fd, chunk, sizeof chunk);
		if (n < 0)
			return err_sys(err, (int)-n, "read");
		int r = buf_append(buf, chunk, (size_t)n, err);
		if (r < 0)
			return r;
		if ((size_t)n < sizeof chunk)
			return 0;
	}
}

int fd_open_beneath(int dir, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned)flags | O_CLOEXEC,
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	for (int i = 0; i < OPEN_TRIES_MAX; i++) {
		long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

ssize_t fd_read_text(int at, const char *path, char *text, size_t size)
{
	FD_AUTO int fd = openat(at, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Until EOF, because one read of a kernel file may stop at a page. */
	ssize_t n = fd_read_full(fd, text, size);
	if (n < 0)
		return n;
	if ((size_t)n == size)
		return -EFBIG;
	if (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	return n;
}

int fd_write_text(int at, const char *path, const char *text)
{
	FD_AUTO int fd = openat(at, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	size_t length = strlen(text);
	ssize_t n;
	do
		n = write(fd, text, length);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == length ? 0 : -EIO;
}

static int parse_number(const char *text, int64_t *ret)
{
	bool negative = *text == '-';
	int64_t value = 0;

	text += negative;
	if (*text == '\0')
		return -EINVAL;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *text - '0', &value))
			return -ERANGE;
	}
	*ret = negative ? -value : value;
	return 0;
}

int fd_read_number(int at, const char *path, int64_t *ret)
{
	char text[NUMBER_TEXT_SIZE];
	ssize_t length = fd_read_text(at, path, text, sizeof text);

	if (length == -EFBIG)
		return -EINVAL;
	if (length < 0)
		return (int)length;
	if (strcmp(text, "max") == 0) {
		*ret = INT64_MAX;
		return 0;
	}
	/* A NUL inside would hide what stands behind it. */
	if (strlen(text) != (size_t)length)
		return -EINVAL;
	return parse_number(text, ret);
}

int fd_open_private_dir(const char *path, struct err *err)
{
	struct stat status;

	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return err_sys(err, errno, "%s", path);
	FD_AUTO int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &status) != 0)
		return err_sys(err, errno, "%s", path);
	if (status.st_uid != geteuid() || (status.st_mode & 0077) != 0)
		return err_set(err, ERR_PERMISSION, "%s: must be ours and closed to others", path);
	return fd_take(&dir);
}
