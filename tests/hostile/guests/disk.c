/* disk.c - H46, H104: a work space on disk. `disk whole MIB` writes a file of that size there and reads it back; `disk mapped` leaves one
 * with a descendant that has it mapped, dirty and locked as far as it may. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

#include "probe.h"

enum { BLOCK_BYTES = 1 << 20, MAPPED_BYTES = 4 << 20, LOCKED_BYTES = 65536 };

/* Each block is another, and known by its number. */
static void fill_block(uint64_t *block, uint64_t number)
{
	for (size_t i = 0; i < BLOCK_BYTES / sizeof(*block); i++)
		block[i] = (number << 32 | i) * UINT64_C(0x9e3779b97f4a7c15);
}

static void write_and_read(long blocks)
{
	static uint64_t block[BLOCK_BYTES / sizeof(uint64_t)], found[BLOCK_BYTES / sizeof(uint64_t)];
	int fd = open("/box/whole", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	long wrong = 0;

	if (fd < 0)
		die("open");
	for (long i = 0; i < blocks; i++) {
		fill_block(block, (uint64_t)i);
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			die("write");
	}
	if (lseek(fd, 0, SEEK_SET) != 0)
		die("lseek");
	for (long i = 0; i < blocks; i++) {
		fill_block(block, (uint64_t)i);
		if (read(fd, found, sizeof(found)) != (ssize_t)sizeof(found))
			die("read");
		wrong += memcmp(block, found, sizeof(block)) != 0;
	}
	report_number("blocks", blocks);
	report_number("wrong", wrong);
}

static void stay_mapped(int ready)
{
	int fd = open("/tmp/mapped", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char *bytes = fd < 0 || ftruncate(fd, MAPPED_BYTES) != 0
	                      ? MAP_FAILED : mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (bytes == MAP_FAILED)
		die("map");
	memset(bytes, 1, MAPPED_BYTES);
	if (mlock(bytes, LOCKED_BYTES) != 0)
		die("mlock");
	for (int stream = 0; stream <= 2; stream++)
		close(stream);
	if (write(ready, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void leave_mapped(void)
{
	int ends[2];
	char byte;

	if (pipe2(ends, O_CLOEXEC) != 0)
		die("pipe2");
	if (fork() == 0)
		stay_mapped(ends[1]);
	close(ends[1]);
	report_number("mapped", read(ends[0], &byte, 1));
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "whole") == 0)
		write_and_read(strtol(argv[2], NULL, 10));
	else if (argc > 1 && strcmp(argv[1], "mapped") == 0)
		leave_mapped();
	else
		return 98;
	return 0;
}
