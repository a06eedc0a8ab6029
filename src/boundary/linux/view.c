/* view.c - makes the guest's file systems as detached mounts.
 *
 * The root is a small tmpfs with a skeleton: directories, links, a few files of /etc, the device nodes (a tmpfs made in the host's own
 * user namespace takes real ones). The base is cloned read-only from the host or from --rootfs. Work and output are size- and
 * inode-limited tmpfs, or work an image on disk. See mount_setattr(2), open_tree(2), fsopen(2). */
#include "boundary/linux/view.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <linux/limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "artifact/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "boundary/linux/scratch.h"
#include "boundary/linux/skeleton.h"

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif

enum { DISK_WRITE_BYTES = 1024 * 1024, DISK_FULL_PART = 64 };

void view_init(struct view *view)
{
	*view = (struct view){.work = -1, .out = -1, .bound = geteuid() != 0};
}

void view_close_mounts(struct view *view)
{
	for (size_t i = 0; i < view->count; i++)
		fd_close(&view->mounts[i].fd);
}

void view_done(struct view *view)
{
	view_close_mounts(view);
	for (size_t i = 0; i < view->count; i++)
		free(view->mounts[i].target);
	free(view->mounts);
	fd_close(&view->work);
	fd_close(&view->out);
	view_init(view);
}

/* Takes ownership of fd, also on failure. */
static int add_mount(struct view *view, int fd, const char *target, unsigned flags, struct err *err)
{
	char *copy = strdup(target);
	if (view->count == view->capacity) {
		size_t capacity = view->capacity ? view->capacity * 2 : 32;
		struct view_mount *grown = capacity > VIEW_MAX_MOUNTS * 2 ? NULL : realloc(view->mounts, capacity * sizeof(*grown));
		if (grown) {
			view->mounts = grown;
			view->capacity = capacity;
		}
	}
	if (!copy || view->count == view->capacity || view->count >= VIEW_MAX_MOUNTS) {
		free(copy);
		close(fd);
		return err_set(err, ERR_LIMIT, "too many mounts (at most %d)", VIEW_MAX_MOUNTS);
	}
	view->mounts[view->count++] = (struct view_mount){.fd = fd, .flags = flags, .target = copy};
	return 0;
}

struct tmpfs {
	const char *size, *inodes, *mode;
	uint32_t uid, gid;
};

/* A file system that the guest does not own is ours. */
#define OURS geteuid(), getegid()

static int make_tmpfs(const struct tmpfs *options, unsigned attributes, struct err *err)
{
	char uid[16], gid[16];
	FD_AUTO int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (context < 0)
		return err_sys(err, errno, "fsopen tmpfs");
	snprintf(uid, sizeof(uid), "%" PRIu32, options->uid);
	snprintf(gid, sizeof(gid), "%" PRIu32, options->gid);
	const char *const pairs[][2] = {{"size", options->size}, {"nr_inodes", options->inodes}, {"mode", options->mode},
	                                {"uid", uid}, {"gid", gid}};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (fsconfig(context, FSCONFIG_SET_STRING, pairs[i][0], pairs[i][1], 0) != 0)
			return err_sys(err, errno, "tmpfs %s=%s", pairs[i][0], pairs[i][1]);
	if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
		return err_sys(err, errno, "tmpfs");
	int fd = fsmount(context, FSMOUNT_CLOEXEC, attributes);
	return fd < 0 ? err_sys(err, errno, "fsmount tmpfs") : fd;
}

/* Clones what `source` shows (dir-relative, or the descriptor itself when it is empty), private and with the attributes. */
static int clone_mount(int dir, const char *source, unsigned attributes, struct err *err)
{
	unsigned at = *source ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH;
	FD_AUTO int fd = open_tree(dir, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | at);
	if (fd < 0)
		return err_sys(err, errno, "%s: open_tree", source);
	struct mount_attr change = {.attr_set = attributes, .propagation = MS_PRIVATE};
	if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &change, sizeof(change)) != 0)
		return err_sys(err, errno, "%s: mount_setattr", source);
	return fd_take(&fd);
}

static int add_clone(struct view *view, int dir, const char *source, const char *target, unsigned flags, struct err *err)
{
	bool read_only = (flags & VIEW_READ_ONLY) && !OMITTED("mounts");
	unsigned attributes = MOUNT_ATTR_NOSUID | (read_only ? MOUNT_ATTR_RDONLY : 0) |
	                      (flags & VIEW_NO_EXEC ? MOUNT_ATTR_NOEXEC : 0) | (flags & VIEW_NO_DEVICES ? MOUNT_ATTR_NODEV : 0);
	int fd = clone_mount(dir, source, attributes, err);
	return fd < 0 ? fd : add_mount(view, fd, target, flags, err);
}

/* One entry of the base: a link is copied as a link, a directory or file becomes a read-only mount. An absent one is passed over. */
static int add_base(struct view *view, int root, int skeleton, const char *path, struct err *err)
{
	struct stat status;
	char link[PATH_MAX];
	if (fstatat(root, path, &status, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "base /%s", path);
	if (S_ISLNK(status.st_mode)) {
		ssize_t length = readlinkat(root, path, link, sizeof(link) - 1);
		if (length < 0)
			return err_sys(err, errno, "base /%s", path);
		link[length] = '\0';
		return skeleton_link(skeleton, path, link, err);
	}
	if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
		return 0;
	int rc = skeleton_place(skeleton, path, S_ISDIR(status.st_mode), err);
	if (rc < 0)
		return rc;
	return add_clone(view, root, path, path, VIEW_READ_ONLY | VIEW_NO_DEVICES | VIEW_TREE, err);
}

static int add_pattern(struct view *view, int root, int skeleton, const char *pattern, struct err *err)
{
	glob_t found;
	int rc = 0;
	if (!strchr(pattern, '*'))
		return add_base(view, root, skeleton, pattern + 1, err);
	if (glob(pattern, 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc && rc == 0; i++)
		rc = add_base(view, root, skeleton, found.gl_pathv[i] + 1, err);
	globfree(&found);
	return rc;
}

static int add_host_base(struct view *view, const char *const *base, int skeleton, struct err *err)
{
	static const char *const always[] = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"};
	FD_AUTO int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc = root < 0 ? err_sys(err, errno, "/") : 0;
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]) && rc == 0; i++)
		rc = add_base(view, root, skeleton, always[i], err);
	for (; *base && rc == 0; base++)
		rc = add_pattern(view, root, skeleton, *base, err);
	return rc;
}

static int add_directory_base(struct view *view, const char *path, int skeleton, struct err *err)
{
	FD_AUTO int root = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		return err_sys(err, errno, "rootfs %s", path);
	char **names = NULL;
	int rc = skeleton_list_root(root, &names, err);
	for (size_t i = 0; rc == 0 && names[i]; i++)
		rc = add_base(view, root, skeleton, names[i], err);
	skeleton_free_list(names);
	return rc;
}

/* A writable file system that is bounded. */
struct space {
	const char *line; /* evidence */
	int64_t bytes, inodes;
	uint32_t uid, gid; /* of its top */
};

static int make_space(const struct space *space, struct err *err)
{
	char size[24], inodes[24];
	snprintf(size, sizeof(size), "%" PRId64, OMITTED(space->line) ? 2 * space->bytes : space->bytes);
	snprintf(inodes, sizeof(inodes), "%" PRId64, space->inodes);
	return make_tmpfs(&(struct tmpfs){size, inodes, "0755", space->uid, space->gid}, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}

static int verify_space(int mount, const struct space *space, struct evidence_list *evidence, struct err *err)
{
	struct statfs status;
	if (fstatfs(mount, &status) != 0)
		return err_sys(err, errno, "%s: cannot be read back", space->line);
	int64_t bytes = (int64_t)status.f_blocks * status.f_bsize, inodes = (int64_t)status.f_files;
	if (bytes != space->bytes || inodes != space->inodes)
		return err_set(err, ERR_UNENFORCEABLE,
		               "%s: asked for %" PRId64 " bytes and %" PRId64 " inodes, got %" PRId64 " and %" PRId64, space->line, space->bytes,
		               space->inodes, bytes, inodes);
	return evidence_add(evidence, space->line, EVIDENCE_OBSERVED, err, "%s, %" PRId64 " bytes, %" PRId64 " inodes",
	                    status.f_type == TMPFS_MAGIC ? "tmpfs" : "image on disk", bytes, inodes);
}

static int make_work(const struct view_spec *spec, const struct space *space, struct err *err)
{
	if (spec->plan->limits.scratch == SCRATCH_MEMORY)
		return make_space(space, err);
	int64_t bytes = OMITTED(space->line) ? 2 * space->bytes : space->bytes;
	return scratch_make(&(struct scratch_spec){spec->name, store_dir_fd(spec->store), bytes, space->inodes}, err);
}

static int make_parts(struct view *view, const struct ids *ids, struct err *err)
{
	static const struct { const char *path; mode_t mode; } parts[] = {{"box", 0755}, {"tmp", 01777}, {"dev/shm", 01777}};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		int rc = skeleton_place(view->work, parts[i].path, true, err);
		if (rc < 0)
			return err_context(err, rc, "work space");
		if (fchownat(view->work, parts[i].path, ids->guest_uid, ids->guest_gid, 0) != 0 ||
		    fchmodat(view->work, parts[i].path, parts[i].mode, 0) != 0)
			return err_sys(err, errno, "work space: %s", parts[i].path);
		if ((rc = add_mount(view, -1, parts[i].path, VIEW_NO_DEVICES, err)) < 0)
			return rc;
	}
	return 0;
}

/* The work space is one file system, shown at three places; output is another. Init makes the three of the one: Linux before 6.15 clones
 * no part of a mount that is attached nowhere. */
static int add_work(struct view *view, const struct view_spec *spec, struct evidence_list *evidence, struct err *err)
{
	const struct plan_limits *limits = &spec->plan->limits;
	const struct space space = {"limit.work", limits->work_bytes, limits->work_inodes, OURS};
	struct stat status;
	view->work = make_work(spec, &space, err);
	if (view->work < 0)
		return view->work;
	int rc = verify_space(view->work, &space, evidence, err);
	if (rc < 0)
		return rc;
	if (fstat(view->work, &status) != 0)
		return err_sys(err, errno, "work space");
	view->work_dev = OMITTED("work") ? 0 : status.st_dev;
	return make_parts(view, spec->ids, err);
}

static int add_out(struct view *view, const struct view_spec *spec, struct evidence_list *evidence, struct err *err)
{
	const struct plan_limits *limits = &spec->plan->limits;
	const struct space space = {"limit.out", limits->out_bytes, limits->out_inodes, spec->ids->guest_uid, spec->ids->guest_gid};
	view->out = make_space(&space, err);
	if (view->out < 0)
		return view->out;
	int rc = verify_space(view->out, &space, evidence, err);
	if (rc < 0)
		return rc;
	int fd = fcntl(view->out, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? err_sys(err, errno, "output space") : add_mount(view, fd, "out", VIEW_NO_DEVICES, err);
}

int view_reopen(int fd, struct err *err)
{
	char link[64], path[PATH_MAX];
	struct stat is, should;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	if (length < 0 || fstat(fd, &should) != 0)
		return err_sys(err, errno, "%s", link);
	path[length] = '\0';
	FD_AUTO int again = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (again < 0 || fstat(again, &is) != 0)
		return err_sys(err, errno, "%s", path);
	if (is.st_dev != should.st_dev || is.st_ino != should.st_ino)
		return err_set(err, ERR_DAMAGED, "%s: something else is there now", path);
	return fd_take(&again);
}

int view_open_read_only(int file, struct err *err)
{
	char path[64];
	struct statvfs status;
	FD_AUTO int again = geteuid() != 0 ? view_reopen(file, err) : -1;
	if (geteuid() != 0 && again < 0)
		return again;
	FD_AUTO int mount = clone_mount(again < 0 ? file : again, "", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	if (mount < 0)
		return mount;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", mount);
	FD_AUTO int opened = open(path, O_RDONLY | O_CLOEXEC);
	if (opened < 0 || fstatvfs(opened, &status) != 0)
		return err_sys(err, errno, "%s", path);
	return status.f_flag & ST_RDONLY ? fd_take(&opened) : err_set(err, ERR_UNVERIFIED, "a read-only mount can be written to");
}

/* Sealed inputs lie in the store; a place is made for each in the work space, owned by root so that the guest cannot move it away.
 * A 0444 input is not executable because its mount is noexec: one object serves both modes. */
static int add_input(struct view *view, const struct plan_input *input, struct store *store, struct err *err)
{
	FD_AUTO int object = -1;
	int64_t size;
	bool tree = input->kind == PLAN_INPUT_TREE;
	int rc = tree ? store_get_tree(store, &input->digest, &object, &size, err) :
	                store_get_checked(store, &input->digest, &object, &size, err);
	if (rc < 0)
		return err_context(err, rc, "input %s", input->target);
	if (size != input->size_bytes)
		return err_set(err, ERR_DAMAGED, "input %s: size differs from the plan", input->target);
	if ((rc = skeleton_place(view->work, input->target + 1, tree, err)) < 0)
		return err_context(err, rc, "input %s", input->target);
	unsigned flags = VIEW_READ_ONLY | VIEW_NO_DEVICES | (input->mode & 0111 ? 0 : VIEW_NO_EXEC);
	FD_AUTO int again = view->bound ? view_reopen(object, err) : fd_take(&object);
	return again < 0 ? err_context(err, again, "input %s", input->target) : add_clone(view, again, "", input->target + 1, flags, err);
}

/* Device nodes cannot be made in a user namespace. */
static int bind_devices(struct view *view, int skeleton, struct err *err)
{
	FD_AUTO int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc = root < 0 ? err_sys(err, errno, "/") : 0;
	for (size_t i = 0; i < SKELETON_DEVICES && rc == 0; i++) {
		const char *path = skeleton_device(i);
		rc = skeleton_place(skeleton, path, false, err);
		if (rc == 0)
			rc = add_clone(view, root, path, path, VIEW_READ_ONLY | VIEW_NO_EXEC, err);
	}
	return rc;
}

static int make_root(struct view *view, bool with_etc, struct err *err)
{
	struct stat status;
	int root = make_tmpfs(&(struct tmpfs){"1m", "512", "0755", OURS}, MOUNT_ATTR_NOSUID, err);
	if (root < 0)
		return root;
	int rc = add_mount(view, root, "", VIEW_READ_ONLY, err);
	if (rc < 0)
		return rc;
	if (fstat(root, &status) != 0)
		return err_sys(err, errno, "root");
	view->root_dev = status.st_dev;
	view->root_ino = status.st_ino;
	rc = skeleton_make(root, with_etc, !view->bound, err);
	return rc == 0 && view->bound ? bind_devices(view, root, err) : rc;
}

static int make_root_read_only(struct view *view, struct err *err)
{
	struct mount_attr change = {.attr_set = MOUNT_ATTR_RDONLY};
	return mount_setattr(view->mounts[0].fd, "", AT_EMPTY_PATH, &change, sizeof(change)) == 0 ? 0 : err_sys(err, errno, "root: read-only");
}

int view_make_host_base(struct view *view, const char *const *base, struct err *err)
{
	int rc = make_root(view, true, err);
	if (rc == 0)
		rc = add_host_base(view, base, view->mounts[0].fd, err);
	return rc < 0 ? rc : make_root_read_only(view, err);
}

static int make_base(struct view *view, const struct plan *plan, struct err *err)
{
	if (strcmp(plan->rootfs, "host") == 0)
		return view_make_host_base(view, (const char *const *)plan->base, err);
	int rc = make_root(view, false, err);
	if (rc == 0)
		rc = add_directory_base(view, plan->rootfs, view->mounts[0].fd, err);
	return rc < 0 ? rc : make_root_read_only(view, err);
}

int view_make(struct view *view, const struct view_spec *spec, struct evidence_list *evidence, struct err *err)
{
	const struct plan_unit *unit = &spec->plan->unit;
	int rc = view->count > 0 ? 0 : make_base(view, spec->plan, err);
	if (rc < 0 || (rc = add_work(view, spec, evidence, err)) < 0 || (rc = add_out(view, spec, evidence, err)) < 0)
		return rc;
	for (size_t i = 0; i < unit->input_count && rc == 0; i++)
		rc = add_input(view, &unit->inputs[i], spec->store, err);
	return rc;
}

/* A tmpfs is filled to its last page. ext4 refuses a large write whole, and so is full with less than that left. */
static bool is_full(int fd)
{
	struct statfs status;
	if (fd < 0 || fstatfs(fd, &status) != 0)
		return false;
	uint64_t write = DISK_WRITE_BYTES / (uint64_t)status.f_bsize, part = status.f_blocks / DISK_FULL_PART;
	uint64_t left = status.f_type == TMPFS_MAGIC ? 0 : write < part ? write : part;
	return status.f_bavail <= left || status.f_ffree == 0;
}

bool view_space_full(const struct view *view)
{
	return is_full(view->work) || is_full(view->out);
}
