/* store.h - the content-addressed store: sealed inputs and large streams, named by SHA-256.
 *
 * DIR/objects/ab/cdef…: regular files, one link, mode 0555, our owner, never changed after they appear. An object is written
 * without a name (O_TMPFILE in DIR/tmp), synced, and linked into place; so a name exists only with all its bytes, and an
 * interrupted put leaves nothing behind. DIR/checked/abcdef…: notes about large objects, see store_get_checked.
 *
 * What is in it is named by a ledger. Who stores an object, or finds it there, holds the store until the ledger's commit that
 * names it; who sweeps waits for that (docs/adr/0009). Both are flocks of DIR. */
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

/* Copies the bytes in and returns their digest and size. max_bytes: ERR_LIMIT above. fd is read from where it stands to its end.
 * durable: the object's name survives a power cut too. Idempotent: an object that is there already is kept, ERR_DAMAGED when its
 * size or kind cannot be right. ERR_NO_SPACE leaves nothing behind. */
int store_put_bytes(struct store *store, const void *bytes, size_t count, bool durable, struct digest *ret, struct err *err);
int store_put_fd(struct store *store, int fd, int64_t max_bytes, bool durable, struct digest *ret, int64_t *ret_size,
                 struct err *err);

/* A file without a name, empty, to be written and read: for bytes that arrive piece by piece, before they are put. It is on the store's file
 * system, so that a full one is noticed early. */
int store_spool(struct store *store, int *ret_fd, struct err *err);

/* Makes the names of objects that were put without `durable` survive a power cut. */
int store_sync_names(struct store *store, const struct digest *const *digests, size_t count, struct err *err);

/* Opens an object read-only. ERR_NOT_FOUND, or ERR_DAMAGED when it is no regular file of ours. */
int store_get(struct store *store, const struct digest *digest, int *ret_fd, int64_t *ret_size, struct err *err);

/* Reads the whole object and compares its digest. ERR_DAMAGED, ERR_NOT_FOUND. */
int store_check(struct store *store, const struct digest *digest, struct err *err);

/* Both in one, for whoever hands an object out: opens it, and reads it whole unless it is by device, inode, size and ctime the very
 * file that was found right before (docs/adr/0010). The descriptor stands at the beginning. ERR_DAMAGED, ERR_NOT_FOUND. */
int store_get_checked(struct store *store, const struct digest *digest, int *ret_fd, int64_t *ret_size, struct err *err);

enum { STORE_HOLD_WAIT_MS = 30 * 1000 };

/* Counted: as often released. ERR_BUSY when a sweep does not let go for STORE_HOLD_WAIT_MS. */
int store_hold(struct store *store, struct err *err);
/* Nothing when it is not held. */
void store_release(struct store *store);

/* While it lasts nobody holds the store, and what no commit names by now can be removed: to be ended soon. ERR_BUSY after wait_ms. */
int store_sweep_begin(struct store *store, int64_t wait_ms, struct err *err);
void store_sweep_end(struct store *store);
/* Within a sweep. ERR_NOT_FOUND. */
int store_remove(struct store *store, const struct digest *digest, struct err *err);

struct store_entry {
	const char *name;      /* relative to the store's directory */
	bool stray;            /* it is no object and no tree, and the rest is not set */
	bool tree;             /* a directory's copy (tree.h), named by the digest of its listing */
	struct digest digest;
	int64_t size_bytes;
	int64_t stored_at_ms;  /* wall clock */
};

/* Calls fn for each thing below objects/, trees/ and tmp/, and each stray in checked/, in no order; a non-zero result ends the walk
 * and is passed on. */
typedef int (*store_entry_fn)(void *context, const struct store_entry *entry);
int store_walk(struct store *store, store_entry_fn fn, void *context, struct err *err);
