/* lookups.c - H47: asks for N names that do not exist; the kernel remembers each that it did not find. */
#include <sys/stat.h>
#include <time.h>

#include "probe.h"

int main(int argc, char **argv)
{
	/* Names of this run alone: what an earlier one has left in the cache would be found there, and charged to nobody. */
	struct timespec now;
	long number = argc > 1 ? strtol(argv[1], NULL, 10) : 1000, missing = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	for (long i = 0; i < number; i++) {
		char name[64];
		struct stat status;

		snprintf(name, sizeof(name), "/usr/lib/no-such-name-%lld-%ld-%ld", (long long)now.tv_sec, now.tv_nsec, i);
		missing += stat(name, &status) != 0 && errno == ENOENT;
	}
	report_number("missing", missing);
	return 0;
}
