/* stubborn.c - H05, H06, H21, H27: does not want to end.
 *
 * spin: every signal blocked and ignored. stop: it and its children stop themselves. sleep: sleeps for ever. xcpu: catches SIGXCPU
 * and goes on. */
#include <signal.h>

#include "probe.h"

static void on_signal(int number)
{
	(void)number;
}

static void ignore_everything(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_IGN);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "spin";
	volatile unsigned long turns = 0;

	if (strcmp(how, "stop") == 0) {
		for (int i = 0; i < 3; i++)
			if (fork() == 0)
				raise(SIGSTOP);
		raise(SIGSTOP);
	}
	while (strcmp(how, "sleep") == 0 || strcmp(how, "stop") == 0)
		pause();
	if (strcmp(how, "xcpu") == 0)
		signal(SIGXCPU, on_signal);
	else
		ignore_everything();
	for (;;)
		turns++;
}
