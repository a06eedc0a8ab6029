/* ending.c - H28, H29, H35: ends at once: `ending` with 0, `ending exit N`, `ending raise N`. */
#include <signal.h>

#include "probe.h"

int main(int argc, char **argv)
{
	int number = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;

	if (argc > 1 && strcmp(argv[1], "raise") == 0) {
		signal(number, SIG_DFL);
		raise(number);
		return 98;
	}
	return number;
}
