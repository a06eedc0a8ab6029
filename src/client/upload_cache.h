/* upload_cache.h - which files of a batch the keeper has already, so that an input of ten thousand lines is sent once. Pure.
 *
 * A file is known by its device, inode, size and times. One that was changed a moment ago is not entered: it might be changed again
 * without a trace in them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/digest.h"

enum { UPLOAD_CACHE_MAX = 64, UPLOAD_SETTLED_MS = 2000 };

struct upload_known {
	struct stat file;
	char digest[DIGEST_TEXT_SIZE]; /* empty: no entry */
};

/* Zero-initialised. */
struct upload_cache {
	struct upload_known known[UPLOAD_CACHE_MAX];
	size_t next; /* the one that gives way */
};

/* The digest of a file, or NULL. */
const char *upload_cache_find(const struct upload_cache *cache, const struct stat *file);

/* file: as it was before it was read. now_ms: the wall clock. */
void upload_cache_add(struct upload_cache *cache, const struct stat *file, const char *digest, int64_t now_ms);
