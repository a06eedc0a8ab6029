/* lookups.c - H47: asks for N names that do not exist; the kernel remembers each that it did not find. */
#include <sys/stat.h>

#include "probe.h"

int main(int argc, char **argv)
{
	long number = argc > 1 ? strtol(argv[1], NULL, 10) : 1000, missing = 0;

	for (long i = 0; i < number; i++) {
		char name[64];
		struct stat status;

		snprintf(name, sizeof(name), "/usr/lib/no-such-name-%ld-%ld", (long)getpid(), i);
		missing += stat(name, &status) != 0 && errno == ENOENT;
	}
	report_number("missing", missing);
	return 0;
}
