/* hello.c - H50: prints a line. */
#include "probe.h"

int main(void)
{
	printf("hello\n");
	return 0;
}
