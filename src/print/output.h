/* output.h - writing to the caller's descriptors: exact bytes to a pipe or file, escaped text to a terminal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "print/escape.h"

enum {
	OUTPUT_CHUNK = 16 * 1024,           /* bytes escaped at a time */
	OUTPUT_TEXT_MAX = 64 * 1024 * 1024, /* of one document that a command prints */
};

/* One of the caller's descriptors. A reader that has gone away (EPIPE, or any other error) makes it `dead`: the rest is dropped in
 * silence, because a reader never decides over a run. */
struct output {
	int fd;
	bool terminal;
	bool dead;
	struct escape escape;
};

/* fd is borrowed. One that is not open gives a dead output. */
void output_init(struct output *output, int fd);

/* Blocks until all is written, also on a descriptor that somebody made non-blocking. */
void output_bytes(struct output *output, const void *bytes, size_t count);

/* The end of the stream: writes what the escaper still holds. */
void output_finish(struct output *output);

/* errno of the first write to the standard output that failed for something else than a reader that has gone away; 0: there was none. For a
 * command whose answer is what it prints. */
int output_lost(void);

/* One call for text that is at hand: a buffer, a line for standard error ("caisson: …" and a newline), a JSON document
 * (canonical, and a newline). print_json: ERR_LIMIT, ERR_NO_MEMORY, ERR_INVALID; the others say what they can. */
void print_text(int fd, const struct buf *text);
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
int print_json(int fd, const json_t *value, struct err *err);
