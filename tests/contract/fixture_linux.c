/* fixture_linux.c - the native boundary for the contract suite: stories as shell scripts, the kernel's own files as the host.
 *
 * Needs root. CAISSON_INIT names guest init's program. The cgroup parent is the test's own: nothing of anybody else is met. */
#include "fixture.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boundary/linux/linux.h"

enum { NAME_MAX_BYTES = 2 * ID_SIZE + 2, OPEN_FILES_AT_ONCE = 8, PARENT_DEPTH = 2 };

static char parent[sizeof("caisson-contract-") + 10]; /* and our pid */
static struct boundary_provider *provider;

/* What the walk below looks for, and what it found. nftw has no context of its own. */
static struct {
	char name[NAME_MAX_BYTES];
	bool exists;
	int processes;
} look;

static int set_up(void)
{
	struct err err = ERR_INIT;
	snprintf(parent, sizeof(parent), "caisson-contract-%d", getpid());
	const struct linux_options options = {.init_path = getenv("CAISSON_INIT"), .cgroup_parent = parent, .wake_fd = -1};
	if (!options.init_path) {
		puts("skipped: CAISSON_INIT does not name guest init");
		return 1;
	}
	if (linux_provider_new(&options, &provider, &err) < 0) {
		printf("skipped: %s\n", err.text);
		return 1;
	}
	return 0;
}

/* The test's own parent groups; those that are not empty say so by staying. */
static int remove_parent(const char *path, const struct stat *status, int flag, struct FTW *where)
{
	(void)status;
	if (flag == FTW_DP && where->level <= PARENT_DEPTH && !strcmp(path + where->base, parent))
		rmdir(path);
	return 0;
}

static void tear_down(void)
{
	linux_provider_free(provider);
	nftw("/sys/fs/cgroup", remove_parent, OPEN_FILES_AT_ONCE, FTW_PHYS | FTW_DEPTH);
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
		[STORY_DAEMON_CLOSED] = {"/bin/sh", "-c", "sleep 1000 </dev/null >/dev/null 2>&1 & exit 0"},
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
	.members = members,
	.exists = exists,
	.violation = violation,
};
