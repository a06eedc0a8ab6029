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

/* Copies from `in` to `out` (-1: nowhere) and hashes on the way. ERR_LIMIT above max_bytes. */
int store_copy_and_hash(int in, int out, int64_t max_bytes, struct digest *ret, int64_t *ret_size, struct err *err);

#define NOTES_DIR "checked"
#define TREES_DIR "trees"
#define TREE_NOTE_SUFFIX ".tree"

enum {
	NOTE_MIN_BYTES = 64 * 1024, /* what is smaller is read faster than a note about it is found */
	NOTE_TEXT_SIZE = 128,
};

/* Notes say as what file (device, inode, size, time of its last change) an object was read and found right. They only spare work:
 * without one, or when it cannot be written, the object is read. */
bool note_holds(struct store *store, const struct digest *digest, const struct stat *object);
void note_write(struct store *store, const struct digest *digest, const struct stat *object);
void note_remove(struct store *store, const struct digest *digest);

/* The same by the note's own name and text, for what is not one object. */
bool note_holds_text(struct store *store, const char *name, const char *text, size_t length);
void note_write_text(struct store *store, const char *name, const char *text, size_t length);
void note_remove_text(struct store *store, const char *name);

/* What a note holds of a file, as text that is compared and never parsed. Returns its length. */
size_t note_describe(const struct stat *object, char text[static NOTE_TEXT_SIZE]);

/* Would a change from now on show in the time of the last change? Not when that is this very tick of the clock. */
bool note_settled(const struct stat *object);
/* Is it, by what a note holds, the same unchanged file? */
bool note_same(const struct stat *before, const struct stat *after);
