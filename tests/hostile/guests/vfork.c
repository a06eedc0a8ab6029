/* vfork.c - H09: main sleeps in vfork(2), because its child never executes anything nor ends. */
#include "probe.h"

int main(void)
{
	if (vfork() == 0)
		for (;;)
			pause();
	return 0;
}
