/* tree_store.c - the copies of trees in the store: laid out once, checked before they are shown, removed in a sweep. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "artifact/store_internal.h"
#include "artifact/tree_internal.h"
#include "base/fault.h"
#include "base/fd.h"

#define UNFINISHED "tree-"

enum { UNFINISHED_SIZE = sizeof(UNFINISHED) + 16, TREE_NOTE_SIZE = DIGEST_HEX_SIZE + sizeof(TREE_NOTE_SUFFIX) };

static int open_trees(struct store *store)
{
	return fd_open_beneath(store->dir, TREES_DIR, O_RDONLY | O_DIRECTORY, 0);
}

static int make_trees(struct store *store, struct err *err)
{
	if (mkdirat(store->dir, TREES_DIR, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make the store's " TREES_DIR);
	int fd = open_trees(store);
	return fd < 0 ? err_sys(err, -fd, "open the store's " TREES_DIR) : fd;
}

static int name_unfinished(char name[static UNFINISHED_SIZE], struct err *err)
{
	uint64_t number;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return err_sys(err, errno, "getrandom");
	snprintf(name, UNFINISHED_SIZE, UNFINISHED "%016" PRIx64, number);
	return 0;
}

/* ---- removing ---- */

static int remove_all(int dir, const char *name, int depth, struct err *err);

static int remove_inside(int fd, int depth, struct err *err)
{
	int result = 0;
	DIR *stream = fdopendir(fd);
	if (!stream) {
		close(fd);
		return err_set(err, ERR_NO_MEMORY, "out of memory for a directory");
	}
	for (const struct dirent *entry; result == 0 && (entry = readdir(stream));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			result = remove_all(dirfd(stream), entry->d_name, depth + 1, err);
	closedir(stream);
	return result;
}

static int remove_all(int dir, const char *name, int depth, struct err *err)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(err, errno, "remove a tree");
	if (depth > TREE_DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "remove a tree: too deep");
	int fd = fd_open_beneath(dir, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return err_sys(err, -fd, "remove a tree");
	int result = remove_inside(fd, depth, err);
	if (result == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		result = err_sys(err, errno, "remove a tree");
	return result;
}

/* ---- notes ---- */

struct description {
	struct hasher *hasher;
	struct stat newest; /* by its last change */
	int64_t bytes;
};

static void add_status(struct description *description, const char *path, const struct stat *status)
{
	char text[NOTE_TEXT_SIZE];
	size_t length = note_describe(status, text);
	hasher_add(description->hasher, path, strlen(path) + 1);
	hasher_add(description->hasher, &status->st_mode, sizeof(status->st_mode));
	hasher_add(description->hasher, text, length);
	if (status->st_ctim.tv_sec > description->newest.st_ctim.tv_sec ||
	    (status->st_ctim.tv_sec == description->newest.st_ctim.tv_sec &&
	     status->st_ctim.tv_nsec > description->newest.st_ctim.tv_nsec))
		description->newest = *status;
	if (S_ISREG(status->st_mode))
		description->bytes += status->st_size;
}

static int visit(void *context, const struct tree_entry *entry, struct err *err)
{
	(void)err;
	add_status(context, entry->path, &entry->status);
	return 0;
}

/* Looks at each name without reading a file: what changed, came or went since changes the text. */
static int describe(int tree, char text[static DIGEST_HEX_SIZE], struct description *ret, struct err *err)
{
	struct digest digest;
	struct stat status;
	*ret = (struct description){.hasher = hasher_new()};
	if (!ret->hasher)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a hasher");
	int result = fstat(tree, &status) < 0 ? err_sys(err, errno, "look at a tree") : 0;
	if (result == 0) {
		add_status(ret, "", &status);
		result = tree_walk(tree, -1, visit, ret, err);
	}
	hasher_finish(ret->hasher, &digest);
	hasher_free(ret->hasher);
	digest_hex(&digest, text);
	return result;
}

static const char *note_name(const struct digest *digest, char name[static TREE_NOTE_SIZE])
{
	char hex[DIGEST_HEX_SIZE];
	snprintf(name, TREE_NOTE_SIZE, "%s" TREE_NOTE_SUFFIX, digest_hex(digest, hex));
	return name;
}

/* ---- checking ---- */

static int open_tree(struct store *store, const struct digest *digest, struct err *err)
{
	char hex[DIGEST_HEX_SIZE];
	struct stat status;
	digest_hex(digest, hex);
	FD_AUTO int trees = open_trees(store);
	FD_AUTO int fd = trees < 0 ? trees : fd_open_beneath(trees, hex, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -ENOENT)
		return err_set(err, ERR_NOT_FOUND, "no tree %s", hex);
	if (fd < 0 && fd != -ENOTDIR && fd != -ELOOP)
		return err_sys(err, -fd, "open tree %s", hex);
	if (fd < 0 || fstat(fd, &status) < 0 || status.st_uid != geteuid() || (status.st_mode & 07777) != TREE_DIR_MODE)
		return err_set(err, ERR_DAMAGED, "tree %s is not as it was made (kind, owner or mode)", hex);
	return fd_take(&fd);
}

/* That something is in it which a tree cannot have is damage too. */
static int compare(int tree, const struct digest *digest, struct err *err)
{
	char hex[DIGEST_HEX_SIZE];
	struct digest found;
	struct err failure = ERR_INIT;
	int64_t size;
	int fault = FAULT("store.reading");
	int result = fault ? err_set(&failure, fault, "injected") : tree_digest(tree, INT64_MAX, &found, &size, &failure);
	digest_hex(digest, hex);
	if (result == ERR_INVALID || result == ERR_LIMIT || result == ERR_CONFLICT || (result == 0 && !digest_equal(&found, digest)))
		return err_set(err, ERR_DAMAGED, "tree %s has other contents than its name says", hex);
	return result < 0 ? err_set(err, result, "tree %s cannot be read", hex) : 0;
}

int store_check_tree(struct store *store, const struct digest *digest, struct err *err)
{
	FD_AUTO int fd = open_tree(store, digest, err);
	return fd < 0 ? fd : compare(fd, digest, err);
}

/* As for objects: noted only when a change during the reading would have shown. */
static int compare_and_note(struct store *store, int fd, const struct digest *digest, const char *before, bool settled, struct err *err)
{
	char after[DIGEST_HEX_SIZE], name[TREE_NOTE_SIZE];
	struct description description;
	int result = compare(fd, digest, err);
	if (result == 0)
		result = describe(fd, after, &description, err);
	if (result == 0 && settled && strcmp(before, after) == 0)
		note_write_text(store, note_name(digest, name), after, strlen(after));
	return result;
}

int store_get_tree(struct store *store, const struct digest *digest, int *ret_fd, int64_t *ret_size, struct err *err)
{
	char text[DIGEST_HEX_SIZE], name[TREE_NOTE_SIZE];
	struct description description;
	FD_AUTO int fd = open_tree(store, digest, err);
	if (fd < 0)
		return fd;
	int result = describe(fd, text, &description, err);
	if (result == 0 && !note_holds_text(store, note_name(digest, name), text, strlen(text)))
		result = compare_and_note(store, fd, digest, text, note_settled(&description.newest), err);
	if (result < 0)
		return result;
	*ret_fd = fd_take(&fd);
	*ret_size = description.bytes;
	return 0;
}

/* ---- laying out ---- */

static int make_unfinished(struct store *store, char name[static UNFINISHED_SIZE], struct err *err)
{
	int result = name_unfinished(name, err);
	if (result < 0)
		return result;
	if (mkdirat(store->tmp, name, 0700) < 0)
		return err_sys(err, errno, "make a new tree");
	FD_AUTO int fd = fd_open_beneath(store->tmp, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return err_sys(err, -fd, "make a new tree");
	return fchmod(fd, TREE_DIR_MODE) < 0 ? err_sys(err, errno, "make a new tree") : fd_take(&fd);
}

/* One sync for all of it: the name appears only with every byte on the disk. Somebody else may have been faster. */
static int name_tree(struct store *store, int fd, const char *unfinished, const struct digest *digest, struct err *err)
{
	char hex[DIGEST_HEX_SIZE], text[DIGEST_HEX_SIZE], note[TREE_NOTE_SIZE];
	struct description description;
	if (syncfs(fd) < 0)
		return err_sys(err, errno, "sync a tree");
	FD_AUTO int trees = make_trees(store, err);
	if (trees < 0)
		return trees;
	if (renameat2(store->tmp, unfinished, trees, digest_hex(digest, hex), RENAME_NOREPLACE) < 0)
		return errno == EEXIST ? 0 : err_sys(err, errno, "name tree %s", hex);
	if (fsync(trees) < 0 || fsync(store->dir) < 0)
		return err_sys(err, errno, "sync the store's " TREES_DIR);
	int result = describe(fd, text, &description, err);
	if (result == 0)
		note_write_text(store, note_name(digest, note), text, strlen(text));
	return result;
}

int tree_lay_out(struct store *store, tree_fill_fn fill, void *context, struct tree_reading *reading, struct err *err)
{
	char unfinished[UNFINISHED_SIZE];
	FD_AUTO int fd = make_unfinished(store, unfinished, err);
	if (fd < 0)
		return fd;
	int result = fill(context, fd, reading, err);
	if (result == 0)
		result = FAULT_ERR("store.laid_out", err);
	if (result == 0)
		result = name_tree(store, fd, unfinished, &reading->digest, err);
	int removed = remove_all(store->tmp, unfinished, 0, result < 0 ? NULL : err); /* nothing when it has its name */
	return result < 0 ? result : removed;
}

static int put_listing(struct store *store, const struct tree_reading *reading, struct digest *ret, int64_t *ret_size, struct err *err)
{
	int result = store_put_bytes(store, reading->listing.data, reading->listing.len, true, ret, err);
	if (result == 0)
		*ret_size = reading->bytes;
	return result;
}

int tree_present(struct store *store, const struct digest *digest, struct err *err)
{
	struct err failure = ERR_INIT;
	FD_AUTO int fd = open_tree(store, digest, &failure);
	if (fd >= 0)
		return 1;
	return fd == ERR_NOT_FOUND ? 0 : err_set(err, fd, "%s", failure.text);
}

/* The source is read again, and what is copied now is what counts. */
static int fill_from_directory(void *context, int copy, struct tree_reading *reading, struct err *err)
{
	return tree_read(*(const int *)context, copy, reading, err);
}

int store_put_tree(struct store *store, int dir, int64_t max_bytes, struct digest *ret, int64_t *ret_size, struct err *err)
{
	struct tree_reading known = TREE_READING_INIT(max_bytes), copied = TREE_READING_INIT(max_bytes);
	const struct tree_reading *reading = &known;
	int result = tree_read(dir, -1, &known, err);
	int present = result == 0 ? tree_present(store, &known.digest, err) : result;
	result = present < 0 ? present : 0;
	if (present == 0) {
		result = tree_lay_out(store, fill_from_directory, &dir, &copied, err);
		reading = &copied;
	}
	if (result == 0)
		result = put_listing(store, reading, ret, ret_size, err);
	buf_done(&known.listing);
	buf_done(&copied.listing);
	return result;
}

/* Out of its place at once: half of a tree would stand in the way of the whole one. */
int store_remove_tree(struct store *store, const struct digest *digest, struct err *err)
{
	char hex[DIGEST_HEX_SIZE], note[TREE_NOTE_SIZE], unfinished[UNFINISHED_SIZE];
	if (!store->sweeping)
		return err_set(err, ERR_STATE, "nothing is removed but in a sweep");
	FD_AUTO int trees = open_trees(store);
	int result = name_unfinished(unfinished, err);
	if (result < 0)
		return result;
	note_remove_text(store, note_name(digest, note));
	if (trees < 0 || renameat(trees, digest_hex(digest, hex), store->tmp, unfinished) < 0)
		return trees == -ENOENT || errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "no tree of this digest") :
		                                             err_sys(err, errno, "remove a tree");
	return remove_all(store->tmp, unfinished, 0, err);
}

int tree_bytes(int tree, int64_t *ret, struct err *err)
{
	char text[DIGEST_HEX_SIZE];
	struct description description;
	int result = describe(tree, text, &description, err);
	if (result == 0)
		*ret = description.bytes;
	return result;
}

int store_remove_unfinished(struct store *store, struct err *err)
{
	if (!store->sweeping)
		return err_set(err, ERR_STATE, "nothing is removed but in a sweep");
	int fd = openat(store->tmp, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		result = err_sys(err, errno, "list the store's tmp");
		fd_close(&fd);
		return result;
	}
	for (const struct dirent *entry; result == 0 && (entry = readdir(stream));)
		if (strncmp(entry->d_name, UNFINISHED, strlen(UNFINISHED)) == 0)
			result = remove_all(store->tmp, entry->d_name, 0, err);
	closedir(stream);
	return result;
}
