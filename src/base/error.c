/* error.c - fills and extends the error object; the one table of code names. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text that was cut inside a UTF-8 character would make a JSON string of it impossible: drop the broken character as well. */
static void trim_cut_character(char *text)
{
	size_t end = strlen(text);
	size_t start = end;

	while (start > 0 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
		start--;
	if (start == 0)
		return;
	unsigned char lead = (unsigned char)text[start - 1];
	size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
	if (want > 1 && end - (start - 1) < want)
		text[start - 1] = '\0';
}

/* Appends to the text, cut to what fits. */
static void append(struct err *err, const char *text)
{
	size_t used = strlen(err->text);
	size_t room = ERR_TEXT_MAX - 1 - used;
	size_t length = strlen(text);

	if (length <= room) {
		memcpy(err->text + used, text, length + 1);
		return;
	}
	memcpy(err->text + used, text, room);
	err->text[ERR_TEXT_MAX - 1] = '\0';
	trim_cut_character(err->text);
}

__attribute__((format(printf, 2, 0)))
static void set_text(struct err *err, const char *format, va_list args)
{
	/* The arguments may point into the present text. */
	char text[ERR_TEXT_MAX];
	int length = vsnprintf(text, sizeof text, format, args);

	if (length < 0)
		text[0] = '\0';
	else if ((size_t)length >= sizeof text)
		trim_cut_character(text);
	memcpy(err->text, text, strlen(text) + 1);
}

int err_set(struct err *err, int code, const char *format, ...)
{
	if (!err)
		return code;
	va_list args;
	va_start(args, format);
	set_text(err, format, args);
	va_end(args);
	err->code = code;
	return code;
}

static int code_of_errno(int errnum)
{
	switch (errnum) {
	case ENOMEM:
		return ERR_NO_MEMORY;
	case ENOSPC:
	case EDQUOT:
		return ERR_NO_SPACE;
	case EACCES:
	case EPERM:
	case EROFS:
		return ERR_PERMISSION;
	case ENOENT:
	case ESRCH:
		return ERR_NOT_FOUND;
	case EEXIST:
		return ERR_EXISTS;
	case EBUSY:
	case EAGAIN:
		return ERR_BUSY;
	case ETIMEDOUT:
		return ERR_TIMEOUT;
	case ENOSYS:
	case EOPNOTSUPP:
		return ERR_UNSUPPORTED;
	case EPIPE:
	case ECONNRESET:
		return ERR_LOST;
	default:
		return ERR_IO;
	}
}

int err_sys(struct err *err, int errnum, const char *format, ...)
{
	int code = code_of_errno(errnum);

	if (!err)
		return code;
	va_list args;
	va_start(args, format);
	set_text(err, format, args);
	va_end(args);
	const char *description = strerrordesc_np(errnum);
	append(err, ": ");
	append(err, description ? description : "unknown system error");
	err->code = code;
	return code;
}

int err_context(struct err *err, int code, const char *format, ...)
{
	if (!err)
		return code;
	char inner[ERR_TEXT_MAX];
	memcpy(inner, err->text, strlen(err->text) + 1);
	va_list args;
	va_start(args, format);
	set_text(err, format, args);
	va_end(args);
	append(err, ": ");
	append(err, inner);
	err->code = code;
	return code;
}

const char *err_code_name(int code)
{
	static const char *const names[] = {
		[-ERR_OK] = "ok",
		[-ERR_INVALID] = "invalid",
		[-ERR_NO_MEMORY] = "no_memory",
		[-ERR_IO] = "io",
		[-ERR_NO_SPACE] = "no_space",
		[-ERR_LIMIT] = "limit",
		[-ERR_NOT_FOUND] = "not_found",
		[-ERR_EXISTS] = "exists",
		[-ERR_PERMISSION] = "permission",
		[-ERR_UNSUPPORTED] = "unsupported",
		[-ERR_UNENFORCEABLE] = "unenforceable",
		[-ERR_UNVERIFIED] = "unverified",
		[-ERR_STATE] = "state",
		[-ERR_FENCED] = "fenced",
		[-ERR_CONFLICT] = "conflict",
		[-ERR_BUSY] = "busy",
		[-ERR_TIMEOUT] = "timeout",
		[-ERR_PROTOCOL] = "protocol",
		[-ERR_LOST] = "lost",
		[-ERR_DAMAGED] = "damaged",
		[-ERR_TOO_NEW] = "too_new",
		[-ERR_FOREIGN] = "foreign",
		[-ERR_INTERNAL] = "internal",
	};

	if (code > 0 || code < ERR_INTERNAL)
		return "unknown";
	return names[-code];
}
