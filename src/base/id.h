/* id.h - random identifiers: a lower-case prefix, '-', and 80 random bits in Crockford-like base 32 (a-z, 2-7).
 *
 * They name runs ("run-…"), attempts ("att-…"), boundaries ("bnd-…"), owners ("own-…"), ledgers ("led-…"). They carry no time and no
 * order, are safe as a file name and as a cgroup name, and are never reused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
	ID_PREFIX_MAX = 3,
	ID_RANDOM_CHARS = 16,                                  /* 80 bits */
	ID_STEM_MIN = 2,                                       /* the fewest of them that a person may name one by */
	ID_SIZE = ID_PREFIX_MAX + 1 + ID_RANDOM_CHARS + 1,     /* NUL included */
};

/* prefix: 1 to 3 letters a-z. Uses getrandom(2), which does not fail once the kernel's pool is ready; aborts if it does. */
void id_new(const char *prefix, char ret[static ID_SIZE]);

/* Has `text` exactly this shape with this prefix? */
bool id_valid(const char *prefix, const char *text);

/* Is `text` the beginning of such an identifier, with ID_STEM_MIN random characters at least, or the whole of it? */
bool id_begins(const char *prefix, const char *text);

/* Fills bytes from getrandom(2), EINTR and short reads handled; aborts on failure. */
void id_random(void *bytes, size_t count);
