/* store.c - the content-addressed store: copy, hash, fsync, and only then a name. */
#include "artifact/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"

enum {
	PIECE_BYTES = 64 * 1024,
	SHARDS = 256, /* by the first byte of the digest */
};

static int open_subdir(int dir, const char *name, struct err *err)
{
	const int flags = O_RDONLY | O_DIRECTORY;
	int fd = fd_open_beneath(dir, name, flags, 0);
	if (fd != -ENOENT)
		return fd < 0 ? err_sys(err, -fd, "open the store's %s", name) : fd;
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make the store's %s", name);
	fd = fd_open_beneath(dir, name, flags, 0);
	return fd < 0 ? err_sys(err, -fd, "open the store's %s", name) : fd;
}

int store_open(int dir, struct store **ret, struct err *err)
{
	FD_AUTO int own = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return err_sys(err, errno, "keep the store's directory");
	FD_AUTO int objects = open_subdir(own, "objects", err);
	if (objects < 0)
		return objects;
	FD_AUTO int tmp = open_subdir(own, "tmp", err);
	if (tmp < 0)
		return tmp;
	struct store *store = malloc(sizeof(*store));
	if (!store)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a store");
	*store = (struct store){.dir = fd_take(&own), .objects = fd_take(&objects), .tmp = fd_take(&tmp), .lock = -1};
	*ret = store;
	return 0;
}

void store_free(struct store *store)
{
	if (!store)
		return;
	fd_close(&store->dir);
	fd_close(&store->objects);
	fd_close(&store->tmp);
	fd_close(&store->lock);
	free(store);
}

int store_dir_fd(const struct store *store)
{
	return store->dir;
}

const char *store_object_path(const struct digest *digest, char path[static STORE_OBJECT_PATH_SIZE])
{
	char hex[DIGEST_HEX_SIZE];
	digest_hex(digest, hex);
	snprintf(path, STORE_OBJECT_PATH_SIZE, "%.2s/%s", hex, hex + 2);
	return path;
}

bool store_is_object(const struct stat *status)
{
	return S_ISREG(status->st_mode) && status->st_nlink == 1 && status->st_uid == geteuid() &&
	       (status->st_mode & 07777) == STORE_OBJECT_MODE;
}

static int open_object(struct store *store, const struct digest *digest, struct stat *ret_status, struct err *err)
{
	char path[STORE_OBJECT_PATH_SIZE];
	FD_AUTO int fd = fd_open_beneath(store->objects, store_object_path(digest, path), O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -ENOENT)
		return err_set(err, ERR_NOT_FOUND, "no object %s", path);
	if (fd == -ELOOP || fd == -ENXIO)
		return err_set(err, ERR_DAMAGED, "object %s is no regular file", path);
	if (fd < 0)
		return err_sys(err, -fd, "open object %s", path);
	if (fstat(fd, ret_status) < 0)
		return err_sys(err, errno, "look at object %s", path);
	if (!store_is_object(ret_status))
		return err_set(err, ERR_DAMAGED, "object %s is not as it was made (kind, links, owner or mode)", path);
	return fd_take(&fd);
}

int store_get(struct store *store, const struct digest *digest, int *ret_fd, int64_t *ret_size, struct err *err)
{
	struct stat status;
	int fd = open_object(store, digest, &status, err);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	*ret_size = status.st_size;
	return 0;
}

int store_copy_and_hash(int in, int out, int64_t max_bytes, struct digest *ret, int64_t *ret_size, struct err *err)
{
	char piece[PIECE_BYTES];
	int64_t size = 0;
	int result = 0;
	struct hasher *hasher = hasher_new();
	if (!hasher)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a hasher");
	for (;;) {
		ssize_t got = fd_read_full(in, piece, sizeof(piece));
		if (got < 0)
			result = err_sys(err, (int)-got, "read");
		else if ((result = FAULT_ERR("store.copying", err)) < 0)
			break;
		else if (got > max_bytes - size)
			result = err_set(err, ERR_LIMIT, "more than %lld bytes", (long long)max_bytes);
		else if (got > 0 && out >= 0 && (result = fd_write_all(out, piece, (size_t)got)) < 0)
			result = err_sys(err, -result, "write an object");
		if (result < 0 || got == 0)
			break;
		hasher_add(hasher, piece, (size_t)got);
		size += got;
	}
	if (result == 0) {
		hasher_finish(hasher, ret);
		*ret_size = size;
	}
	hasher_free(hasher);
	return result;
}

static int compare_bytes(int fd, const struct digest *digest, struct err *err)
{
	char path[STORE_OBJECT_PATH_SIZE];
	struct digest found;
	int64_t size;
	int fault = FAULT("store.reading");
	int result = fault ? err_set(err, fault, "injected") : store_copy_and_hash(fd, -1, INT64_MAX, &found, &size, err);
	store_object_path(digest, path);
	if (result < 0)
		return err_context(err, result, "object %s", path);
	if (!digest_equal(&found, digest))
		return err_set(err, ERR_DAMAGED, "object %s has other bytes than its name says", path);
	return 0;
}

int store_check(struct store *store, const struct digest *digest, struct err *err)
{
	struct stat status;
	FD_AUTO int fd = open_object(store, digest, &status, err);
	return fd < 0 ? fd : compare_bytes(fd, digest, err);
}

/* A note is made only when a change during the reading would have shown. */
static int compare_and_note(struct store *store, int fd, const struct digest *digest, const struct stat *before, struct err *err)
{
	struct stat after;
	bool settled = note_settled(before);
	int result = compare_bytes(fd, digest, err);
	if (result < 0)
		return result;
	if (lseek(fd, 0, SEEK_SET) < 0 || fstat(fd, &after) < 0)
		return err_sys(err, errno, "look at an object again");
	if (settled && note_same(before, &after))
		note_write(store, digest, &after);
	return 0;
}

int store_get_checked(struct store *store, const struct digest *digest, int *ret_fd, int64_t *ret_size, struct err *err)
{
	struct stat status;
	FD_AUTO int fd = open_object(store, digest, &status, err);
	if (fd < 0)
		return fd;
	int result = note_holds(store, digest, &status) ? 0 : compare_and_note(store, fd, digest, &status, err);
	if (result < 0)
		return result;
	*ret_fd = fd_take(&fd);
	*ret_size = status.st_size;
	return 0;
}

static int open_unnamed(struct store *store, struct err *err)
{
	FD_AUTO int fd = openat(store->tmp, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, STORE_OBJECT_MODE);
	if (fd < 0)
		return err_sys(err, errno, "make a new object");
	if (fchmod(fd, STORE_OBJECT_MODE) < 0)
		return err_sys(err, errno, "set a new object's mode");
	return fd_take(&fd);
}

int store_spool(struct store *store, int *ret_fd, struct err *err)
{
	int fd = openat(store->tmp, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, errno, "make room for an object on its way");
	*ret_fd = fd;
	return 0;
}

/* 1 when the object has its name now, 0 when somebody else was faster. */
static int link_object(struct store *store, int fd, const struct digest *digest, struct err *err)
{
	char path[STORE_OBJECT_PATH_SIZE], shard[STORE_SHARD_SIZE], self[32];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	snprintf(shard, sizeof(shard), "%.2s", store_object_path(digest, path));
	int failed = linkat(AT_FDCWD, self, store->objects, path, AT_SYMLINK_FOLLOW);
	if (failed && errno == ENOENT) {
		if (mkdirat(store->objects, shard, 0700) < 0 && errno != EEXIST)
			return err_sys(err, errno, "make the store's objects/%s", shard);
		failed = linkat(AT_FDCWD, self, store->objects, path, AT_SYMLINK_FOLLOW);
	}
	if (failed && errno == EEXIST)
		return 0;
	return failed ? err_sys(err, errno, "link object %s", path) : 1;
}

/* The directories of all of them each time: another process may have made a name and not yet synced it. */
int store_sync_names(struct store *store, const struct digest *const *digests, size_t count, struct err *err)
{
	bool synced[SHARDS] = {false};
	for (size_t i = 0; i < count; i++) {
		char path[STORE_OBJECT_PATH_SIZE], shard[STORE_SHARD_SIZE];
		bool *done = &synced[digests[i]->bytes[0]];
		if (*done)
			continue;
		snprintf(shard, sizeof(shard), "%.2s", store_object_path(digests[i], path));
		FD_AUTO int dir = fd_open_beneath(store->objects, shard, O_RDONLY | O_DIRECTORY, 0);
		if (dir < 0)
			return err_sys(err, -dir, "open the store's objects/%s", shard);
		if (fsync(dir) < 0)
			return err_sys(err, errno, "sync the store's objects/%s", shard);
		*done = true;
	}
	return count == 0 || fsync(store->objects) == 0 ? 0 : err_sys(err, errno, "sync the store's objects");
}

static int sync_name(struct store *store, const struct digest *digest, struct err *err)
{
	return store_sync_names(store, &digest, 1, err);
}

/* 1 when the object is there, as far as its size tells; 0 when it is not. */
static int present(struct store *store, const struct digest *digest, int64_t size, struct err *err)
{
	char path[STORE_OBJECT_PATH_SIZE];
	struct stat status;
	store_object_path(digest, path);
	if (fstatat(store->objects, path, &status, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	FD_AUTO int fd = open_object(store, digest, &status, err);
	if (fd < 0)
		return fd;
	if (status.st_size != size)
		return err_set(err, ERR_DAMAGED, "object %s has %lld bytes, not %lld", path, (long long)status.st_size,
		               (long long)size);
	return 1;
}

/* What has a name may be executed by somebody at once, which nobody can while it is open for writing (ETXTBSY). */
static int reopen_for_reading(int *fd, struct err *err)
{
	char self[32];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", *fd);
	int again = open(self, O_RDONLY | O_CLOEXEC);
	if (again < 0)
		return err_sys(err, errno, "open a new object again");
	close(*fd);
	*fd = again;
	return 0;
}

/* Gives the unnamed file its name. Its bytes are on the disk before that, always: a name that a power cut left with other bytes
 * would stand in the way of every later put. */
static int commit(struct store *store, int *object, const struct digest *digest, int64_t size, struct err *err)
{
	if (fdatasync(*object) < 0)
		return err_sys(err, errno, "sync an object");
	int reopened = reopen_for_reading(object, err);
	if (reopened < 0)
		return reopened;
	int fd = *object;
	int fault = FAULT_ERR("store.synced", err);
	if (fault < 0)
		return fault;
	int linked = link_object(store, fd, digest, err);
	(void)FAULT("store.named");
	if (linked == 0)
		return present(store, digest, size, err);
	struct stat status;
	if (linked == 1 && fstat(fd, &status) == 0)
		note_write(store, digest, &status);
	return linked;
}

int store_put_fd(struct store *store, int fd, int64_t max_bytes, bool durable, struct digest *ret, int64_t *ret_size,
                 struct err *err)
{
	struct digest digest;
	int64_t size = 0;
	FD_AUTO int object = open_unnamed(store, err);
	if (object < 0)
		return object;
	int result = store_copy_and_hash(fd, object, max_bytes, &digest, &size, err);
	if (result < 0)
		return result;
	result = present(store, &digest, size, err);
	if (result == 0)
		result = commit(store, &object, &digest, size, err);
	if (result >= 0 && durable)
		result = sync_name(store, &digest, err);
	if (result < 0)
		return result;
	*ret = digest;
	*ret_size = size;
	return 0;
}

static int write_object(struct store *store, const void *bytes, size_t count, const struct digest *digest, struct err *err)
{
	FD_AUTO int object = open_unnamed(store, err);
	if (object < 0)
		return object;
	int result = fd_write_all(object, bytes, count);
	if (result < 0)
		return err_sys(err, -result, "write an object");
	return commit(store, &object, digest, (int64_t)count, err);
}

int store_put_bytes(struct store *store, const void *bytes, size_t count, bool durable, struct digest *ret, struct err *err)
{
	struct digest digest;
	digest_of(bytes, count, &digest);
	int result = present(store, &digest, (int64_t)count, err);
	if (result == 0)
		result = write_object(store, bytes, count, &digest, err);
	if (result >= 0 && durable)
		result = sync_name(store, &digest, err);
	if (result < 0)
		return result;
	*ret = digest;
	return 0;
}
