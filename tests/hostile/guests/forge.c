/* forge.c - H62: writes the file that it is given, a receipt, to every descriptor from 1 to 255, then exits with 3. */
#include <fcntl.h>

#include "probe.h"

enum { RECEIPT_MAX = 65536 };

int main(int argc, char **argv)
{
	static char receipt[RECEIPT_MAX];
	int file = open(argc > 1 ? argv[1] : "/box/receipt.json", O_RDONLY);
	ssize_t size = file < 0 ? -1 : read(file, receipt, sizeof(receipt));

	if (size <= 0)
		die("receipt");
	close(file);
	for (int fd = 1; fd < 256; fd++)
		if (write(fd, receipt, (size_t)size) != size && errno != EBADF)
			die("write");
	return 3;
}
