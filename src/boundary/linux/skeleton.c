/* skeleton.c - directories, links, device nodes and the guest's own /etc. */
#include "boundary/linux/skeleton.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"

enum { ROOT_NAMES_MAX = 64, COMPONENTS_MAX = 64 };

static const char *const directories[] = {"box", "tmp", "out", "proc", "dev", "dev/shm"};

static const struct {
	const char *name;
	unsigned minor;
} devices[SKELETON_DEVICES] = {{"dev/null", 3}, {"dev/zero", 5}, {"dev/full", 7}, {"dev/random", 8}, {"dev/urandom", 9}}; /* major 1: devices.txt */

static const struct {
	const char *path, *target;
} links[] = {
	{"dev/fd", "/proc/self/fd"}, {"dev/stdin", "/proc/self/fd/0"}, {"dev/stdout", "/proc/self/fd/1"}, {"dev/stderr", "/proc/self/fd/2"},
};

static const struct {
	const char *path, *text;
} files[] = {
	{"etc/passwd", "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nguest:x:1000:1000:guest:/box:/bin/sh\n"
	               "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
	{"etc/group", "root:x:0:\nguest:x:1000:\nnogroup:x:65534:\n"},
	{"etc/hosts", "127.0.0.1 localhost caisson\n::1 localhost\n"},
	{"etc/hostname", "caisson\n"},
	{"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
};

static int make_file(int root, const char *path, const char *text, struct err *err)
{
	FD_AUTO int fd = fd_open_beneath(root, path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd < 0)
		return err_sys(err, -fd, "/%s", path);
	int rc = fd_write_all(fd, text, strlen(text));
	return rc < 0 ? err_sys(err, -rc, "/%s", path) : 0;
}

static int make_etc(int root, struct err *err)
{
	if (mkdirat(root, "etc", 0755) != 0)
		return err_sys(err, errno, "/etc");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int rc = make_file(root, files[i].path, files[i].text, err);
		if (rc < 0)
			return rc;
	}
	return skeleton_link(root, "etc/localtime", "/usr/share/zoneinfo/Etc/UTC", err);
}

const char *skeleton_device(size_t index)
{
	return devices[index].name;
}

/* The umask is LINUX_UMASK. */
int skeleton_make(int root, bool with_etc, bool with_nodes, struct err *err)
{
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		if (mkdirat(root, directories[i], 0755) != 0)
			return err_sys(err, errno, "/%s", directories[i]);
	for (size_t i = 0; with_nodes && i < SKELETON_DEVICES; i++)
		if (mknodat(root, devices[i].name, S_IFCHR | 0666, makedev(1, devices[i].minor)) != 0 ||
		    fchmodat(root, devices[i].name, 0666, 0) != 0)
			return err_sys(err, errno, "/%s", devices[i].name);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		int rc = skeleton_link(root, links[i].path, links[i].target, err);
		if (rc < 0)
			return rc;
	}
	return with_etc ? make_etc(root, err) : 0;
}

/* Opens the directory that holds the last component, making what is missing on the way. *ret_name points into path. */
static int open_parent(int root, const char *path, const char **ret_name, struct err *err)
{
	FD_AUTO int dir = fcntl(root, F_DUPFD_CLOEXEC, 0);
	const char *at = path;
	if (dir < 0)
		return err_sys(err, errno, "dup");
	for (int depth = 0; depth < COMPONENTS_MAX; depth++) {
		char name[256];
		const char *slash = strchr(at, '/');
		if (!slash) {
			*ret_name = at;
			return fd_take(&dir);
		}
		size_t length = (size_t)(slash - at);
		if (length == 0 || length >= sizeof(name))
			return err_set(err, ERR_INVALID, "/%s: bad path", path);
		memcpy(name, at, length);
		name[length] = '\0';
		if (mkdirat(dir, name, 0755) != 0 && errno != EEXIST)
			return err_sys(err, errno, "/%s", path);
		int next = fd_open_beneath(dir, name, O_RDONLY | O_DIRECTORY, 0);
		if (next < 0)
			return err_sys(err, -next, "/%s", path);
		close(dir);
		dir = next;
		at = slash + 1;
	}
	return err_set(err, ERR_LIMIT, "/%s: more than %d components", path, COMPONENTS_MAX);
}

int skeleton_place(int root, const char *path, bool directory, struct err *err)
{
	const char *name;
	struct stat status;
	FD_AUTO int dir = open_parent(root, path, &name, err);
	if (dir < 0)
		return dir;
	int rc = directory ? mkdirat(dir, name, 0755) : mknodat(dir, name, S_IFREG | 0644, 0);
	if (rc == 0)
		return 0;
	if (errno != EEXIST || fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
		return err_sys(err, errno, "/%s", path);
	if (directory ? !S_ISDIR(status.st_mode) : !S_ISREG(status.st_mode))
		return err_set(err, ERR_CONFLICT, "/%s: something else is there", path);
	return 0;
}

int skeleton_link(int root, const char *path, const char *target, struct err *err)
{
	const char *name;
	char present[256];
	FD_AUTO int dir = open_parent(root, path, &name, err);
	if (dir < 0)
		return dir;
	if (symlinkat(target, dir, name) == 0)
		return 0;
	int error = errno;
	ssize_t length = error == EEXIST ? readlinkat(dir, name, present, sizeof(present)) : -1;
	if (length == (ssize_t)strlen(target) && memcmp(present, target, (size_t)length) == 0)
		return 0;
	return err_sys(err, error, "/%s", path);
}

static bool ours(const char *name)
{
	static const char *const own[] = {".", "..", "proc", "sys", "dev", "tmp", "box", "out", "run", "lost+found"};
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strcmp(name, own[i]) == 0)
			return true;
	return false;
}

void skeleton_free_list(char **names)
{
	for (size_t i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}

int skeleton_list_root(int root, char ***ret, struct err *err)
{
	char **names = calloc(ROOT_NAMES_MAX + 1, sizeof(*names));
	int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t count = 0;
	if (!names || !dir)
		rc = err_sys(err, errno, "rootfs");
	for (struct dirent *entry; rc == 0 && (entry = readdir(dir));) {
		if (ours(entry->d_name))
			continue;
		if (count == ROOT_NAMES_MAX)
			rc = err_set(err, ERR_LIMIT, "rootfs: more than %d entries at its top", ROOT_NAMES_MAX);
		else if (!(names[count++] = strdup(entry->d_name)))
			rc = err_set(err, ERR_NO_MEMORY, "rootfs");
	}
	if (dir)
		closedir(dir);
	if (rc < 0)
		skeleton_free_list(names);
	else
		*ret = names;
	return rc;
}
