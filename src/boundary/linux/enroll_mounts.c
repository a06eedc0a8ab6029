/* enroll_mounts.c - verifies the guest's view: its root, its mounts exactly as planned, /proc's options, the working directory. */
#include "boundary/linux/linux_boundary.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/fd.h"

enum { GUEST_MOUNTINFO_MAX = 1024 * 1024 };

/* One line of /proc/PID/mountinfo, cut into what matters. */
struct mount_line {
	const char *point, *options, *type, *super;
};

static bool read_line(char *line, struct mount_line *ret)
{
	char *dash = strstr(line, " - "), *save = NULL, *fields[6] = {0};
	if (!dash)
		return false;
	*dash = '\0';
	char *word = strtok_r(line, " ", &save);
	for (int i = 0; i < 6 && word; i++, word = strtok_r(NULL, " ", &save))
		fields[i] = word;
	ret->point = fields[4];
	ret->options = fields[5];
	ret->type = strtok_r(dash + 3, " ", &save);
	strtok_r(NULL, " ", &save); /* the source */
	ret->super = strtok_r(NULL, " ", &save);
	return ret->point && ret->options && ret->type && ret->super;
}

static bool has_option(const char *options, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = options; (at = strstr(at, word)); at += length)
		if ((at == options || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
			return true;
	return false;
}

/* Undoes the octal escapes of mountinfo (\040 and the like) for comparison with a target. */
static bool same_path(const char *shown, const char *target)
{
	if (*shown++ != '/')
		return false;
	while (*shown && *target) {
		char byte = *shown++;
		if (byte == '\\' && shown[0] && shown[1] && shown[2]) {
			byte = (char)((shown[0] - '0') * 64 + (shown[1] - '0') * 8 + (shown[2] - '0'));
			shown += 3;
		}
		if (byte != *target++)
			return false;
	}
	return *shown == *target;
}

static bool below(const char *shown, const char *target)
{
	size_t length = strlen(target);
	return shown[0] == '/' && strncmp(shown + 1, target, length) == 0 && shown[1 + length] == '/';
}

static bool flags_hold(const struct mount_line *line, unsigned flags)
{
	return has_option(line->options, flags & VIEW_READ_ONLY ? "ro" : "rw") && has_option(line->options, "nosuid") &&
	       (!(flags & VIEW_NO_DEVICES) || has_option(line->options, "nodev")) &&
	       (!(flags & VIEW_NO_EXEC) || has_option(line->options, "noexec"));
}

/* Is the line planned? Counts it in `seen`. A mount of the host below a base tree is, if it is as read-only as the tree. */
static bool planned(const struct view *view, const struct mount_line *line, bool *seen)
{
	for (size_t i = 0; i < view->count; i++)
		if (!seen[i] && same_path(line->point, view->mounts[i].target)) {
			seen[i] = flags_hold(line, view->mounts[i].flags);
			return seen[i];
		}
	for (size_t i = 0; i < view->count; i++)
		if ((view->mounts[i].flags & VIEW_TREE) && below(line->point, view->mounts[i].target))
			return flags_hold(line, view->mounts[i].flags);
	return false;
}

static bool proc_holds(const struct mount_line *line)
{
	return has_option(line->options, "nosuid") && has_option(line->options, "nodev") && has_option(line->options, "noexec") &&
	       (has_option(line->super, "hidepid=invisible") || has_option(line->super, "hidepid=2")) &&
	       has_option(line->super, "subset=pid");
}

/* What is wrong with the mounts, or NULL. *ret_proc: /proc was there and as planned. */
static const char *compare(const struct view *view, char *text, bool *seen, bool *ret_proc)
{
	static const char proc_wrong[] = "/proc";
	char *save = NULL;
	*ret_proc = false;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct mount_line mount;
		if (!read_line(line, &mount))
			return "a line that cannot be read";
		if (strcmp(mount.type, "proc") == 0 && strcmp(mount.point, "/proc") == 0) {
			if (*ret_proc || !proc_holds(&mount))
				return proc_wrong;
			*ret_proc = true;
		} else if (!planned(view, &mount, seen)) {
			return mount.point;
		}
	}
	for (size_t i = 0; i < view->count; i++)
		if (!seen[i])
			return view->mounts[i].target;
	return NULL;
}

static int check_mounts(const struct linux_boundary *boundary, int dir, struct evidence_list *evidence, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(GUEST_MOUNTINFO_MAX);
	bool seen[VIEW_MAX_MOUNTS] = {false}, proc;
	FD_AUTO int fd = openat(dir, "mountinfo", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, ERR_UNVERIFIED, "mounts: cannot be read: %s", strerror(errno));
	int rc = fd_read_rest(fd, &text, err);
	if (rc < 0)
		return err_context(err, rc, "mounts");
	const char *wrong = compare(&boundary->view, text.data, seen, &proc);
	if (wrong && strcmp(wrong, "/proc") == 0)
		return err_set(err, ERR_UNVERIFIED, "proc: expected hidepid=2 and subset=pid");
	if (wrong)
		return err_set(err, ERR_UNVERIFIED, "mounts: not as planned: %s", wrong);
	if (!proc)
		return err_set(err, ERR_UNVERIFIED, "proc: not mounted");
	rc = evidence_add(evidence, "mounts", EVIDENCE_OBSERVED, err, "%zu, exactly the planned", boundary->view.count + 1);
	return rc < 0 ? rc : evidence_add(evidence, "proc", EVIDENCE_OBSERVED, err, "hidepid=2, subset=pid");
}

/* By device and inode: a readlink of /proc/PID/root shows "/" for every root. */
static int check_root(const struct linux_boundary *boundary, int dir, struct evidence_list *evidence, struct err *err)
{
	struct stat root;
	if (fstatat(dir, "root/", &root, 0) != 0)
		return err_set(err, ERR_UNVERIFIED, "root: cannot be read: %s", strerror(errno));
	if (root.st_dev != boundary->view.root_dev || root.st_ino != boundary->view.root_ino)
		return err_set(err, ERR_UNVERIFIED, "root: expected the boundary's own, found another");
	return evidence_add(evidence, "root", EVIDENCE_OBSERVED, err, "the boundary's own");
}

static int open_in_root(int root, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* The working directory, seen through main's own root. */
static int check_cwd(const struct linux_boundary *boundary, int dir, struct evidence_list *evidence, struct err *err)
{
	struct stat is, should;
	const char *cwd = boundary->spec.plan->unit.cwd;
	FD_AUTO int root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	FD_AUTO int place = root < 0 ? -1 : open_in_root(root, cwd);
	if (place < 0 || fstat(place, &should) != 0 || fstatat(dir, "cwd/", &is, 0) != 0)
		return err_set(err, ERR_UNVERIFIED, "cwd: %s: %s", cwd, strerror(errno));
	if (is.st_dev != should.st_dev || is.st_ino != should.st_ino)
		return err_set(err, ERR_UNVERIFIED, "cwd: expected %s, found another", cwd);
	return evidence_add(evidence, "cwd", EVIDENCE_OBSERVED, err, "as planned");
}

/* The three places of the work space are of the one file system that was bounded. */
static int check_work(const struct linux_boundary *boundary, int dir, struct evidence_list *evidence, struct err *err)
{
	static const char *const parts[] = {"root/box", "root/tmp", "root/dev/shm"};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct stat status;
		if (fstatat(dir, parts[i], &status, AT_SYMLINK_NOFOLLOW) != 0)
			return err_set(err, ERR_UNVERIFIED, "work: %s cannot be read: %s", parts[i], strerror(errno));
		if (status.st_dev != boundary->view.work_dev)
			return err_set(err, ERR_UNVERIFIED, "work: expected the boundary's own file system at %s, found another", parts[i]);
	}
	return evidence_add(evidence, "work", EVIDENCE_OBSERVED, err, "one file system at /box, /tmp and /dev/shm");
}

int linux_enroll_mounts(struct linux_boundary *boundary, int dir, struct evidence_list *evidence, struct err *err)
{
	int rc = check_root(boundary, dir, evidence, err);
	if (rc == 0)
		rc = check_mounts(boundary, dir, evidence, err);
	if (rc == 0)
		rc = check_work(boundary, dir, evidence, err);
	return rc < 0 ? rc : check_cwd(boundary, dir, evidence, err);
}
