/* buffer.h - a growing byte buffer with a hard limit. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/error.h"

/* data is NUL-terminated behind len whenever it is not NULL, so that text can be used as a C string. Never larger than max bytes
 * (the NUL not counted). Owner: whoever called buf_init; released with buf_done. */
struct buf {
	char *data;
	size_t len;
	size_t cap;
	size_t max;
};

#define BUF_INIT(limit) ((struct buf){.data = NULL, .len = 0, .cap = 0, .max = (limit)})

/* Releases the memory; the buffer is empty and usable again afterwards. NULL is allowed. */
void buf_done(struct buf *buf);

/* ERR_LIMIT when max would be exceeded (nothing is appended then), ERR_NO_MEMORY. */
int buf_append(struct buf *buf, const void *bytes, size_t count, struct err *err);
int buf_puts(struct buf *buf, const char *text, struct err *err);
int buf_printf(struct buf *buf, struct err *err, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Hands the memory to the caller (free with free()); NULL for a buffer that never grew. */
char *buf_take(struct buf *buf);

#define BUF_AUTO __attribute__((cleanup(buf_done)))
