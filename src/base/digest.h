/* digest.h - SHA-256 (libcrypto), and its spelling "sha256:<64 lower-case hex digits>". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
	DIGEST_BYTES = 32,
	DIGEST_HEX_SIZE = 65,  /* 64 hex digits and NUL */
	DIGEST_TEXT_SIZE = 72, /* "sha256:" + 64 hex digits + NUL */
};

struct digest {
	uint8_t bytes[DIGEST_BYTES];
};

/* One-shot. Cannot fail short of a broken libcrypto, in which case it aborts: a digest that might be wrong is worse than none. */
void digest_of(const void *data, size_t length, struct digest *ret);

bool digest_equal(const struct digest *a, const struct digest *b);

const char *digest_hex(const struct digest *digest, char text[static DIGEST_HEX_SIZE]);
const char *digest_text(const struct digest *digest, char text[static DIGEST_TEXT_SIZE]);

/* Parses the "sha256:…" spelling, nothing else. ERR_INVALID. */
int digest_parse(const char *text, struct digest *ret, struct err *err);

/* Streaming. hasher_new returns NULL when out of memory; hasher_finish may be called once, then only hasher_free. NULL is freed. */
struct hasher;
struct hasher *hasher_new(void);
void hasher_add(struct hasher *hasher, const void *data, size_t length);
void hasher_finish(struct hasher *hasher, struct digest *ret);
void hasher_free(struct hasher *hasher);
