/* output.c - H53 to H60: writes, `output HOW [N]`.
 *
 * yes: "y" lines for ever. drip: a byte each 10 ms. stderr: N MiB to stderr only. tail: N bytes, no newline. bytes: every awkward
 * byte. escapes: terminal escapes. reopen: stdout by its names in /proc and /dev, then without end.
 * nonblock: N bytes without waiting for the reader, after tries to seek in them and to cut them. */
#include <fcntl.h>
#include <poll.h>
#include <time.h>

#include "probe.h"

enum { BLOCK_BYTES = 65536 };

static char block[BLOCK_BYTES];

static void write_all(int fd, const char *bytes, size_t count)
{
	while (count > 0) {
		ssize_t n = write(fd, bytes, count);

		if (n < 0)
			exit(errno == EPIPE ? 97 : 96);
		bytes += n;
		count -= (size_t)n;
	}
}

static void drip(void)
{
	struct timespec pause_time = {.tv_nsec = 10000000};

	for (;;) {
		write_all(1, ".", 1);
		nanosleep(&pause_time, NULL);
	}
}

static void reopen(void)
{
	const char *names[] = {"/proc/self/fd/1", "/dev/stdout", "/dev/fd/1"};
	int fd = 1;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int again = open(names[i], O_WRONLY | O_CLOEXEC);

		fprintf(stderr, "%s=%s\n", names[i], again >= 0 ? "0" : strerrorname_np(errno));
		if (again >= 0)
			fd = again;
	}
	for (;;)
		write_all(fd, block, sizeof(block));
}

static void report_error(const char *name, long result)
{
	fprintf(stderr, "%s=%s\n", name, result >= 0 ? "0" : strerrorname_np(errno));
}

static void write_impatiently(size_t count)
{
	struct pollfd out = {.fd = 1, .events = POLLOUT};

	report_error("nonblock", fcntl(1, F_SETFL, O_NONBLOCK));
	report_error("seek", lseek(1, 1 << 20, SEEK_SET));
	report_error("truncate", ftruncate(1, 1 << 20));
	while (count > 0) {
		ssize_t n = write(1, block, count < sizeof(block) ? count : sizeof(block));

		if (n < 0 && errno != EAGAIN)
			die("write");
		if (n < 0)
			poll(&out, 1, -1);
		else
			count -= (size_t)n;
	}
}

static void awkward_bytes(void)
{
	char all[256];

	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	write_all(1, all, sizeof(all));
	write_all(1, "\0\0\xff\xfe caf\xc3", 9);
}

static void escapes(void)
{
	static const char text[] = "\033]52;c;aGk=\007\033[2J\033[31mred\rover\b\033]0;title\007\x9b" "1m\x7f end\n";

	write_all(1, text, sizeof(text) - 1);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "yes";
	size_t number = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = i % 2 ? '\n' : 'y';
	if (strcmp(how, "drip") == 0)
		drip();
	else if (strcmp(how, "reopen") == 0)
		reopen();
	else if (strcmp(how, "bytes") == 0)
		awkward_bytes();
	else if (strcmp(how, "escapes") == 0)
		escapes();
	else if (strcmp(how, "nonblock") == 0)
		write_impatiently(number);
	else if (strcmp(how, "stderr") == 0)
		for (size_t i = 0; i < number * 16; i++)
			write_all(2, block, sizeof(block));
	else if (strcmp(how, "tail") == 0) {
		for (size_t left = number; left > 0; left -= left < sizeof(block) ? left : sizeof(block)) {
			memset(block, 'a' + (int)(left % 26), sizeof(block));
			write_all(1, block, left < sizeof(block) ? left : sizeof(block));
		}
	} else
		for (;;)
			write_all(1, block, sizeof(block));
	return 0;
}
