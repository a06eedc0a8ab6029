/* store_internal.h - the store's object, how an object is spelled and opened, and notes about objects; private to this folder. */
#pragma once

#include <sys/stat.h>

#include "artifact/store.h"

enum {
	STORE_OBJECT_MODE = 0555,                     /* whether an input may be executed is for the mount that shows it to say */
	STORE_SHARD_SIZE = 3,                         /* "ab" and NUL */
	STORE_OBJECT_PATH_SIZE = DIGEST_HEX_SIZE + 1, /* "ab/cdef…" and NUL */
};

struct store {
	int dir, objects, tmp;
	int lock; /* -1: not opened yet */
	int holds;
	bool sweeping;
};

/* Relative to objects. Returns path. */
const char *store_object_path(const struct digest *digest, char path[static STORE_OBJECT_PATH_SIZE]);

/* Is this what an object looks like: a regular file with one link, our owner, and the mode it was made with? */
bool store_is_object(const struct stat *status);

#define NOTES_DIR "checked"

enum { NOTE_MIN_BYTES = 64 * 1024 }; /* what is smaller is read faster than a note about it is found */

/* Notes say as what file (device, inode, size, time of its last change) an object was read and found right. They only spare work:
 * without one, or when it cannot be written, the object is read. */
bool note_holds(struct store *store, const struct digest *digest, const struct stat *object);
void note_write(struct store *store, const struct digest *digest, const struct stat *object);
void note_remove(struct store *store, const struct digest *digest);

/* Would a change from now on show in the time of the last change? Not when that is this very tick of the clock. */
bool note_settled(const struct stat *object);
/* Is it, by what a note holds, the same unchanged file? */
bool note_same(const struct stat *before, const struct stat *after);
