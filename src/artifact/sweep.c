/* sweep.c - holding the store, sweeping it, and looking at all that is in it. */
#include "artifact/store_internal.h"
#include "artifact/tree_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum {
	LOCK_POLL_MS = 2,
	NAME_SIZE = 320, /* "objects/ab/" and a file's name */
};

static const char hex_digits[] = "0123456789abcdef";

/* The store's own directory, opened anew: a lock belongs to an opening, and the descriptor that we have may be shared with a worker. */
static int open_lock(struct store *store, struct err *err)
{
	if (store->lock < 0)
		store->lock = openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return store->lock < 0 ? err_sys(err, errno, "open the store's lock") : 0;
}

/* Polled, because a wait that has an end is worth more here than one that is woken at once. */
static int lock(struct store *store, int how, int64_t wait_ms, struct err *err)
{
	const struct timespec pause = {.tv_nsec = LOCK_POLL_MS * NS_PER_MS};
	int64_t deadline_ns = clock_mono_ns() + wait_ms * NS_PER_MS;
	int result = open_lock(store, err);
	while (result == 0 && flock(store->lock, how | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(err, errno, "lock the store");
		if (clock_mono_ns() > deadline_ns)
			return err_set(err, ERR_BUSY, "the store is held by another process for too long");
		nanosleep(&pause, NULL);
	}
	return result;
}

int store_hold(struct store *store, struct err *err)
{
	if (store->sweeping)
		return err_set(err, ERR_STATE, "the store is being swept by this very process");
	int result = store->holds > 0 ? 0 : lock(store, LOCK_SH, STORE_HOLD_WAIT_MS, err);
	if (result == 0)
		store->holds++;
	return result;
}

void store_release(struct store *store)
{
	if (store->holds > 0 && --store->holds == 0)
		flock(store->lock, LOCK_UN);
}

int store_sweep_begin(struct store *store, int64_t wait_ms, struct err *err)
{
	if (store->holds > 0 || store->sweeping)
		return err_set(err, ERR_STATE, "the store is held by this very process");
	int result = lock(store, LOCK_EX, wait_ms, err);
	store->sweeping = result == 0;
	return result;
}

void store_sweep_end(struct store *store)
{
	if (store->sweeping)
		flock(store->lock, LOCK_UN);
	store->sweeping = false;
}

int store_remove(struct store *store, const struct digest *digest, struct err *err)
{
	char path[STORE_OBJECT_PATH_SIZE];
	if (!store->sweeping)
		return err_set(err, ERR_STATE, "nothing is removed but in a sweep");
	note_remove(store, digest);
	if (unlinkat(store->objects, store_object_path(digest, path), 0) == 0)
		return 0;
	return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "no object %s", path) : err_sys(err, errno, "remove object %s", path);
}

struct walk {
	struct store *store;
	store_entry_fn fn;
	void *context;
	struct err *err;
};

/* One directory's names, handed on one by one. */
typedef int (*name_fn)(struct walk *walk, int dir, const char *above, const char *name);

/* Takes fd over. above: the directory's own name. */
static int each_name(struct walk *walk, int fd, const char *above, name_fn fn)
{
	int result = 0;
	DIR *stream = fdopendir(fd);
	if (!stream) {
		close(fd);
		return err_set(walk->err, ERR_NO_MEMORY, "out of memory for %s", above);
	}
	while (result == 0) {
		errno = 0;
		const struct dirent *entry = readdir(stream);
		if (!entry && errno)
			result = err_sys(walk->err, errno, "list %s", above);
		if (!entry)
			break;
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			result = fn(walk, dirfd(stream), above, entry->d_name);
	}
	closedir(stream);
	return result;
}

static int report(struct walk *walk, const char *above, const char *name, struct store_entry *entry)
{
	char whole[NAME_SIZE];
	snprintf(whole, sizeof(whole), "%.32s/%.255s", above, name);
	entry->name = whole;
	return walk->fn(walk->context, entry);
}

static int visit_stray(struct walk *walk, int dir, const char *above, const char *name)
{
	(void)dir;
	return report(walk, above, name, &(struct store_entry){.stray = true});
}

static bool is_hex(const char *text, size_t length)
{
	return strlen(text) == length && strspn(text, hex_digits) == length;
}

/* above: "objects/ab". */
static int visit_object(struct walk *walk, int dir, const char *above, const char *name)
{
	char text[DIGEST_TEXT_SIZE];
	struct store_entry entry = {.stray = true};
	struct stat status;
	if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) < 0) /* a sweep was faster */
		return errno == ENOENT ? 0 : err_sys(walk->err, errno, "look at %s/%s", above, name);
	if (is_hex(name, DIGEST_HEX_SIZE - STORE_SHARD_SIZE) && store_is_object(&status)) {
		snprintf(text, sizeof(text), "sha256:%.2s%.62s", above + strlen("objects/"), name);
		int result = digest_parse(text, &entry.digest, walk->err);
		if (result < 0)
			return result;
		entry.stray = false;
		entry.size_bytes = status.st_size;
		entry.stored_at_ms = status.st_mtim.tv_sec * INT64_C(1000) + status.st_mtim.tv_nsec / NS_PER_MS;
	}
	return report(walk, above, name, &entry);
}

static int visit_shard(struct walk *walk, int dir, const char *above, const char *name)
{
	char whole[NAME_SIZE];
	int fd = is_hex(name, STORE_SHARD_SIZE - 1) ? fd_open_beneath(dir, name, O_RDONLY | O_DIRECTORY, 0) : -ENOTDIR;
	if (fd == -ENOTDIR || fd == -ELOOP)
		return visit_stray(walk, dir, above, name);
	if (fd < 0)
		return err_sys(walk->err, -fd, "open the store's %s/%s", above, name);
	snprintf(whole, sizeof(whole), "%.32s/%.255s", above, name);
	return each_name(walk, fd, whole, visit_object);
}

/* A note is no object, and named by nothing but what it is about. */
static int visit_note(struct walk *walk, int dir, const char *above, const char *name)
{
	char bare[DIGEST_HEX_SIZE];
	snprintf(bare, sizeof(bare), "%s", name);
	const char *rest = name + strlen(bare);
	bool is_note = is_hex(bare, DIGEST_HEX_SIZE - 1) && (!*rest || strcmp(rest, TREE_NOTE_SUFFIX) == 0);
	return is_note ? 0 : visit_stray(walk, dir, above, name);
}

static int visit_tree(struct walk *walk, int dir, const char *above, const char *name)
{
	char text[DIGEST_TEXT_SIZE];
	struct stat status;
	struct store_entry entry = {.tree = true};
	FD_AUTO int fd = is_hex(name, DIGEST_HEX_SIZE - 1) ? fd_open_beneath(dir, name, O_RDONLY | O_DIRECTORY, 0) : -ENOTDIR;
	if (fd == -ENOENT) /* a sweep was faster */
		return 0;
	if (fd < 0 || fstat(fd, &status) < 0)
		return visit_stray(walk, dir, above, name);
	snprintf(text, sizeof(text), "sha256:%.64s", name);
	int result = digest_parse(text, &entry.digest, walk->err);
	if (result == 0)
		result = tree_bytes(fd, &entry.size_bytes, walk->err);
	if (result < 0)
		return result;
	entry.stored_at_ms = status.st_mtim.tv_sec * INT64_C(1000) + status.st_mtim.tv_nsec / NS_PER_MS;
	return report(walk, above, name, &entry);
}

/* What is made when it is needed first. */
static int walk_optional(struct walk *walk, const char *name, name_fn fn)
{
	int fd = fd_open_beneath(walk->store->dir, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -ENOENT)
		return 0;
	return fd < 0 ? err_sys(walk->err, -fd, "open the store's %s", name) : each_name(walk, fd, name, fn);
}

int store_walk(struct store *store, store_entry_fn fn, void *context, struct err *err)
{
	struct walk walk = {.store = store, .fn = fn, .context = context, .err = err};
	int objects = openat(store->objects, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (objects < 0)
		return err_sys(err, errno, "open the store's objects");
	int result = each_name(&walk, objects, "objects", visit_shard);
	if (result == 0)
		result = walk_optional(&walk, NOTES_DIR, visit_note);
	if (result == 0)
		result = walk_optional(&walk, TREES_DIR, visit_tree);
	if (result != 0)
		return result;
	int tmp = openat(store->tmp, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return tmp < 0 ? err_sys(err, errno, "open the store's tmp") : each_name(&walk, tmp, "tmp", visit_stray);
}
