/* place.c - H73, H74, H78, H82, H83: what a program does to the places that it was given, `place HOW`.
 *
 * closed: directories and files of no mode, an immutable one. mounts: over its own places. inputs: changes what it may only read.
 * mapped: a daemon writes /out/mapped through a mapping. quota: fills all its space and every inode, `quota stay` and stays. */
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "probe.h"

enum { MAPPED_BYTES = 1 << 20 };

static const char *const input = "/box/input";

static void make_closed(void)
{
	int fd, flags = FS_IMMUTABLE_FL, appends = FS_APPEND_FL;

	if (mkdir("/box/closed", 0700) != 0 || mkdir("/box/closed/inner", 0700) != 0 || mkdir("/out/closed", 0700) != 0)
		die("mkdir");
	fd = open("/box/closed/inner/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		die("open");
	PROBE("immutable", ioctl(fd, FS_IOC_SETFLAGS, &flags));
	PROBE("append_only", ioctl(fd, FS_IOC_SETFLAGS, &appends));
	PROBE("close.file", fchmod(fd, 0));
	PROBE("close.inner", chmod("/box/closed/inner", 0));
	PROBE("close.outer", chmod("/box/closed", 0));
	PROBE("close.out", chmod("/out/closed", 0));
}

static void try_mounts(void)
{
	PROBE("tmpfs.box", mount("none", "/box", "tmpfs", 0, NULL));
	PROBE("tmpfs.out", mount("none", "/out", "tmpfs", 0, NULL));
	PROBE("bind.etc", mount("/etc", "/out", NULL, MS_BIND, NULL));
	PROBE("bind.file", mount("/etc/passwd", input, NULL, MS_BIND, NULL));
	PROBE("move", mount("/out", "/box", NULL, MS_MOVE, NULL));
	PROBE("shared", mount(NULL, "/", NULL, MS_SHARED | MS_REC, NULL));
	PROBE("umount.box", umount2("/box", MNT_DETACH));
	PROBE("umount.out", umount2("/out", MNT_DETACH));
	PROBE("umount.input", umount2(input, 0));
}

static void change_input(void)
{
	PROBE("write", open(input, O_WRONLY | O_CLOEXEC));
	PROBE("append", open(input, O_WRONLY | O_APPEND | O_CLOEXEC));
	PROBE("open.truncate", open(input, O_RDONLY | O_TRUNC | O_CLOEXEC));
	PROBE("truncate", truncate(input, 0));
	PROBE("chmod", chmod(input, 0777));
	PROBE("chown", chown(input, 1000, 1000));
	PROBE("utimes", utimensat(AT_FDCWD, input, NULL, 0));
	PROBE("setxattr", setxattr(input, "user.x", "y", 1, 0));
	PROBE("unlink", unlink(input));
	PROBE("rename.away", rename(input, "/box/elsewhere"));
	PROBE("rename.over", rename("/box/prog", input));
	PROBE("link", link(input, "/box/second"));
	PROBE("remount", mount(NULL, input, NULL, MS_REMOUNT | MS_BIND, NULL));
	PROBE("by.descriptor", open("/proc/self/fd/9", O_RDWR | O_CLOEXEC));
}

static void write_by_mapping(void)
{
	int ready[2], fd = open("/out/mapped", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char byte, *bytes;

	if (fd < 0 || ftruncate(fd, MAPPED_BYTES) != 0 || pipe(ready) != 0)
		die("/out/mapped");
	bytes = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		die("mmap");
	if (fork() == 0) {
		setsid();
		for (int i = 0; i <= 2; i++)
			close(i);
		for (unsigned turn = 0;; turn++) {
			memset(bytes, 'a' + (int)(turn % 26), MAPPED_BYTES);
			if (turn == 0 && write(ready[1], "", 1) != 1)
				_exit(1);
		}
	}
	if (read(ready[0], &byte, 1) != 1)
		die("read");
}

static void fill_quota(const char *name, const char *place)
{
	static char block[1 << 20];
	char path[64];
	long files = 0;
	int fd = 0;

	snprintf(path, sizeof(path), "%s/big", place);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ssize_t n = fd;
	while (n >= 0)
		n = write(fd, block, sizeof(block));
	snprintf(path, sizeof(path), "%s.bytes", name);
	report(path, n);
	while (fd >= 0) {
		close(fd);
		snprintf(path, sizeof(path), "%s/%ld", place, files++);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	}
	snprintf(path, sizeof(path), "%s.inodes", name);
	report(path, fd);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "quota";

	if (strcmp(how, "closed") == 0)
		make_closed();
	else if (strcmp(how, "mounts") == 0)
		try_mounts();
	else if (strcmp(how, "inputs") == 0) {
		if (dup2(open(input, O_RDONLY), 9) != 9)
			die(input);
		change_input();
	} else if (strcmp(how, "mapped") == 0)
		write_by_mapping();
	else {
		fill_quota("box", "/box");
		fill_quota("out", "/out");
		if (argc > 2)
			printf("full\n");
		fflush(stdout);
		while (argc > 2)
			pause();
	}
	return 0;
}
