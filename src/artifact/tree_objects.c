/* tree_objects.c - lays a tree out from its listing, when its files are objects of the store. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/store_internal.h"
#include "artifact/tree_internal.h"
#include "base/fd.h"

#define TREE_LINE_AUTO __attribute__((cleanup(tree_line_done)))

struct making {
	struct store *store;
	const char *listing;
	size_t length;
	struct digest digest; /* of the listing */
};

/* What is said of a place that is taken, or is in no directory that was named before. */
static int misfit(const char *path, int number, struct err *err)
{
	if (number == ENOENT || number == ENOTDIR || number == ELOOP || number == EEXIST || number == EXDEV)
		return err_set(err, ERR_INVALID, "%s: does not fit what is before it", path);
	if (number == ENAMETOOLONG)
		return err_set(err, ERR_INVALID, "%s: is too long", path);
	return err_sys(err, number, "make %s", path);
}

/* The directory that a path's last name is in; *ret_name points into the path. */
static int open_parent(int top, char *path, const char **ret_name)
{
	char *slash = strrchr(path, '/');
	*ret_name = slash ? slash + 1 : path;
	if (!slash)
		return fcntl(top, F_DUPFD_CLOEXEC, 0);
	*slash = '\0';
	int fd = fd_open_beneath(top, path, O_PATH | O_DIRECTORY, 0);
	*slash = '/';
	return fd;
}

static int make_dir(int top, const struct tree_line *line, struct err *err)
{
	const char *name;
	FD_AUTO int parent = open_parent(top, line->path, &name);
	if (parent < 0)
		return misfit(line->path, -parent, err);
	FD_AUTO int fd = tree_make_dir(parent, name);
	return fd < 0 ? misfit(line->path, -fd, err) : 0;
}

static int make_link(int top, const struct tree_line *line, struct err *err)
{
	const char *name;
	FD_AUTO int parent = open_parent(top, line->path, &name);
	if (parent < 0)
		return misfit(line->path, -parent, err);
	if (!*line->target)
		return err_set(err, ERR_INVALID, "%s: is a link to nothing", line->path);
	return symlinkat(line->target, parent, name) < 0 ? misfit(line->path, errno, err) : 0;
}

static int make_file(struct store *store, int top, const struct tree_line *line, struct err *err)
{
	struct digest found;
	int64_t size = 0;
	FD_AUTO int from = -1;
	int result = store_get(store, &line->sha256, &from, &size, err);
	if (result < 0)
		return err_context(err, result, "%s", line->path);
	if (size != line->size_bytes)
		return err_set(err, ERR_INVALID, "%s: has not the size that the listing says", line->path);
	FD_AUTO int to = fd_open_beneath(top, line->path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (to < 0)
		return misfit(line->path, -to, err);
	result = store_copy_and_hash(from, to, line->size_bytes, &found, &size, err);
	if (result == 0 && !digest_equal(&found, &line->sha256))
		result = err_set(err, ERR_DAMAGED, "its object has other contents than its name says");
	if (result < 0)
		return err_context(err, result, "%s", line->path);
	return fchmod(to, line->executable ? 0555 : 0444) < 0 ? err_sys(err, errno, "make %s", line->path) : 0;
}

static int make(struct store *store, int top, const struct tree_line *line, struct err *err)
{
	switch (line->kind) {
	case TREE_DIR:
		return make_dir(top, line, err);
	case TREE_FILE:
		return make_file(store, top, line, err);
	case TREE_LINK:
		return make_link(top, line, err);
	}
	return err_set(err, ERR_INTERNAL, "a line of no kind");
}

/* What was made is read as any directory is: so it has passed all that a tree must, and the listing says nothing else than is there. */
static int fill_from_objects(void *context, int copy, struct tree_reading *reading, struct err *err)
{
	const struct making *making = context;
	struct tree_cursor cursor = TREE_CURSOR(making->listing, making->length);
	int result;
	for (;;) {
		TREE_LINE_AUTO struct tree_line line = {.path = NULL};
		result = tree_next(&cursor, &line, err);
		if (result <= 0)
			break;
		result = make(making->store, copy, &line, err);
		if (result < 0)
			return result;
	}
	if (result == 0)
		result = tree_read(copy, -1, reading, err);
	if (result == 0 && !digest_equal(&reading->digest, &making->digest))
		result = err_set(err, ERR_INVALID, "the listing is not the canonical one of what it lists");
	return result;
}

static bool has_object(const struct store *store, const struct digest *digest)
{
	char path[STORE_OBJECT_PATH_SIZE];
	struct stat status;
	return fstatat(store->objects, store_object_path(digest, path), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Reads all of it before anything is made: 1 when an object is missing. missing: NULL when none of them is needed. */
static int look_through(const struct making *making, int64_t max_bytes, tree_missing_fn missing, void *context, int64_t *ret_size,
                        struct err *err)
{
	struct tree_cursor cursor = TREE_CURSOR(making->listing, making->length);
	bool lacks = false, enough = !missing;
	*ret_size = 0;
	for (;;) {
		TREE_LINE_AUTO struct tree_line line = {.path = NULL};
		int result = tree_next(&cursor, &line, err);
		if (result <= 0)
			return result < 0 ? result : lacks;
		if (line.kind != TREE_FILE)
			continue;
		if (line.size_bytes > max_bytes - *ret_size)
			return err_set(err, ERR_LIMIT, "more than %lld bytes", (long long)max_bytes);
		*ret_size += line.size_bytes;
		if (enough || has_object(making->store, &line.sha256))
			continue;
		lacks = true;
		enough = missing(context, &line.sha256) != 0;
	}
}

/* A tree that is there already needs none of its files. */
int store_put_listing(struct store *store, const char *listing, size_t length, int64_t max_bytes, tree_missing_fn missing, void *context,
                      struct digest *ret, int64_t *ret_size, struct err *err)
{
	struct making making = {.store = store, .listing = listing, .length = length};
	struct tree_reading reading = TREE_READING_INIT(max_bytes);
	digest_of(listing, length, &making.digest);
	int present = tree_present(store, &making.digest, err);
	if (present < 0)
		return present;
	int result = look_through(&making, max_bytes, present ? NULL : missing, context, ret_size, err);
	if (result == 0 && !present)
		result = tree_lay_out(store, fill_from_objects, &making, &reading, err);
	buf_done(&reading.listing);
	return result != 0 ? result : store_put_bytes(store, listing, length, true, ret, err);
}
