/* buffer.c - a growing byte buffer with a hard limit. */
#include "base/buffer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUF_FIRST_CAP = 256 };

void buf_done(struct buf *buf)
{
	if (!buf)
		return;
	free(buf->data);
	buf->data = NULL;
	buf->len = 0;
	buf->cap = 0;
}

/* Makes room for `count` more bytes and the NUL. cap counts the NUL's byte. */
static int reserve(struct buf *buf, size_t count, struct err *err)
{
	if (count > buf->max - buf->len)
		return err_set(err, ERR_LIMIT, "more than %zu bytes", buf->max);
	size_t need = buf->len + count + 1;
	if (need == 0)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	if (need <= buf->cap)
		return 0;
	size_t cap = buf->cap > BUF_FIRST_CAP / 2 ? buf->cap : BUF_FIRST_CAP / 2;
	cap = cap <= SIZE_MAX / 2 ? cap * 2 : SIZE_MAX;
	if (cap < need)
		cap = need;
	char *data = realloc(buf->data, cap);
	if (!data)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	buf->data = data;
	buf->cap = cap;
	return 0;
}

int buf_append(struct buf *buf, const void *bytes, size_t count, struct err *err)
{
	int r = reserve(buf, count, err);
	if (r < 0)
		return r;
	if (count > 0)
		memcpy(buf->data + buf->len, bytes, count);
	buf->len += count;
	buf->data[buf->len] = '\0';
	return 0;
}

int buf_puts(struct buf *buf, const char *text, struct err *err)
{
	return buf_append(buf, text, strlen(text), err);
}

int buf_printf(struct buf *buf, struct err *err, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length < 0)
		return err_set(err, ERR_INTERNAL, "a format that cannot be printed");
	int r = reserve(buf, (size_t)length, err);
	if (r < 0)
		return r;
	va_start(args, format);
	vsnprintf(buf->data + buf->len, (size_t)length + 1, format, args);
	va_end(args);
	buf->len += (size_t)length;
	return 0;
}

char *buf_take(struct buf *buf)
{
	char *data = buf->data;

	buf->data = NULL;
	buf->len = 0;
	buf->cap = 0;
	return data;
}
