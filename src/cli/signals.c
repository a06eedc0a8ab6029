/* signals.c - counts the signals that stop a run. A handler has nothing but file-scope state to work on. */
#include "cli/signals.h"

#include <errno.h>
#include <stddef.h>

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

static volatile sig_atomic_t count;
static volatile sig_atomic_t first;
static struct worker *volatile waiting;

static void hear(int signal)
{
	int keep = errno;

	if (count == 0)
		first = signal;
	if (count < 2)
		count++;
	worker_interrupt(waiting);
	errno = keep;
}

void signals_ignore_pipe(void)
{
	signal(SIGPIPE, SIG_IGN);
}

static int set_all(void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(stop_signals) / sizeof(stop_signals[0]); i++)
		sigaddset(&action.sa_mask, stop_signals[i]);
	for (size_t i = 0; i < sizeof(stop_signals) / sizeof(stop_signals[0]); i++) {
		struct sigaction before;

		if (sigaction(stop_signals[i], NULL, &before) < 0)
			return -errno;
		/* Whoever started us with a signal ignored (nohup, a shell's background job) meant it. */
		if (before.sa_handler != SIG_IGN && sigaction(stop_signals[i], &action, NULL) < 0)
			return -errno;
	}
	return 0;
}

int signals_catch(struct worker *worker, struct err *err)
{
	waiting = worker;

	int result = set_all(hear);

	return result ? err_sys(err, -result, "catch signals") : 0;
}

void signals_release(void)
{
	(void)set_all(SIG_DFL);
}

const volatile sig_atomic_t *signals_count(void)
{
	return &count;
}

int signals_first(void)
{
	return first;
}
