/* guest.c - the program that exactness.py runs inside Caisson and bare: uses up time and says how much by its own clocks.
 *
 * Usage: guest busy one|threads|children CPU_MS   uses that much CPU time, prints what getrusage says of itself and of its children
 *        guest until wall|cpu US                  ends when its clock shows that much, prints the clock
 *        guest forever wall|cpu US                never ends; from that time on it prints both clocks every STAMP_NS
 * All figures it prints are nanoseconds; a clock starts at main(). */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

enum { THREADS = 4, CHILDREN = 2000, STAMP_NS = 200000 };

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "guest: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static int64_t read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void spin(clockid_t clock, int64_t until_ns)
{
	while (read_ns(clock) < until_ns)
		;
}

static void *spin_thread(void *share_ns)
{
	spin(CLOCK_THREAD_CPUTIME_ID, *(int64_t *)share_ns);
	return NULL;
}

static void spin_threads(int64_t total_ns)
{
	pthread_t threads[THREADS];
	int64_t share_ns = total_ns / THREADS;

	for (int i = 0; i < THREADS; i++)
		if ((errno = pthread_create(&threads[i], NULL, spin_thread, &share_ns)) != 0)
			die("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void spin_children(int64_t total_ns)
{
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		if (child < 0)
			die("fork");
		if (child == 0) {
			spin(CLOCK_PROCESS_CPUTIME_ID, total_ns / CHILDREN);
			_exit(0);
		}
		if (waitpid(child, NULL, 0) != child)
			die("waitpid");
	}
}

static int64_t used_ns(int who)
{
	struct rusage usage;

	if (getrusage(who, &usage) != 0)
		die("getrusage");
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

static void busy(const char *how, int64_t total_ns)
{
	if (strcmp(how, "threads") == 0)
		spin_threads(total_ns);
	else if (strcmp(how, "children") == 0)
		spin_children(total_ns);
	else
		spin(CLOCK_PROCESS_CPUTIME_ID, total_ns);
	printf("%lld %lld\n", (long long)used_ns(RUSAGE_SELF), (long long)used_ns(RUSAGE_CHILDREN));
}

/* Written at once: the next stamp may never come. */
static void stamp(int64_t wall_from_ns, int64_t cpu_from_ns)
{
	char line[64];
	int length = snprintf(line, sizeof(line), "%lld %lld\n", (long long)(read_ns(CLOCK_MONOTONIC) - wall_from_ns),
	                      (long long)(read_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_from_ns));

	if (write(STDOUT_FILENO, line, (size_t)length) != length)
		die("write");
}

int main(int argc, char **argv)
{
	/* What the process used before it became this program is set-up: no part of the run. */
	int64_t wall_from_ns = read_ns(CLOCK_MONOTONIC), cpu_from_ns = read_ns(CLOCK_PROCESS_CPUTIME_ID);

	if (argc != 4) {
		fprintf(stderr, "usage: guest busy|until|forever HOW TIME\n");
		return 2;
	}
	int64_t number = strtoll(argv[3], NULL, 10);
	if (strcmp(argv[1], "busy") == 0) {
		busy(argv[2], number * 1000000);
		return EXIT_SUCCESS;
	}
	bool wall = strcmp(argv[2], "wall") == 0;
	clockid_t clock = wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
	int64_t end_ns = number * 1000 + (wall ? wall_from_ns : cpu_from_ns);
	spin(clock, end_ns);
	stamp(wall_from_ns, cpu_from_ns);
	while (strcmp(argv[1], "forever") == 0) {
		end_ns += STAMP_NS;
		spin(clock, end_ns);
		stamp(wall_from_ns, cpu_from_ns);
	}
	return EXIT_SUCCESS;
}
