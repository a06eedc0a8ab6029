/* id.c - random identifiers. */
#include "base/id.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

enum { BITS_PER_CHAR = 5, RANDOM_BYTES = ID_RANDOM_CHARS * BITS_PER_CHAR / 8 };

void id_random(void *bytes, size_t count)
{
	unsigned char *at = bytes;

	while (count > 0) {
		ssize_t n = getrandom(at, count, 0);
		if (n < 0 && errno == EINTR)
			continue;
		/* An identifier that could be guessed or repeated is worse than none. */
		if (n <= 0)
			abort();
		at += n;
		count -= (size_t)n;
	}
}

void id_new(const char *prefix, char ret[static ID_SIZE])
{
	size_t length = strlen(prefix);
	uint8_t bytes[RANDOM_BYTES];

	if (length < 1 || length > ID_PREFIX_MAX)
		abort();
	id_random(bytes, sizeof bytes);
	memcpy(ret, prefix, length);
	ret[length] = '-';
	char *at = ret + length + 1;
	unsigned pending = 0, bits = 0;
	for (size_t i = 0; i < sizeof bytes; i++) {
		pending = pending << 8 | bytes[i];
		for (bits += 8; bits >= BITS_PER_CHAR; bits -= BITS_PER_CHAR)
			*at++ = alphabet[pending >> (bits - BITS_PER_CHAR) & 31];
	}
	*at = '\0';
}

/* How many random characters follow; -1 when something else does. */
static int random_chars(const char *prefix, const char *text)
{
	size_t length = strlen(prefix);

	if (strncmp(text, prefix, length) != 0 || text[length] != '-')
		return -1;
	const char *random = text + length + 1;
	size_t count = strspn(random, alphabet);
	return random[count] == '\0' && count <= ID_RANDOM_CHARS ? (int)count : -1;
}

bool id_valid(const char *prefix, const char *text)
{
	return random_chars(prefix, text) == ID_RANDOM_CHARS;
}

bool id_begins(const char *prefix, const char *text)
{
	return random_chars(prefix, text) >= ID_STEM_MIN;
}
