/* store_internal.h - the store's object, and how an object is spelled and opened; private to this folder. */
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
