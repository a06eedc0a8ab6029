/* input.c - H63, H64: `input none` reads nothing, `input one` reads one byte, `input what` says what descriptor 0 is. */
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "probe.h"

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "what";
	struct stat info;
	char byte;

	if (strcmp(how, "none") == 0)
		return 5;
	report_number("read", read(0, &byte, 1));
	if (strcmp(how, "one") == 0)
		return 6;
	if (fstat(0, &info) != 0)
		die("fstat");
	printf("fd0=%s %u:%u\n", S_ISCHR(info.st_mode) ? "char" : "other", major(info.st_rdev), minor(info.st_rdev));
	return 0;
}
