/* json.h - what Caisson adds to Jansson: strict parsing, the canonical form, and reading fields with their path.
 *
 * Canonical form (contract, Terms): UTF-8, keys sorted by bytes, integers only, no insignificant space. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum {
	JSON_PATH_MAX = 256,   /* a path as shown in an error, cut when longer */
};

/* Parses one document: duplicate keys, trailing bytes, invalid UTF-8, NUL in strings and a BOM are errors that name line and column
 * ("line 3, column 7: …"). Fractions parse here (so that the reader can name their path) and are refused by json_canonical and the
 * readers below. Depth is bounded by Jansson's parser (2048). Owner of the result: the caller (json_decref). Out of memory aborts, here
 * and from then on in all of Jansson: it cannot be trusted to notice. */
int json_parse(const char *text, size_t length, json_t **ret, struct err *err);

/* Appends the canonical form. ERR_INVALID for a real number, ERR_LIMIT; the buffer may then hold a part of it. */
int json_canonical(const json_t *value, struct buf *ret, struct err *err);

/* A place in a document: the value and its path, for errors such as "$.limits.wall_ms: must be an integer".
 * A reader borrows the document; it owns nothing. */
struct json_at {
	const json_t *value;
	char path[JSON_PATH_MAX];
};

void json_at_root(const json_t *value, struct json_at *ret);
/* A member; ret->value is NULL when it is absent (the path is set all the same). */
void json_at_key(const struct json_at *at, const char *key, struct json_at *ret);
void json_at_index(const struct json_at *at, size_t index, struct json_at *ret);

/* ERR_INVALID naming the path when `at` is not an object or has a key that is not in the NULL-terminated list. */
int json_only_keys(const struct json_at *at, const char *const *keys, struct err *err);

/* Typed reads; ERR_INVALID naming the path. An absent value leaves *ret alone and returns 0: set the default first. */
int json_read_int(const struct json_at *at, int64_t min, int64_t max, int64_t *ret, struct err *err);
int json_read_bool(const struct json_at *at, bool *ret, struct err *err);
/* Borrowed from the document. max counts bytes. An embedded NUL is an error. */
int json_read_string(const struct json_at *at, size_t max, const char **ret, struct err *err);

/* A string member that must be there: ERR_INVALID naming its path when it is not. */
int json_need_string(const struct json_at *at, const char *key, const char **ret, struct err *err);

/* Sets a string member that may hold any bytes the kernel allows. Valid UTF-8 without control characters goes in as it is; otherwise
 * every byte that is not printable ASCII, and '\\', is written as \xHH (documented escaping of names and captured text in views). */
int json_set_bytes(json_t *object, const char *key, const void *bytes, size_t length, struct err *err);

static inline void json_decref_p(json_t **value) { if (*value) json_decref(*value); }
#define JSON_AUTO __attribute__((cleanup(json_decref_p)))
