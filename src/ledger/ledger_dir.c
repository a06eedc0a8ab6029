/* ledger_dir.c - the directory that is a ledger: made, found fit, opened. */
#include "ledger/ledger_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/fd.h"

/* Not in linux/magic.h of every kernel that we build against. */
#define MAGIC_CIFS 0xff534d42u
#define MAGIC_SMB2 0xfe534d42u
#define MAGIC_FUSE 0x65735546u
#define MAGIC_CEPH 0x00c36400u
#define MAGIC_9P 0x01021997u
#define MAGIC_GFS2 0x01161970u
#define MAGIC_OCFS2 0x7461636fu

/* Why SQLite's locks and shared memory cannot be trusted there. NULL: they can. */
static const char *unfit(const struct statfs *fs)
{
	switch ((unsigned int)fs->f_type) {
	case NFS_SUPER_MAGIC:
		return "NFS";
	case SMB_SUPER_MAGIC:
	case MAGIC_CIFS:
	case MAGIC_SMB2:
		return "an SMB share";
	case AFS_SUPER_MAGIC:
		return "AFS";
	case CODA_SUPER_MAGIC:
		return "Coda";
	case MAGIC_CEPH:
		return "CephFS";
	case MAGIC_9P:
		return "9p";
	case MAGIC_GFS2:
	case MAGIC_OCFS2:
		return "a cluster file system";
	case MAGIC_FUSE:
		return "FUSE";
	case OVERLAYFS_SUPER_MAGIC:
		return "overlay";
	default:
		return NULL;
	}
}

/* Makes the directory and what is missing above it. A component that somebody else makes meanwhile is as good as ours: what counts
 * is checked on the descriptor. */
static int make_path(const char *path, struct err *err)
{
	char part[PATH_MAX];
	size_t length = strlen(path);

	if (length == 0 || length >= sizeof part)
		return err_set(err, ERR_INVALID, "a ledger's path has 1 to %d bytes", PATH_MAX - 1);
	memcpy(part, path, length + 1);
	for (size_t i = 1; i <= length; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return err_sys(err, errno, "cannot make directory %s", part);
		part[i] = path[i];
	}
	return 0;
}

static int check_owner(int dir, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return err_sys(err, errno, "cannot look at ledger directory %s", path);
	if (st.st_uid != geteuid())
		return err_set(err, ERR_PERMISSION, "ledger directory %s belongs to uid %u, not to uid %u", path, st.st_uid,
		               geteuid());
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_set(err, ERR_PERMISSION, "ledger directory %s can be written by other users (mode %04o)", path,
		               st.st_mode & 07777);
	return 0;
}

static int check_file_system(int dir, const char *path, bool *ret_volatile, struct err *err)
{
	struct statfs fs;
	const char *name;

	if (fstatfs(dir, &fs) < 0)
		return err_sys(err, errno, "cannot look at the file system of %s", path);
	name = unfit(&fs);
	if (name)
		return err_set(err, ERR_UNSUPPORTED, "ledger directory %s is on %s, where locks cannot be trusted", path,
		               name);
	if (ret_volatile)
		*ret_volatile = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
	return 0;
}

int ledger_dir_open(const char *path, bool create, int *ret_dir, bool *ret_volatile, struct err *err)
{
	FD_AUTO int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (dir < 0 && errno == ENOENT && create) {
		r = make_path(path, err);
		if (r < 0)
			return r;
		dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (dir < 0)
		return err_sys(err, errno, "cannot open ledger directory %s", path);
	r = check_owner(dir, path, err);
	if (r == 0)
		r = check_file_system(dir, path, ret_volatile, err);
	if (r == 0)
		*ret_dir = fd_take(&dir);
	return r;
}
