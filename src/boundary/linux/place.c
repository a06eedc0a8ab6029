/* place.c - finds the group that was delegated to us, checks that boundaries can be made below it, and says how to get one.
 *
 * systemd marks a delegated group with an extended attribute (systemd.resource-control(5), Delegate=). Elsewhere a directory that root gave
 * to an ordinary user says as much: the topmost one that is ours. Moving a process needs write access to the group that both ends have in
 * common (cgroups(7)), so a user must be inside already; being root is enough for root. */
#include "boundary/linux/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/fd.h"

#define DEFAULT_PARENT "caisson"

enum {
	PATH_BYTES = HOST_MOUNT_MAX + PLACE_PARENT_MAX + 32,
	REASON_BYTES = 2 * PATH_BYTES,
	OWN_GROUPS_MAX = 16 * 1024,
	MEMBERS_MAX = 64 * 1024,
	VACATE_ROUNDS = 16,
};

/* One hierarchy that boundaries use. */
struct hierarchy {
	const char *mount, *root;
	bool unified, always; /* always: every boundary has a group there */
};

/* The unified one comes first. */
static int list_hierarchies(const struct host *host, struct hierarchy list[static CONTROLLER_COUNT + 1])
{
	int count = 0;
	if (host->unified)
		list[count++] = (struct hierarchy){host->unified_mount, host->unified_root, true, true};
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		const struct host_controller *controller = &host->controllers[i];
		bool known = !controller->present || controller->v2;
		for (int j = 0; j < count && !known; j++)
			if (strcmp(list[j].mount, controller->mount) == 0) {
				known = true;
				list[j].always |= controller_always_used((enum controller)i);
			}
		if (!known)
			list[count++] = (struct hierarchy){controller->mount, controller->root, false,
			                                   controller_always_used((enum controller)i)};
	}
	return count;
}

static bool gives_controllers(const struct host *host)
{
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (host->controllers[i].v2 && i != CONTROLLER_CPUACCT)
			return true;
	return false;
}

/* The path of our own group in a line of /proc/self/cgroup ("4:memory:/a/b", "0::/a/b"), or NULL when the line is another hierarchy's. */
static char *path_in_line(char *line, bool unified)
{
	char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path)
		return NULL;
	*path++ = '\0';
	if (unified)
		return strcmp(line, "0:") == 0 ? path : NULL;
	return strstr(controllers, controller_name(CONTROLLER_MEMORY)) ? path : NULL;
}

/* Our own group, below the mount. false when the mount does not show it. */
static bool find_own(const struct hierarchy *hierarchy, char ret[static PLACE_PARENT_MAX])
{
	char text[OWN_GROUPS_MAX], *save = NULL;
	size_t root = strcmp(hierarchy->root, "/") == 0 ? 0 : strlen(hierarchy->root);
	if (fd_read_text(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) < 0)
		return false;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *path = path_in_line(line, hierarchy->unified);
		if (!path)
			continue;
		bool shown = strncmp(path, hierarchy->root, root) == 0 && (path[root] == '/' || path[root] == '\0');
		if (!shown || strncmp(path, "/..", 3) == 0 || strlen(path + root) > PLACE_PARENT_MAX)
			return false;
		path += root;
		path += *path == '/';
		memcpy(ret, path, strlen(path) + 1);
		return true;
	}
	return false;
}

static bool is_ours(const char *mount, const char *group)
{
	char path[PATH_BYTES];
	struct stat status;
	snprintf(path, sizeof(path), "%s/%s", mount, group);
	return stat(path, &status) == 0 && status.st_uid == geteuid();
}

static bool is_marked(const char *mount, const char *group)
{
	static const char *const names[] = {"user.delegate", "trusted.delegate"};
	char path[PATH_BYTES], value[4];
	snprintf(path, sizeof(path), "%s/%s", mount, group);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getxattr(path, names[i], value, sizeof(value)) == 1 && value[0] == '1')
			return true;
	return false;
}

/* Cuts the last component off. false when there was none. */
static bool cut_last(char *group)
{
	char *slash = strrchr(group, '/');
	if (!*group)
		return false;
	*(slash ? slash : group) = '\0';
	return true;
}

/* From our own group upwards, the first that was delegated: marked as such, or the uppermost that belongs to us. To root everything
 * belongs, so that only the mark counts. */
static bool find_delegated(const char *mount, char *group)
{
	do {
		char above[PLACE_PARENT_MAX];
		snprintf(above, sizeof(above), "%s", group);
		if (!is_ours(mount, group))
			continue;
		if (is_marked(mount, group) || (geteuid() != 0 && (!cut_last(above) || !is_ours(mount, above))))
			return true;
	} while (cut_last(group));
	return false;
}

static bool writable(const char *mount, const char *group, const char *file)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof(path), "%s/%s/%s", mount, group, file);
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

/* The group that contains both. */
static void find_common(const char *one, const char *other, char ret[static PLACE_PARENT_MAX])
{
	snprintf(ret, PLACE_PARENT_MAX, "%s", one);
	for (;;) {
		size_t length = strlen(ret);
		bool contains = length == 0 || (strncmp(ret, other, length) == 0 && (other[length] == '/' || other[length] == '\0'));
		if (contains)
			return;
		cut_last(ret);
	}
}

/* ---- what to do about it ---- */

/* systemd delegates what it manages: the unified hierarchy, where no other has a controller. */
static bool has_user_manager(const struct host *host)
{
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (host->controllers[i].present && !host->controllers[i].v2)
			return false;
	return host->unified && access("/run/systemd/system", F_OK) == 0;
}

static int suggest_directory(const struct host *host, pid_t caller, struct buf *text, struct err *err)
{
	struct hierarchy list[CONTROLLER_COUNT + 1];
	int count = list_hierarchies(host, list), first = host->unified, rc = 0;
	const struct host_controller *cpuset = &host->controllers[CONTROLLER_CPUSET];
	unsigned uid = (unsigned)geteuid();
	for (int i = first; i < count && rc == 0; i++)
		rc = buf_printf(text, err, "%s%s/" DEFAULT_PARENT "-%u", i == first ? "for d in " : " ", list[i].mount, uid);
	if (rc == 0 && count > first)
		rc = buf_printf(text, err, "; do mkdir -p $d; chown %u $d $d/cgroup.procs $d/tasks; done; ", uid);
	/* In v1 a new group has no CPU; filling it is the runs' own affair. */
	if (rc == 0 && cpuset->present && !cpuset->v2)
		rc = buf_printf(text, err, "chown %u %s/" DEFAULT_PARENT "-%u/cpuset.cpus %s/" DEFAULT_PARENT "-%u/cpuset.mems; ", uid,
		                cpuset->mount, uid, cpuset->mount, uid);
	if (rc == 0 && host->unified)
		rc = buf_printf(text, err, "d=%s/" DEFAULT_PARENT "-%u; mkdir -p $d/" PLACE_LEAF "; chown %u $d $d/cgroup.procs "
		                "$d/cgroup.subtree_control $d/cgroup.threads; echo %d >$d/" PLACE_LEAF "/cgroup.procs",
		                host->unified_mount, uid, uid, (int)caller);
	return rc; /* without a unified hierarchy nobody needs to be placed anywhere */
}

int place_advise(const struct host *host, pid_t caller, struct buf *ret, struct err *err)
{
	int rc = 0;
	if (has_user_manager(host))
		rc = buf_puts(ret, "start it with: systemd-run --user --scope -p Delegate=yes caisson …; or ", err);
	if (rc == 0)
		rc = buf_puts(ret, "as root: ", err);
	return rc < 0 ? rc : suggest_directory(host, caller, ret, err);
}

static int refuse(const struct host *host, pid_t caller, const char *reason, struct err *err)
{
	BUF_AUTO struct buf advice = BUF_INIT(ERR_TEXT_MAX);
	int rc = place_advise(host, caller, &advice, err);
	if (rc < 0)
		return rc;
	return err_set(err, ERR_UNSUPPORTED, "no cgroup is delegated to uid %u: %s; %s", (unsigned)geteuid(), reason, advice.data);
}

/* An ordinary user must own the parent in each hierarchy, and be inside it in the unified one. */
static int check(const struct host *host, const char *own, pid_t caller, const char *parent, struct err *err)
{
	struct hierarchy list[CONTROLLER_COUNT + 1];
	char common[PLACE_PARENT_MAX], reason[REASON_BYTES];
	int count = list_hierarchies(host, list);
	for (int i = 0; i < count; i++)
		if (list[i].always && !writable(list[i].mount, parent, ".")) {
			snprintf(reason, sizeof(reason), "%s/%s is not its own", list[i].mount, parent);
			return refuse(host, caller, reason, err);
		}
	if (!host->unified)
		return 0;
	if (own)
		find_common(own, parent, common);
	if (!own || !writable(host->unified_mount, common, "cgroup.procs")) {
		snprintf(reason, sizeof(reason), "/%s, where this process is, is not within %s/%s", own ? own : "", host->unified_mount,
		         parent);
		return refuse(host, caller, reason, err);
	}
	if (gives_controllers(host) && !writable(host->unified_mount, parent, "cgroup.subtree_control")) {
		snprintf(reason, sizeof(reason), "%s/%s/cgroup.subtree_control is not its own", host->unified_mount, parent);
		return refuse(host, caller, reason, err);
	}
	return 0;
}

/* A relative path without "..", so that every group lies below its hierarchy's mount. */
static bool is_sane(const char *parent)
{
	return parent[0] != '\0' && parent[0] != '/' && !strstr(parent, "..") && strlen(parent) < PLACE_PARENT_MAX;
}

/* Below our own group, if it was delegated, and as root if every hierarchy has such a group: a service manager delegates one alone. */
static bool find_own_place(const struct host *host, const char *own, struct place *place)
{
	struct hierarchy list[CONTROLLER_COUNT + 1];
	int count = list_hierarchies(host, list);
	snprintf(place->parent, sizeof(place->parent), "%s", own);
	if (!find_delegated(list[0].mount, place->parent))
		return false;
	for (int i = 0; i < count && geteuid() == 0; i++)
		if (list[i].always && !writable(list[i].mount, place->parent, "."))
			return false;
	place->inhabited = true;
	return true;
}

/* May somebody else than root and us change what is there? A group that is absent is made by us. */
static bool is_foreign(const char *mount, const char *group)
{
	static const struct { const char *name; mode_t writable; } files[] = {
		{".", S_IWOTH}, {"cgroup.procs", S_IWGRP | S_IWOTH}, {"cgroup.threads", S_IWGRP | S_IWOTH}, {"tasks", S_IWGRP | S_IWOTH},
	};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char path[PATH_BYTES];
		struct stat status;
		snprintf(path, sizeof(path), "%s/%s/%s", mount, group, files[i].name);
		if (stat(path, &status) != 0 ? errno != ENOENT
		                             : (status.st_uid != 0 && status.st_uid != geteuid()) || (status.st_mode & files[i].writable))
			return true;
	}
	return false;
}

/* To move a process out of a group takes what it is moved to and the group that both have in common, and nothing of its own (cgroups(7)):
 * whoever has one above ours takes guests away from their limits, and from what kills them. */
static int check_owners(const struct host *host, const char *parent, struct err *err)
{
	struct hierarchy list[CONTROLLER_COUNT + 1];
	int count = list_hierarchies(host, list);
	for (int i = 0; i < count; i++) {
		char group[PLACE_PARENT_MAX];
		snprintf(group, sizeof(group), "%s", parent);
		do
			if (is_foreign(list[i].mount, group))
				return err_set(err, ERR_UNSUPPORTED, "cgroup parent %s: %s/%s is open to others than root and uid %u, who could "
				               "move guests away from their limits", parent, list[i].mount, group, (unsigned)geteuid());
		while (cut_last(group));
	}
	return 0;
}

int place_find(const struct host *host, const char *given, pid_t caller, struct place *ret, struct err *err)
{
	struct hierarchy list[CONTROLLER_COUNT + 1];
	struct place place = {.parent = ""};
	char own[PLACE_PARENT_MAX], reason[REASON_BYTES];
	bool shown = list_hierarchies(host, list) > 0 && find_own(&list[0], own);
	if (given && !is_sane(given))
		return err_set(err, ERR_INVALID, "cgroup parent %s: must be a relative path without ..", given);
	if (given) {
		snprintf(place.parent, sizeof(place.parent), "%s", given);
		place.inhabited = shown && strcmp(own, given) == 0;
	} else if (!shown || !find_own_place(host, own, &place)) {
		snprintf(reason, sizeof(reason), "/%s, where this process is, belongs to somebody else", shown ? own : "…");
		if (geteuid() != 0)
			return refuse(host, caller, reason, err);
		place = (struct place){.parent = DEFAULT_PARENT};
	}
	int rc = geteuid() == 0 ? 0 : check(host, shown ? own : NULL, caller, place.parent, err);
	if (rc == 0)
		rc = check_owners(host, place.parent, err);
	if (rc == 0)
		*ret = place;
	return rc;
}

int place_vacate(int group)
{
	if (mkdirat(group, PLACE_LEAF, 0755) != 0 && errno != EEXIST)
		return -errno;
	for (int round = 0; round < VACATE_ROUNDS; round++) { /* somebody may be born meanwhile */
		char members[MEMBERS_MAX], *save = NULL;
		ssize_t length = fd_read_text(group, "cgroup.procs", members, sizeof(members));
		if (length <= 0)
			return (int)length;
		for (char *member = strtok_r(members, "\n", &save); member; member = strtok_r(NULL, "\n", &save)) {
			int rc = fd_write_text(group, PLACE_LEAF "/cgroup.procs", member);
			if (rc < 0 && rc != -ESRCH)
				return rc;
		}
	}
	return -EBUSY;
}
