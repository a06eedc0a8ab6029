/* scratch.c - makes the work space on disk, and finds its loop device.
 *
 * ext4 without a journal: nothing in it outlives the run. The image's blocks are taken when it is made (a sparse one would fail a guest's
 * write-back when the disk is full, where nobody hears of it). Loop devices are told apart by sysfs first, so that those of others are not
 * even opened. See loop(4), fsopen(2), mke2fs(8). */
#include "boundary/linux/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "boundary/linux/cgroup.h"
#include "boundary/linux/mkfs.h"

#define LOOP_CONTROL "/dev/loop-control"
#define SYS_BLOCK "/sys/block"
#define DELETED " (deleted)"
#define SHUTDOWN_IOCTL _IOR('X', 125, uint32_t) /* EXT4_IOC_SHUTDOWN, in no header of user space */

enum {
	LOOP_PATH_MAX = 32, LOOP_TRIES = 32,
	SHUTDOWN_WITHOUT_FLUSH = 2, /* EXT4_GOING_FLAGS_NOLOGFLUSH */
	BACKOFF_FIRST_MS = 1, BACKOFF_MAX_MS = 64,
	BACKING_PATH_MAX = 4096,
};

_Static_assert(CGROUP_NAME_MAX <= LO_NAME_SIZE, "a loop device has room for the boundary's name");

/* ---- making ---- */

static int make_image(const struct scratch_spec *spec, struct err *err)
{
	struct statfs where;
	FD_AUTO int image = openat(spec->spool, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (image < 0 || fstatfs(image, &where) != 0)
		return err_set(err, ERR_UNENFORCEABLE, "limit.work: no image can be made: %s", strerror(errno));
	if (where.f_type == TMPFS_MAGIC || where.f_type == RAMFS_MAGIC)
		return err_set(err, ERR_UNENFORCEABLE, "limit.work: the ledger's directory is in memory, scratch disk needs one on a disk");
	if (fallocate(image, 0, 0, spec->bytes) != 0)
		return err_set(err, ERR_UNENFORCEABLE, "limit.work: no room for an image of %" PRId64 " bytes: %s", spec->bytes, strerror(errno));
	return fd_take(&image);
}

/* Another process may take the free device first. */
static int attach(const char *name, int image, char path[static LOOP_PATH_MAX], struct err *err)
{
	struct loop_config config = {.fd = (uint32_t)image, .block_size = MKFS_BLOCK_BYTES,
	                             .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO};
	FD_AUTO int control = open(LOOP_CONTROL, O_RDWR | O_CLOEXEC);
	if (control < 0)
		return err_set(err, ERR_UNENFORCEABLE, "limit.work: " LOOP_CONTROL ": %s", strerror(errno));
	snprintf((char *)config.info.lo_file_name, sizeof(config.info.lo_file_name), "%s", name);
	for (int i = 0; i < LOOP_TRIES; i++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);
		if (number < 0)
			return err_set(err, ERR_UNENFORCEABLE, "limit.work: no loop device is free: %s", strerror(errno));
		snprintf(path, LOOP_PATH_MAX, "/dev/loop%d", number);
		FD_AUTO int loop = open(path, O_RDWR | O_CLOEXEC);
		if (loop < 0)
			return err_set(err, ERR_UNENFORCEABLE, "limit.work: %s: %s", path, strerror(errno));
		if (ioctl(loop, LOOP_CONFIGURE, &config) == 0)
			return fd_take(&loop);
		if (errno != EBUSY)
			return err_set(err, ERR_UNENFORCEABLE, "limit.work: %s cannot show the image: %s", path, strerror(errno));
	}
	return err_set(err, ERR_BUSY, "limit.work: each free loop device was taken by another process");
}

/* minixdf: the size that is shown is the whole image's, and can be compared. nobarrier: a guest's fsync is no flush of the host's disk. */
static int mount_loop(const char *path, struct err *err)
{
	static const char *const flags[] = {"noinit_itable", "minixdf", "nobarrier"};
	FD_AUTO int context = fsopen("ext4", FSOPEN_CLOEXEC);
	if (context < 0)
		return err_set(err, ERR_UNENFORCEABLE, "limit.work: ext4: %s", strerror(errno));
	if (fsconfig(context, FSCONFIG_SET_STRING, "source", path, 0) != 0)
		return err_sys(err, errno, "ext4 source");
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (fsconfig(context, FSCONFIG_SET_FLAG, flags[i], NULL, 0) != 0)
			return err_sys(err, errno, "ext4 %s", flags[i]);
	if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
		return err_set(err, ERR_UNENFORCEABLE, "limit.work: %s cannot be mounted: %s", path, strerror(errno));
	int mount = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return mount < 0 ? err_sys(err, errno, "fsmount ext4") : mount;
}

int scratch_make(const struct scratch_spec *spec, struct err *err)
{
	char path[LOOP_PATH_MAX];
	const char *missing = scratch_missing();
	if (missing)
		return err_set(err, ERR_UNENFORCEABLE, "limit.work: scratch disk needs %s", missing);
	FD_AUTO int image = make_image(spec, err);
	int rc = image < 0 ? image : FAULT_ERR("scratch.image", err);
	if (rc < 0 || (rc = mkfs_ext4(image, spec->inodes, err)) < 0 || (rc = FAULT_ERR("scratch.formatted", err)) < 0)
		return rc;
	FD_AUTO int loop = attach(spec->name, image, path, err);
	rc = loop < 0 ? loop : FAULT_ERR("scratch.attached", err);
	FD_AUTO int mount = rc < 0 ? rc : mount_loop(path, err);
	rc = mount < 0 ? mount : FAULT_ERR("scratch.mounted", err);
	return rc < 0 ? rc : fd_take(&mount);
}

void scratch_abandon(int mount)
{
	uint32_t how = SHUTDOWN_WITHOUT_FLUSH;
	FD_AUTO int top = openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top >= 0)
		(void)ioctl(top, SHUTDOWN_IOCTL, &how); /* if it cannot, all is written first, which is only slower */
}

/* ---- finding ---- */

/* A device that goes away while it is looked at. */
static bool is_gone(int error)
{
	return error == ENOENT || error == ENODEV || error == ENXIO;
}

/* Is it one like ours: showing a file without a name, and going by itself? In doubt yes: its name is read then. */
static bool may_be_ours(int block, const char *device)
{
	char file[NAME_MAX], text[BACKING_PATH_MAX];
	int64_t autoclear = 1;
	snprintf(file, sizeof(file), "%.32s/loop/backing_file", device);
	ssize_t length = fd_read_text(block, file, text, sizeof(text)), end = (ssize_t)strlen(DELETED);
	if (length < 0)
		return !is_gone((int)-length);
	if (length < end || strcmp(text + length - end, DELETED) != 0)
		return false;
	snprintf(file, sizeof(file), "%.32s/loop/autoclear", device);
	int rc = fd_read_number(block, file, &autoclear);
	return rc < 0 ? !is_gone(-rc) : autoclear == 1;
}

/* 1, 0 when it is gone by now, or an error: what cannot be read is not absent. */
static int read_name(const char *device, char name[static LO_NAME_SIZE + 1], struct err *err)
{
	char path[LOOP_PATH_MAX];
	struct loop_info64 info;
	snprintf(path, sizeof(path), "/dev/%.24s", device);
	FD_AUTO int loop = open(path, O_RDONLY | O_CLOEXEC);
	if (loop < 0 || ioctl(loop, LOOP_GET_STATUS64, &info) != 0)
		return is_gone(errno) ? 0 : err_sys(err, errno, "%s: whose it is", path);
	memcpy(name, info.lo_file_name, LO_NAME_SIZE);
	name[LO_NAME_SIZE] = '\0';
	return 1;
}

/* Calls visit with the name of each loop device that may be ours; a non-zero result ends the walk and is passed on. */
typedef int (*name_fn)(void *context, const char *name);

static int walk(name_fn visit, void *context, struct err *err)
{
	char name[LO_NAME_SIZE + 1];
	int rc = 0;
	DIR *dir = opendir(SYS_BLOCK);
	if (!dir)
		return errno == ENOENT ? 0 : err_sys(err, errno, SYS_BLOCK);
	for (struct dirent *entry; rc == 0 && (entry = readdir(dir));)
		if (strncmp(entry->d_name, "loop", strlen("loop")) == 0 && may_be_ours(dirfd(dir), entry->d_name) &&
		    (rc = read_name(entry->d_name, name, err)) > 0)
			rc = visit(context, name);
	closedir(dir);
	return rc;
}

static int same_name(void *context, const char *name)
{
	return strcmp(name, context) == 0;
}

/* 1, 0, or an error. */
static int is_there(const char *name, struct err *err)
{
	return walk(same_name, (void *)(uintptr_t)name, err);
}

int scratch_verify_absent(const char *name, struct err *err)
{
	int rc = is_there(name, err);
	return rc > 0 ? err_set(err, ERR_UNVERIFIED, "the loop device of %s is still there", name) : rc;
}

/* The last reference to a mount may end in the kernel's own time, and others (udev) open a device for a moment. */
int scratch_await_absent(const char *name, int64_t deadline_ns, struct err *err)
{
	int pause_ms = BACKOFF_FIRST_MS, rc;
	while ((rc = is_there(name, err)) > 0) {
		if (clock_mono_ns() >= deadline_ns)
			return err_set(err, ERR_TIMEOUT, "the loop device of %s is still there", name);
		poll(NULL, 0, pause_ms);
		pause_ms = pause_ms < BACKOFF_MAX_MS ? pause_ms * 2 : BACKOFF_MAX_MS;
	}
	return rc;
}

struct search {
	const char *ledger_id;
	boundary_found_fn found;
	void *context;
};

static int report(void *context, const char *name)
{
	const struct search *search = context;
	struct boundary_identity identity;
	return cgroups_parse_name(name, search->ledger_id, &identity) ? search->found(search->context, &identity) : 0;
}

int scratch_enumerate(const char *ledger_id, boundary_found_fn found, void *context, struct err *err)
{
	struct search search = {ledger_id, found, context};
	return walk(report, &search, err);
}

const char *scratch_missing(void)
{
	if (geteuid() != 0)
		return "root, who alone may mount a file system of a disk";
	if (!mkfs_path())
		return "mkfs.ext4 (e2fsprogs)";
	return access(LOOP_CONTROL, R_OK | W_OK) == 0 ? NULL : LOOP_CONTROL;
}
