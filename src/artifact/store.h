/* store.h - the content-addressed store: sealed inputs and large streams, named by SHA-256.
 *
 * DIR/objects/ab/cdef…: regular files, one link, mode 0555, our owner, never changed after they appear. An object is written without a
 * name (O_TMPFILE in DIR/tmp), synced, and linked into place; so a name exists only with all its bytes, and an interrupted put leaves
 * nothing behind. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

struct store;

/* dir: descriptor of the store's directory (duplicated; made complete with its subdirectories when absent). */
int store_open(int dir, struct store **ret, struct err *err);
void store_free(struct store *store);

/* Borrowed descriptor of the store's directory. */
int store_dir_fd(const struct store *store);

/* Copies the bytes in and returns their digest and size. max_bytes: ERR_LIMIT above. fd is read from where it stands to its end. durable:
 * the object's name survives a power cut too. Idempotent: an object that is there already is kept, ERR_DAMAGED when its size or kind
 * cannot be right. ERR_NO_SPACE leaves nothing behind. */
int store_put_bytes(struct store *store, const void *bytes, size_t count, bool durable, struct digest *ret, struct err *err);
int store_put_fd(struct store *store, int fd, int64_t max_bytes, bool durable, struct digest *ret, int64_t *ret_size, struct err *err);

/* Opens an object read-only. ERR_NOT_FOUND, or ERR_DAMAGED when it is no regular file of ours. */
int store_get(struct store *store, const struct digest *digest, int *ret_fd, int64_t *ret_size, struct err *err);

/* Reads the whole object and compares its digest. ERR_DAMAGED, ERR_NOT_FOUND. */
int store_check(struct store *store, const struct digest *digest, struct err *err);
