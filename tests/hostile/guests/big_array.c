/* big_array.c - H38: a static array of 700 MiB, every page of it used. */
#include "probe.h"

enum { BYTES = 700 << 20 };

static char array[BYTES];

int main(void)
{
	for (size_t i = 0; i < BYTES; i += 4096)
		array[i] = 1;
	printf("%d\n", array[BYTES - 4096]);
	return 0;
}
