/* batch_input.c - reads lines. */
#include "client/batch_input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

enum { PIECE_BYTES = 64 * 1024 };

void batch_input_init(struct batch_input *input, int fd, size_t line_max)
{
	/* A line that is too long is noticed with the piece that makes it so. */
	*input = (struct batch_input){.fd = fd, .text = BUF_INIT(line_max + 2 * PIECE_BYTES), .line_max = line_max};
}

void batch_input_done(struct batch_input *input)
{
	fd_close(&input->fd);
	buf_done(&input->text);
}

static void forget_given(struct batch_input *input)
{
	if (!input->at)
		return;
	input->text.len -= input->at;
	memmove(input->text.data, input->text.data + input->at, input->text.len);
	input->at = 0;
}

int batch_input_fill(struct batch_input *input, struct err *err)
{
	char piece[PIECE_BYTES];
	ssize_t got = 0;

	forget_given(input);
	do
		got = read(input->fd, piece, sizeof(piece));
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_sys(err, errno, "read the batch");
	if (got == 0)
		fd_close(&input->fd);
	return buf_append(&input->text, piece, (size_t)got, err);
}

static bool is_blank(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!strchr(" \t\r", text[i]) || text[i] == '\0')
			return false;
	return true;
}

/* Moves over the next line: true when one is there whole. The last one needs no newline. */
static bool next_line(struct batch_input *input, struct batch_text *ret)
{
	size_t left = input->text.len - input->at;
	const char *begin = left ? input->text.data + input->at : "";
	const char *newline = memchr(begin + input->searched, '\n', left - input->searched);
	size_t length = newline ? (size_t)(newline - begin) : left;

	if (!newline && (input->fd >= 0 || !left)) {
		input->searched = left;
		return false;
	}
	input->searched = 0;
	input->at += length + (newline != NULL);
	*ret = (struct batch_text){.text = begin, .length = length, .number = ++input->number};
	return true;
}

/* Drops what is there of a line that is too long already. */
static bool drop_long(struct batch_input *input)
{
	size_t left = input->text.len - input->at;

	if (!input->skipping && (left <= input->line_max || input->searched < left))
		return false;
	input->at = input->text.len;
	input->searched = 0;
	input->skipping = true;
	return true;
}

bool batch_input_line(struct batch_input *input, struct batch_text *ret)
{
	struct batch_text line;

	while (next_line(input, &line)) {
		bool was_skipping = input->skipping;

		input->skipping = false;
		if (was_skipping || line.length > input->line_max) {
			*ret = (struct batch_text){.number = line.number, .too_long = true};
			return true;
		}
		if (!is_blank(line.text, line.length)) {
			*ret = line;
			return true;
		}
	}
	drop_long(input);
	/* It ended without a newline, and nothing is left of it. */
	if (input->skipping && input->fd < 0) {
		input->skipping = false;
		*ret = (struct batch_text){.number = ++input->number, .too_long = true};
		return true;
	}
	return false;
}
