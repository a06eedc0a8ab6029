/* output.c - writes to the caller's descriptors. */
#include "print/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { MESSAGE_MAX = ERR_TEXT_MAX + 256 };

static int lost; /* output_lost() */

int output_lost(void)
{
	return lost;
}

void output_init(struct output *output, int fd)
{
	*output = (struct output){.fd = fd};
	output->dead = fcntl(fd, F_GETFD) < 0;
	output->terminal = !output->dead && isatty(fd);
}

static bool wait_writable(int fd)
{
	struct pollfd poller = {.fd = fd, .events = POLLOUT};

	while (poll(&poller, 1, -1) < 0)
		if (errno != EINTR)
			return false;
	return true;
}

static void write_exact(struct output *output, const char *bytes, size_t count)
{
	while (count && !output->dead) {
		ssize_t written = write(output->fd, bytes, count);

		if (written >= 0) {
			bytes += written;
			count -= (size_t)written;
		} else if (errno == EAGAIN) {
			output->dead = !wait_writable(output->fd);
		} else if (errno != EINTR) {
			output->dead = true;
			if (output->fd == STDOUT_FILENO && errno != EPIPE && lost == 0)
				lost = errno;
		}
	}
}

static void write_escaped(struct output *output, const char *bytes, size_t count)
{
	BUF_AUTO struct buf text = BUF_INIT((OUTPUT_CHUNK + ESCAPE_PENDING_MAX) * ESCAPE_GROWTH);

	while (count && !output->dead) {
		size_t piece = count < OUTPUT_CHUNK ? count : OUTPUT_CHUNK;

		text.len = 0;
		if (escape_bytes(&output->escape, bytes, piece, &text, NULL))
			output->dead = true;
		write_exact(output, text.data, text.len);
		bytes += piece;
		count -= piece;
	}
}

void output_bytes(struct output *output, const void *bytes, size_t count)
{
	if (output->terminal)
		write_escaped(output, bytes, count);
	else
		write_exact(output, bytes, count);
}

void output_finish(struct output *output)
{
	BUF_AUTO struct buf text = BUF_INIT(ESCAPE_PENDING_MAX * ESCAPE_GROWTH);

	if (escape_finish(&output->escape, &text, NULL) == 0)
		write_exact(output, text.data, text.len);
}

void print_text(int fd, const struct buf *text)
{
	struct output output;

	output_init(&output, fd);
	output_bytes(&output, text->data, text->len);
	output_finish(&output);
}

void complain(const char *format, ...)
{
	char message[MESSAGE_MAX];
	BUF_AUTO struct buf line = BUF_INIT(MESSAGE_MAX + 16);
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	if (buf_printf(&line, NULL, "caisson: %s\n", message) == 0)
		print_text(STDERR_FILENO, &line);
}

int print_json(int fd, const json_t *value, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(OUTPUT_TEXT_MAX);
	int result = json_canonical(value, &text, err);

	if (result == 0)
		result = buf_puts(&text, "\n", err);
	if (result == 0)
		print_text(fd, &text);
	return result;
}
