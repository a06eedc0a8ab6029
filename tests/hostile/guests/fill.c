/* fill.c - H40, H52: fills /tmp and /dev/shm until it may not; `fill list` says what is there instead; `fill some` leaves a little
 * everywhere. */
#include <dirent.h>
#include <fcntl.h>

#include "probe.h"

enum { BLOCK_BYTES = 1 << 20 };

static void fill(const char *name, const char *path)
{
	static char block[BLOCK_BYTES];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	long written = 0;
	ssize_t n = fd;

	memset(block, 1, sizeof(block));
	while (fd >= 0 && (n = write(fd, block, sizeof(block))) > 0)
		written += n;
	report(name, n);
	printf("%s.bytes=%ld\n", name, written);
	fflush(stdout);
}

static void list(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;

	while (directory && (entry = readdir(directory)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			printf("found=%s/%s\n", path, entry->d_name);
}

static void leave_some(void)
{
	static const char *const paths[] = {"/box/some", "/tmp/some", "/dev/shm/some", "/out/some"};
	static char block[BLOCK_BYTES];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int fd = open(paths[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			die(paths[i]);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "list") == 0) {
		list("/tmp");
		list("/dev/shm");
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "some") == 0) {
		leave_some();
		return 0;
	}
	fill("tmp", "/tmp/fill");
	fill("shm", "/dev/shm/fill");
	return 0;
}
