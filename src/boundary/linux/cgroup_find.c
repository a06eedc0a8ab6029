/* cgroup_find.c - finds groups of ours by name, wherever in the hierarchies they are.
 *
 * A keeper that died may have been placed elsewhere than the one that recovers: in another session, or below another cgroup parent. Where it
 * made its groups is recorded nowhere but in the hierarchies themselves, so they are walked. */
#include "boundary/linux/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { DEPTH_MAX = 32, PARENTS_MAX = 8 };

static void add_mount(struct cgroup_mounts *list, const char *mount)
{
	for (int i = 0; i < list->count; i++)
		if (strcmp(list->mounts[i], mount) == 0)
			return;
	list->mounts[list->count++] = mount;
}

struct cgroup_mounts cgroups_list_mounts(const struct host *host)
{
	struct cgroup_mounts list = {.count = 0};
	if (host->unified)
		add_mount(&list, host->unified_mount);
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (host->controllers[i].present)
			add_mount(&list, host->controllers[i].mount);
	return list;
}

/* A walk over one hierarchy. `found` is called for each group of ours whose name begins with `prefix`, with the path of its parent below the
 * mount; what is below such a group is not looked at. Non-zero ends the walk. */
struct walk {
	const char *prefix;
	int (*found)(void *context, const char *parent, const char *name);
	void *context;
	char path[PATH_MAX];
	struct err *err;
};

static bool is_ours(int dir, const char *name)
{
	struct stat status;
	return fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

/* No boundary is made below a group of somebody else (place_find()). So nobody can make the walk long, or err. */
static bool is_of_others(int group)
{
	struct stat status;
	return fstat(group, &status) == 0 && status.st_uid != 0 && status.st_uid != geteuid();
}

static int walk_below(struct walk *walk, int dir, size_t length, int depth);

static int visit(struct walk *walk, int dir, const char *name, size_t length, int depth)
{
	if (strncmp(name, walk->prefix, strlen(walk->prefix)) == 0)
		return is_ours(dir, name) ? walk->found(walk->context, walk->path, name) : 0;
	int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0) /* gone meanwhile, or closed to us, so that nothing of ours is in it */
		return errno == ENOENT || errno == ENODEV || errno == EACCES ? 0 : err_sys(walk->err, errno, "cgroup %s/%s", walk->path, name);
	if (is_of_others(below)) {
		close(below);
		return 0;
	}
	int added = snprintf(walk->path + length, sizeof(walk->path) - length, "%s%s", length > 0 ? "/" : "", name);
	int rc = added < 0 || (size_t)added >= sizeof(walk->path) - length
		? err_set(walk->err, ERR_LIMIT, "a path of cgroups is too long") : walk_below(walk, below, length + (size_t)added, depth + 1);
	walk->path[length] = '\0';
	close(below);
	return rc;
}

static int walk_below(struct walk *walk, int dir, size_t length, int depth)
{
	int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *list = own < 0 ? NULL : fdopendir(own);
	if (!list) {
		rc = errno == ENOENT || errno == ENODEV ? 0 : err_sys(walk->err, errno, "cgroup %s", walk->path);
		fd_close(&own);
		return rc;
	}
	if (depth > DEPTH_MAX)
		rc = err_set(walk->err, ERR_LIMIT, "cgroups are nested more than %d deep", DEPTH_MAX);
	for (struct dirent *entry; rc == 0 && (entry = readdir(list));)
		if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = visit(walk, dir, entry->d_name, length, depth);
	closedir(list);
	return rc;
}

static int walk_mount(struct walk *walk, const char *mount)
{
	FD_AUTO int top = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	walk->path[0] = '\0';
	return top < 0 ? err_sys(walk->err, errno, "%s", mount) : walk_below(walk, top, 0, 0);
}

/* ---- one name ---- */

struct parents {
	char *paths[PARENTS_MAX];
	int count;
	const char *name;
	struct err *err;
};

static void parents_done(struct parents *parents)
{
	for (int i = 0; i < parents->count; i++)
		free(parents->paths[i]);
}

static int note_parent(void *context, const char *parent, const char *name)
{
	struct parents *parents = context;
	if (strcmp(name, parents->name) != 0)
		return 0;
	for (int i = 0; i < parents->count; i++)
		if (strcmp(parents->paths[i], parent) == 0)
			return 0;
	if (parents->count == PARENTS_MAX)
		return err_set(parents->err, ERR_LIMIT, "cgroup %s is in more than %d places", name, PARENTS_MAX);
	parents->paths[parents->count] = strdup(parent);
	return parents->paths[parents->count++] ? 0 : err_set(parents->err, ERR_NO_MEMORY, "cgroup %s", name);
}

static int find_parents(const struct host *host, struct parents *parents)
{
	struct walk walk = {.prefix = parents->name, .found = note_parent, .context = parents, .err = parents->err};
	struct cgroup_mounts list = cgroups_list_mounts(host);
	int rc = 0;
	for (int i = 0; i < list.count && rc == 0; i++)
		rc = walk_mount(&walk, list.mounts[i]);
	return rc;
}

int cgroups_find(const struct host *host, const char *name, struct err *err)
{
	__attribute__((cleanup(parents_done))) struct parents parents = {.name = name, .err = err};
	int rc = find_parents(host, &parents);
	return rc < 0 ? rc : parents.count > 0;
}

int cgroups_destroy_anywhere(const struct host *host, const char *name, int64_t deadline_ns, int *survivors, struct err *err)
{
	__attribute__((cleanup(parents_done))) struct parents parents = {.name = name, .err = err}, left = {.name = name, .err = err};
	int rc = find_parents(host, &parents);
	for (int i = 0; i < parents.count && rc == 0; i++)
		rc = cgroups_destroy(host, parents.paths[i], name, deadline_ns, survivors, err);
	if (rc == 0)
		rc = find_parents(host, &left);
	if (rc == 0 && left.count > 0)
		rc = err_set(err, ERR_UNVERIFIED, "cgroup %s/%s is still there", left.paths[0], name);
	return rc;
}

/* ---- every name of a ledger ---- */

bool cgroups_parse_name(const char *name, const char *ledger_id, struct boundary_identity *ret)
{
	const char *dot = strchr(name, '.');
	if (!dot || (size_t)(dot - name) != strlen(ledger_id) || strncmp(name, ledger_id, strlen(ledger_id)) != 0 ||
	    !id_valid("bnd", dot + 1))
		return false;
	snprintf(ret->ledger_id, sizeof(ret->ledger_id), "%s", ledger_id);
	snprintf(ret->boundary_id, sizeof(ret->boundary_id), "%s", dot + 1);
	return true;
}

struct enumeration {
	const char *ledger_id;
	struct cgroup_mounts mounts;
	int mount; /* the one that is walked */
	boundary_found_fn found;
	void *context;
};

/* Was it in an earlier hierarchy too? */
static bool seen_before(const struct enumeration *enumeration, const char *parent, const char *name)
{
	for (int i = 0; i < enumeration->mount; i++) {
		char path[HOST_MOUNT_MAX + PATH_MAX + NAME_MAX];
		struct stat status;
		snprintf(path, sizeof(path), "%s/%s/%s", enumeration->mounts.mounts[i], parent, name);
		if (stat(path, &status) == 0)
			return true;
	}
	return false;
}

static int note_identity(void *context, const char *parent, const char *name)
{
	struct enumeration *enumeration = context;
	struct boundary_identity identity;
	if (!cgroups_parse_name(name, enumeration->ledger_id, &identity) || seen_before(enumeration, parent, name))
		return 0;
	return enumeration->found(enumeration->context, &identity);
}

int cgroups_enumerate(const struct host *host, const char *ledger_id, boundary_found_fn found, void *context, struct err *err)
{
	struct enumeration enumeration = {.ledger_id = ledger_id, .mounts = cgroups_list_mounts(host), .found = found, .context = context};
	struct walk walk = {.prefix = ledger_id, .found = note_identity, .context = &enumeration, .err = err};
	int rc = 0;
	for (; enumeration.mount < enumeration.mounts.count && rc == 0; enumeration.mount++)
		rc = walk_mount(&walk, enumeration.mounts.mounts[enumeration.mount]);
	return rc;
}
