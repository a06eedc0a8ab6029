/* escape.c - escapes what a terminal would obey. */
#include "print/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Length that the first byte of a UTF-8 sequence announces; 0 for a byte that cannot begin one. */
static size_t announced_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	if (first >= 0xf0 && first <= 0xf4)
		return 4;
	return 0;
}

/* May `byte` stand at `index` (1, 2, 3) of the sequence that `first` begins? The second byte is where overlong forms, surrogates
 * and values above U+10FFFF show. */
static bool may_follow(unsigned char first, size_t index, unsigned char byte)
{
	if (byte < 0x80 || byte > 0xbf)
		return false;
	if (index != 1)
		return true;
	switch (first) {
	case 0xe0:
		return byte >= 0xa0;
	case 0xed:
		return byte <= 0x9f;
	case 0xf0:
		return byte >= 0x90;
	case 0xf4:
		return byte <= 0x8f;
	default:
		return true;
	}
}

static bool is_c1_control(const unsigned char *bytes, size_t count)
{
	return count == 2 && bytes[0] == 0xc2 && bytes[1] <= 0x9f;
}

static int put_hex(const unsigned char *bytes, size_t count, struct buf *ret, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		int result = buf_printf(ret, err, "\\x%02x", bytes[i]);

		if (result)
			return result;
	}
	return 0;
}

static int put_ascii(unsigned char byte, struct buf *ret, struct err *err)
{
	if (byte == '\n' || byte == '\t' || (byte >= 0x20 && byte < 0x7f))
		return buf_append(ret, &byte, 1, err);

	char caret[2] = {'^', (char)(byte ^ 0x40)};

	return buf_append(ret, caret, sizeof(caret), err);
}

static int put_pending(struct escape *escape, struct buf *ret, struct err *err)
{
	size_t count = escape->count;

	escape->count = 0;
	if (is_c1_control(escape->pending, count))
		return put_hex(escape->pending, count, ret, err);
	return buf_append(ret, escape->pending, count, err);
}

static int put_byte(struct escape *escape, unsigned char byte, struct buf *ret, struct err *err)
{
	if (escape->count && may_follow(escape->pending[0], escape->count, byte)) {
		escape->pending[escape->count++] = byte;
		return escape->count == announced_length(escape->pending[0]) ? put_pending(escape, ret, err) : 0;
	}

	int result = escape_finish(escape, ret, err);

	if (result)
		return result;
	switch (announced_length(byte)) {
	case 0:
		return put_hex(&byte, 1, ret, err);
	case 1:
		return put_ascii(byte, ret, err);
	default:
		escape->pending[escape->count++] = byte;
		return 0;
	}
}

int escape_bytes(struct escape *escape, const void *bytes, size_t count, struct buf *ret, struct err *err)
{
	const unsigned char *next = bytes;

	for (size_t i = 0; i < count; i++) {
		int result = put_byte(escape, next[i], ret, err);

		if (result)
			return result;
	}
	return 0;
}

int escape_finish(struct escape *escape, struct buf *ret, struct err *err)
{
	size_t count = escape->count;

	escape->count = 0;
	return put_hex(escape->pending, count, ret, err);
}
