/* terminal.c - H91: puts bytes into the terminal's input, with and without bit 32 of the request set. */
#include <fcntl.h>
#include <sys/ioctl.h>

#include "probe.h"

static void inject(const char *name, int fd)
{
	static const unsigned long high = 1UL << 32;
	char text[64], letter = 'X', subcode = 3; /* TIOCLINUX 3: paste the selection */

	snprintf(text, sizeof(text), "sti.%s", name);
	PROBE(text, syscall(SYS_ioctl, fd, (unsigned long)TIOCSTI, &letter));
	snprintf(text, sizeof(text), "sti.high.%s", name);
	PROBE(text, syscall(SYS_ioctl, fd, TIOCSTI | high, &letter));
	snprintf(text, sizeof(text), "linux.%s", name);
	PROBE(text, syscall(SYS_ioctl, fd, (unsigned long)TIOCLINUX, &subcode));
	snprintf(text, sizeof(text), "linux.high.%s", name);
	PROBE(text, syscall(SYS_ioctl, fd, TIOCLINUX | high, &subcode));
}

int main(void)
{
	int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);

	PROBE("tty", terminal);
	inject("0", 0);
	inject("1", 1);
	inject("2", 2);
	if (terminal >= 0)
		inject("tty", terminal);
	return 0;
}
