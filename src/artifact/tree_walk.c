/* tree_walk.c - goes through a directory, depth first, names sorted; a level holds at most two descriptors. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "artifact/name.h"
#include "artifact/tree_internal.h"
#include "base/fd.h"

enum { FIRST_NAMES = 64 };

struct walk {
	tree_visit_fn visit;
	void *context;
	struct buf path;
	size_t entries;
	struct err *err;
};

struct names {
	char **list;
	size_t count, capacity;
};

static void names_done(struct names *names)
{
	while (names->count > 0)
		free(names->list[--names->count]);
	free(names->list);
}
#define NAMES_AUTO __attribute__((cleanup(names_done)))

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct walk *walk, struct names *names, const char *name)
{
	if (walk->entries++ == TREE_ENTRIES_MAX)
		return err_set(walk->err, ERR_LIMIT, "more than %d names in a directory input", TREE_ENTRIES_MAX);
	if (names->count == names->capacity) {
		size_t capacity = names->capacity ? 2 * names->capacity : FIRST_NAMES;
		char **list = realloc(names->list, capacity * sizeof(*list));
		if (!list)
			return err_set(walk->err, ERR_NO_MEMORY, "out of memory for names");
		names->list = list;
		names->capacity = capacity;
	}
	names->list[names->count] = strdup(name);
	return names->list[names->count++] ? 0 : err_set(walk->err, ERR_NO_MEMORY, "out of memory for names");
}

static int read_names(struct walk *walk, int dir, struct names *ret)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		result = err_sys(walk->err, errno, "list %s", walk->path.len ? walk->path.data : "it");
		fd_close(&fd);
		return result;
	}
	while (result == 0) {
		errno = 0;
		const struct dirent *entry = readdir(stream);
		if (!entry && errno)
			result = err_sys(walk->err, errno, "list %s", walk->path.len ? walk->path.data : "it");
		if (!entry)
			break;
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			result = add_name(walk, ret, entry->d_name);
	}
	closedir(stream);
	if (ret->count > 0)
		qsort(ret->list, ret->count, sizeof(*ret->list), by_bytes);
	return result;
}

static int walk_names(struct walk *walk, int dir, int copy, int depth);

int tree_make_dir(int parent, const char *name)
{
	if (mkdirat(parent, name, 0700) < 0)
		return -errno;
	FD_AUTO int fd = fd_open_beneath(parent, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	return fchmod(fd, TREE_DIR_MODE) < 0 ? -errno : fd_take(&fd);
}

static int open_copy(const struct walk *walk, int copy, const char *name)
{
	int fd = tree_make_dir(copy, name);
	return fd < 0 ? err_sys(walk->err, -fd, "copy %s", walk->path.data) : fd;
}

static int enter(struct walk *walk, int dir, int copy, const char *name, int depth)
{
	if (depth == TREE_DEPTH_MAX)
		return err_set(walk->err, ERR_LIMIT, "%s: is more than %d levels deep", walk->path.data, TREE_DEPTH_MAX);
	FD_AUTO int from = fd_open_beneath(dir, name, O_RDONLY | O_DIRECTORY, 0);
	if (from < 0)
		return err_sys(walk->err, -from, "%s", walk->path.data);
	FD_AUTO int to = copy < 0 ? -1 : open_copy(walk, copy, name);
	return copy >= 0 && to < 0 ? to : walk_names(walk, from, to, depth);
}

static int walk_name(struct walk *walk, int dir, int copy, const char *name, int depth)
{
	struct tree_entry entry = {.path = walk->path.data, .name = name, .dir = dir, .copy = copy};
	if (fstatat(dir, name, &entry.status, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(walk->err, errno, "%s", entry.path);
	int result = walk->visit(walk->context, &entry, walk->err);
	return result == 0 && S_ISDIR(entry.status.st_mode) ? enter(walk, dir, copy, name, depth + 1) : result;
}

static int walk_names(struct walk *walk, int dir, int copy, int depth)
{
	NAMES_AUTO struct names names = {0};
	size_t above = walk->path.len;
	int result = read_names(walk, dir, &names);
	for (size_t i = 0; result == 0 && i < names.count; i++) {
		result = buf_printf(&walk->path, walk->err, "%s%s", above ? "/" : "", names.list[i]);
		if (result == 0)
			result = walk_name(walk, dir, copy, names.list[i], depth);
		if (walk->path.data)
			walk->path.data[walk->path.len = above] = '\0';
	}
	return result;
}

int tree_walk(int dir, int copy, tree_visit_fn visit, void *context, struct err *err)
{
	struct walk walk = {.visit = visit, .context = context, .path = BUF_INIT(ARTIFACT_PATH_MAX), .err = err};
	int result = walk_names(&walk, dir, copy, 1);
	buf_done(&walk.path);
	return result;
}
