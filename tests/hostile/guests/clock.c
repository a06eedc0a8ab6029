/* clock.c - H25, H26, H30: how exactly time is counted, `clock HOW N`.
 *
 * short: N children of a millisecond each, then what the kernel says that all used. dodge: burns, but a child stops it now and
 * then. cpu: ends after N milliseconds of its own CPU time. wall: ends N milliseconds after its start. */
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "probe.h"

static double now_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void burn_until(double ms)
{
	while (now_ms(CLOCK_PROCESS_CPUTIME_ID) < ms)
		;
}

static long used_us(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static void make_short_ones(long number)
{
	for (long i = 0; i < number; i++) {
		pid_t child = fork();

		if (child < 0)
			die("fork");
		if (child == 0) {
			burn_until(1);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	report_number("used_us", used_us(RUSAGE_SELF) + used_us(RUSAGE_CHILDREN));
}

static __attribute__((noreturn)) void dodge(void)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	pid_t burner = getpid();

	if (fork() == 0)
		for (;;) {
			kill(burner, SIGSTOP);
			nanosleep(&moment, NULL);
			kill(burner, SIGCONT);
			nanosleep(&moment, NULL);
		}
	burn_until(1e9);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "dodge";
	long number = argc > 2 ? strtol(argv[2], NULL, 10) : 0;

	if (strcmp(how, "short") == 0)
		make_short_ones(number);
	else if (strcmp(how, "cpu") == 0)
		burn_until((double)number);
	else if (strcmp(how, "wall") == 0) {
		const struct timespec rest = {.tv_sec = number / 1000, .tv_nsec = number % 1000 * 1000000};

		clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
	} else
		dodge();
	return 0;
}
