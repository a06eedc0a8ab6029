/* zombies.c - H13: 5,000 children that nobody waits for. */
#include "probe.h"

enum { WANTED = 5000 };

int main(void)
{
	long made = 0, refused = 0;

	for (int i = 0; i < WANTED; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		if (child > 0)
			made++;
		else
			refused++;
	}
	report_number("made", made);
	report_number("refused", refused);
	return 0;
}
