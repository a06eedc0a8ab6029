/* error.h - the error object and the one table of codes.
 *
 * Every function that can fail returns 0 or a negative `enum err_code`, and takes a `struct err *` as its last parameter.
 * The object is untouched on success; on failure it holds the code and a chain of contexts, outermost first, joined by ": ".
 * A NULL object is allowed everywhere and means that the caller wants the code alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
	ERR_TEXT_MAX = 1024, /* bytes of text, NUL included; a longer chain is cut at its innermost end */
};

/* The name of each code (err_code_name) is part of the public vocabulary: it appears in JSON output and in records. */
enum err_code {
	ERR_OK = 0,
	ERR_INVALID = -1,         /* bad input; the text names the place */
	ERR_NO_MEMORY = -2,       /* an allocation failed */
	ERR_IO = -3,              /* a system call failed for a reason that no other code names */
	ERR_NO_SPACE = -4,        /* ENOSPC or EDQUOT, or SQLite's full */
	ERR_LIMIT = -5,           /* a bound of Caisson's own would be exceeded */
	ERR_NOT_FOUND = -6,       /* the named thing does not exist */
	ERR_EXISTS = -7,          /* it exists already */
	ERR_PERMISSION = -8,      /* the kernel or the policy refuses */
	ERR_UNSUPPORTED = -9,     /* not available on this host or in this version */
	ERR_UNENFORCEABLE = -10,  /* a requested limit or property cannot be enforced here */
	ERR_UNVERIFIED = -11,     /* something was set up but could not be verified */
	ERR_STATE = -12,          /* not allowed in the present state; a contract violation when it is ours */
	ERR_FENCED = -13,         /* the lease is lost, or its generation is old */
	ERR_CONFLICT = -14,       /* it contradicts what is recorded */
	ERR_BUSY = -15,           /* held by somebody else; may go away */
	ERR_TIMEOUT = -16,        /* a deadline passed */
	ERR_PROTOCOL = -17,       /* a peer said what it may not say */
	ERR_LOST = -18,           /* the peer (worker, keeper, init) is gone */
	ERR_DAMAGED = -19,        /* stored data does not match its digest or its shape */
	ERR_TOO_NEW = -20,        /* written by a newer version */
	ERR_FOREIGN = -21,        /* it carries somebody else's identity; left untouched */
	ERR_INTERNAL = -22,       /* a bug in Caisson */
};

struct err {
	int code;
	char text[ERR_TEXT_MAX];
};

#define ERR_INIT ((struct err){.code = 0, .text = ""})

/* Sets code and text. Returns `code`, so that `return err_set(...)` reads well. */
int err_set(struct err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* As err_set, with ": " and the text of errno value `errnum` behind it; the code is derived from it (ENOMEM, ENOSPC, EACCES, …). */
int err_sys(struct err *err, int errnum, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts a context and ": " in front of the present text, keeping the code. Returns `code` (pass the inner call's result). */
int err_context(struct err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The code's stable name, for example "unenforceable"; "unknown" for a number that is none of ours. Never NULL. */
const char *err_code_name(int code);
