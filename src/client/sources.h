/* sources.h - the inputs of a manifest that are files of the caller: they are sent to the keeper's store and named by digest
 * instead. */
#pragma once

#include <sys/stat.h>

#include "base/error.h"
#include "base/json.h"
#include "client/http.h"

/* An input or the stdin of the document that has a `source`, the first of them; NULL when there is none (any more). Borrowed. path:
 * its own, for errors. */
json_t *sources_next(json_t *manifest, char path[static JSON_PATH_MAX]);

/* Opens it for reading; "-" is standard input, if it is allowed. What comes from a pipe or a device, which only standard input may
 * be, is read into a temporary file first: it is bounded then, and can be sent again. Anything else that is no regular file is
 * refused by name. */
struct source {
	int fd;
	int64_t bytes;
	struct stat file; /* as it was when it was opened */
};
int sources_open(const json_t *input, bool standard_input, struct source *ret, struct err *err);

/* The call that sends it, from its beginning: PUT /v1/objects. ERR_IO. */
int sources_call(const struct source *source, struct http_call *ret, struct err *err);

/* Puts a digest in the place of the source. ERR_NO_MEMORY. */
int sources_replace(json_t *input, const char *digest, struct err *err);

/* Puts the digest that the keeper answered in the place of the source; it must be that of what was sent. */
int sources_settle(json_t *input, const struct http_call *call, struct err *err);
