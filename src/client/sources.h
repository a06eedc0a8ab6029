/* sources.h - the inputs of a manifest that are files of the caller: they are sent to the keeper's store and named by digest
 * instead. */
#pragma once

#include <sys/stat.h>

#include "base/error.h"
#include "base/json.h"
#include "client/http.h"
#include "client/source_tree.h"

/* An input or the stdin of the document that has a `source`, the first of them; NULL when there is none (any more). Borrowed. path:
 * its own, for errors. */
json_t *sources_next(json_t *manifest, char path[static JSON_PATH_MAX]);

/* Opens it for reading; "-" is standard input, if it is allowed. What comes from a pipe or a device, which only standard input may
 * be, is read into a temporary file first: it is bounded then, and can be sent again. A directory, which standard input may not be, is
 * read whole. Anything else that is no regular file is refused by name. */
struct source {
	int fd; /* -1: it is a directory, or none */
	int64_t bytes;
	struct stat file; /* as it was when it was opened */
	struct source_tree *tree;
};
#define SOURCE_NONE ((struct source){.fd = -1})
int sources_open(const json_t *input, bool standard_input, struct source *ret, struct err *err);
void sources_close(struct source *source);

/* The next call that sends it, or the last one again, from its beginning. ERR_IO. */
int sources_call(const struct source *source, struct http_call *ret, struct err *err);

/* Puts a digest in the place of the source. ERR_NO_MEMORY. */
int sources_replace(json_t *input, const char *digest, struct err *err);

/* Hears the answer: 1 when there is another call to make; else puts the digest that the keeper answered in the place of the source. It must be
 * that of what was sent. */
int sources_settle(struct source *source, json_t *input, const struct http_call *call, struct err *err);
