/* fd.h - descriptors: scope cleanup, whole reads and writes, and opening only what we mean. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

/* Closes *fd if it is >= 0 and sets it to -1. Keeps errno. */
void fd_close(int *fd);
#define FD_AUTO __attribute__((cleanup(fd_close)))

/* Moves a descriptor out of its variable: returns *fd and leaves -1 behind. */
int fd_take(int *fd);

/* Writes all bytes; EINTR and short writes handled. 0, or -errno with nothing said about how much was written. */
int fd_write_all(int fd, const void *bytes, size_t count);

/* Reads until count bytes or EOF. The number read, or -errno. */
ssize_t fd_read_full(int fd, void *bytes, size_t count);
ssize_t fd_pread_full(int fd, void *bytes, size_t count, off_t offset);

/* Appends the rest of the file to buf; ERR_LIMIT when it does not fit. */
int fd_read_rest(int fd, struct buf *buf, struct err *err);

/* openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS and O_CLOEXEC: for every path under our control.
 * The descriptor, or -errno. */
int fd_open_beneath(int dir, const char *path, int flags, mode_t mode);

/* A directory for us alone, whose last component is made if need be: where somebody else could lock or place a file, he could keep us from
 * what we do. The descriptor; ERR_PERMISSION when it is not ours, or open to others. */
int fd_open_private_dir(const char *path, struct err *err);

/* Small kernel files (cgroup, /proc): open, one read or one write, close. `at` is a directory descriptor or AT_FDCWD.
 * fd_read_text NUL-terminates and cuts one trailing newline; the length, or -errno (-EFBIG when it does not fit).
 * fd_write_text returns 0 or -errno; a short write is -EIO. */
ssize_t fd_read_text(int at, const char *path, char *text, size_t size);
int fd_write_text(int at, const char *path, const char *text);

/* Reads a file that holds one decimal number ("max" gives INT64_MAX). 0 or -errno (-EINVAL when it is none). */
int fd_read_number(int at, const char *path, int64_t *ret);
