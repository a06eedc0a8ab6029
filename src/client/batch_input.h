/* batch_input.h - cuts what a descriptor gives into lines, a bounded piece at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct batch_input {
	int fd;          /* owned; -1 once all was read */
	struct buf text; /* what was read and not given out yet begins at `at` */
	size_t at;
	size_t searched; /* so much behind `at` has no newline */
	size_t line_max;
	int64_t number; /* of the last line that was given out */
	bool skipping;  /* the rest of a line that is too long */
};

void batch_input_init(struct batch_input *input, int fd, size_t line_max);
void batch_input_done(struct batch_input *input);

/* Reads once: what a pipe has at hand, or blocks when it has nothing (poll first). ERR_IO. */
int batch_input_fill(struct batch_input *input, struct err *err);

/* The next line that is there whole, without its newline; lines of nothing but white space are passed over, and counted. Valid
 * until the next call. False: there is none yet, or, with fd -1, none any more. */
struct batch_text {
	const char *text;
	size_t length;
	int64_t number;
	bool too_long; /* text is NULL */
};
bool batch_input_line(struct batch_input *input, struct batch_text *ret);
