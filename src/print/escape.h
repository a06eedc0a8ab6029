/* escape.h - makes bytes of a guest harmless to a terminal. Pure.
 *
 * Printable ASCII, newline, tab and valid UTF-8 pass. Other C0 controls and DEL become ^X (^[ for ESC), C1 controls (also when
 * spelt in UTF-8) and bytes that are no UTF-8 become \xHH. */
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

enum {
	ESCAPE_PENDING_MAX = 4, /* bytes of one UTF-8 character */
	ESCAPE_GROWTH = 4,      /* bytes out for one byte in, at most */
};

/* A character may be split between two calls: its first bytes wait here. Zero-initialised. */
struct escape {
	unsigned char pending[ESCAPE_PENDING_MAX];
	size_t count;
};

/* Appends the escaped form. ERR_LIMIT, ERR_NO_MEMORY from the buffer. */
int escape_bytes(struct escape *escape, const void *bytes, size_t count, struct buf *ret, struct err *err);

/* The end of the text: a character that was never completed is escaped. */
int escape_finish(struct escape *escape, struct buf *ret, struct err *err);
