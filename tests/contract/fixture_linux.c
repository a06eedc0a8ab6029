/* fixture_linux.c - the native boundary for the contract suite: stories as shell scripts, the kernel's own files as the host.
 *
 * Needs root. CAISSON_INIT names guest init's program. The cgroup parent is the test's own: nothing of anybody else is met. With
 * CAISSON_CONTRACT_UID the suite is that user's: root makes and delegates the parent as an administrator would (place.h), a child becomes
 * the user for good and carries the suite out, and root takes away afterwards what only root can. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "boundary/linux/cgroup.h"
#include "boundary/linux/linux.h"

enum { NAME_MAX_BYTES = 2 * ID_SIZE + 2, OPEN_FILES_AT_ONCE = 8, PARENT_DEPTH = 2, WORD_MAX = 64, COPY_MAX_BYTES = 64 << 20 };

static char parent[WORD_MAX]; /* "caisson-contract-" and our pid */
static char runtime[WORD_MAX], init_copy[WORD_MAX]; /* of the user */
static struct boundary_provider *provider;

/* What the walk below looks for, and what it found. nftw has no context of its own. */
static struct {
	char name[NAME_MAX_BYTES];
	bool exists;
	int processes;
} look;

/* The test's own parent groups, with the leaf that a user's suite is in; those that are not empty say so by staying. */
static int remove_parent(const char *path, const struct stat *status, int flag, struct FTW *where)
{
	(void)status;
	const char *name = strstr(path, parent), *below = name ? name + strlen(parent) : NULL;
	if (flag == FTW_DP && where->level <= PARENT_DEPTH + 1 && below && (!*below || !strcmp(below, "/" PLACE_LEAF)))
		rmdir(path);
	return 0;
}

static void remove_parents(void)
{
	nftw("/sys/fs/cgroup", remove_parent, OPEN_FILES_AT_ONCE, FTW_PHYS | FTW_DEPTH);
}

/* ---- a user ---- */

static bool give(const char *directory, const char *file, uid_t uid)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", directory, file);
	return chown(path, uid, uid) == 0;
}

static bool give_if_there(const char *directory, const char *file, uid_t uid)
{
	return give(directory, file, uid) || errno == ENOENT;
}

/* What the refusal advises (place.c); the caller is this process. */
static bool delegate(const char *mount, bool unified, uid_t uid)
{
	char path[CGROUP_PATH_MAX], leaf[CGROUP_PATH_MAX + WORD_MAX];
	snprintf(path, sizeof(path), "%s/%s", mount, parent);
	if (mkdir(path, 0755) != 0 || !give(path, ".", uid) || !give(path, "cgroup.procs", uid))
		return false;
	if (!unified)
		return give(path, "tasks", uid) && give_if_there(path, "cpuset.cpus", uid) && give_if_there(path, "cpuset.mems", uid);
	snprintf(leaf, sizeof(leaf), "%s/" PLACE_LEAF, path);
	bool made = give(path, "cgroup.subtree_control", uid) && give(path, "cgroup.threads", uid) && mkdir(leaf, 0755) == 0;
	snprintf(leaf, sizeof(leaf), "%s/" PLACE_LEAF "/cgroup.procs", path);
	return made && fd_write_text(AT_FDCWD, leaf, "0") == 0;
}

static bool delegate_all(uid_t uid)
{
	struct host host;
	if (host_read(&host, NULL) < 0)
		return false;
	struct cgroup_mounts list = cgroups_list_mounts(&host);
	for (int i = 0; i < list.count; i++)
		if (!delegate(list.mounts[i], host.unified && strcmp(list.mounts[i], host.unified_mount) == 0, uid))
			return false;
	return true;
}

/* The build tree may be closed to the user. */
static bool copy_init(const char *path)
{
	FD_AUTO int from = open(path, O_RDONLY | O_CLOEXEC), to = open(init_copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	struct stat status;
	return from >= 0 && to >= 0 && fstat(from, &status) == 0 && status.st_size < COPY_MAX_BYTES &&
	       sendfile(to, from, NULL, (size_t)status.st_size) == status.st_size;
}

static bool become(uid_t uid)
{
	return setgroups(0, NULL) == 0 && setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0 &&
	       prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0; /* as after an exec: a process owns its own files in /proc */
}

/* Root stays behind here, and comes back as the program's end. */
static void take_away_after(pid_t child)
{
	char lock[WORD_MAX + 8];
	int status = 0;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	snprintf(lock, sizeof(lock), "%s/ids", runtime);
	unlink(lock);
	rmdir(runtime);
	unlink(init_copy);
	remove_parents();
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}

static int set_up_user(uid_t uid, const char *init_path)
{
	snprintf(runtime, sizeof(runtime), "/var/tmp/caisson-contract-%d", getpid());
	snprintf(init_copy, sizeof(init_copy), "/var/tmp/caisson-contract-%d-init", getpid());
	if (geteuid() != 0) {
		puts("skipped: only root can delegate a cgroup");
		return 1;
	}
	if (!copy_init(init_path))
		return 1;
	pid_t child = fork();
	if (child < 0)
		return 1;
	if (child > 0)
		take_away_after(child);
	if (!delegate_all(uid) || !become(uid)) {
		printf("cannot become user %u: %s\n", (unsigned)uid, strerror(errno));
		return 1;
	}
	return 0;
}

static int set_up(void)
{
	struct err err = ERR_INIT;
	const char *init_path = getenv("CAISSON_INIT"), *uid = getenv("CAISSON_CONTRACT_UID");
	snprintf(parent, sizeof(parent), "caisson-contract-%d", getpid());
	if (!init_path) {
		puts("skipped: CAISSON_INIT does not name guest init");
		return 1;
	}
	if (uid && set_up_user((uid_t)strtoul(uid, NULL, 10), init_path) != 0)
		return 1;
	const struct linux_options options = {
		.init_path = uid ? init_copy : init_path,
		.cgroup_parent = parent,
		.runtime_dir = uid ? runtime : NULL,
		.wake_fd = -1,
	};
	if (linux_provider_new(&options, &provider, &err) < 0) {
		printf("skipped: %s\n", err.text);
		return 1;
	}
	return 0;
}

static void tear_down(void)
{
	linux_provider_free(provider);
	remove_parents();
}

static const struct boundary_provider *get_provider(void)
{
	return provider;
}

static const char *const *tell(enum story story)
{
	static const char *const argvs[STORY_COUNT][4] = {
		[STORY_EXIT_0] = {"/bin/sh", "-c", "exit 0"},
		[STORY_EXIT_3] = {"/bin/sh", "-c", "exit 3"},
		[STORY_SIGNAL] = {"/bin/sh", "-c", "kill -9 $$"},
		[STORY_NOT_FOUND] = {"/nosuch/program"},
		[STORY_GREET] = {"/bin/sh", "-c", "echo hello; echo oops >&2"},
		[STORY_LOAD] = {"/bin/sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x"},
		[STORY_SLEEP] = {"/bin/sh", "-c", "echo ready; exec sleep 1000"},
		[STORY_DEAF] = {"/bin/sh", "-c", "trap '' TERM; echo ready; exec sleep 1000"},
		/* Closed before there is a descendant: one that closes them itself may be slower than the drain is long. */
		[STORY_DAEMON_CLOSED] = {"/bin/sh", "-c", "exec </dev/null >/dev/null 2>&1; sleep 1000 & exit 0"},
		[STORY_DAEMON_HOLDS] = {"/bin/sh", "-c", "sleep 1000 2>/dev/null & exit 0"},
		[STORY_OUTPUT] = {"/bin/sh", "-c", "echo hi >/out/a.txt"},
	};
	return argvs[story];
}

static int count_lines(const char *path)
{
	FILE *file = fopen(path, "re");
	int lines = 0;
	for (int c = file ? fgetc(file) : EOF; c != EOF; c = fgetc(file))
		lines += c == '\n';
	if (file)
		fclose(file);
	return lines;
}

/* The guest's processes are in NAME/guest of a v2 hierarchy and in NAME of a v1 one: a process is in several, so the largest count is
 * taken. */
static int look_at(const char *path, const struct stat *status, int flag, struct FTW *where)
{
	(void)status;
	(void)where;
	const char *name = strstr(path, look.name);
	if (flag != FTW_D || !name)
		return 0;
	look.exists = true;
	const char *leaf = name + strlen(look.name);
	if (!*leaf || !strcmp(leaf, "/guest")) {
		char procs[PATH_MAX];
		snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
		int processes = count_lines(procs);
		look.processes = processes > look.processes ? processes : look.processes;
	}
	return 0;
}

static void look_for(const struct boundary_identity *identity)
{
	look.exists = false;
	look.processes = 0;
	snprintf(look.name, sizeof(look.name), "%s.%s", identity->ledger_id, identity->boundary_id);
	nftw("/sys/fs/cgroup", look_at, OPEN_FILES_AT_ONCE, FTW_PHYS);
}

static bool has_disk(void)
{
	return geteuid() == 0;
}

static int members(const struct boundary_identity *identity)
{
	look_for(identity);
	return look.processes;
}

static bool exists(const struct boundary_identity *identity)
{
	look_for(identity);
	return look.exists;
}

static const char *violation(void)
{
	return "";
}

const struct fixture fixture = {
	.profile = "linux",
	.set_up = set_up,
	.tear_down = tear_down,
	.provider = get_provider,
	.tell = tell,
	.has_disk = has_disk,
	.members = members,
	.exists = exists,
	.violation = violation,
};
