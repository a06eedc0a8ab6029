/* bench_ledger.c - what a cold run pays to its ledger, step by step: medians over many processes, wall and processor time.
 *
 * Usage: bench_ledger [DIRECTORY], on whose file system the ledger is made (default /tmp). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "ledger_fixture.h"

enum { ROUNDS = 300, STEPS = 8 };

static const char *const step_names[STEPS] = {"open", "accept", "append", "append", "intent", "append", "seal", "close"};

struct sample {
	int64_t wall_ns[STEPS + 1], cpu_ns[STEPS + 1];
};

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void stamp(struct sample *sample, int step)
{
	sample->cpu_ns[step] = cpu_ns();
	sample->wall_ns[step] = clock_mono_ns();
}

/* As a cold `caisson run` does it: a process of its own, executed, for each round. */
static int one_run(const char *path)
{
	struct ledger_fixture fixture;
	struct ledger_attempt attempt;
	struct sample sample;
	struct err err = ERR_INIT;

	stamp(&sample, 0);
	fixture_open(&fixture, path, false);
	stamp(&sample, 1);
	fixture_accept(&fixture, &attempt);
	stamp(&sample, 2);
	assert_int_equal(fixture_append(&fixture, &attempt, "prepared", "preparing", &err), 0);
	stamp(&sample, 3);
	assert_int_equal(fixture_append(&fixture, &attempt, "enrolled", "enrolled", &err), 0);
	stamp(&sample, 4);
	assert_int_equal(fixture_intent(&fixture, &attempt, &err), 0);
	stamp(&sample, 5);
	assert_int_equal(fixture_append(&fixture, &attempt, "exited", "exited", &err), 0);
	stamp(&sample, 6);
	assert_int_equal(fixture_seal(&fixture, &attempt, "hello\n", &err), 0);
	stamp(&sample, 7);
	fixture_close(&fixture);
	stamp(&sample, 8);
	return fd_write_all(STDOUT_FILENO, &sample, sizeof sample) < 0;
}

static void measure(const char *path, struct sample *ret)
{
	int out[2];
	pid_t child;

	assert_int_equal(pipe(out), 0);
	child = fork();
	if (child == 0) {
		dup2(out[1], STDOUT_FILENO);
		execl("/proc/self/exe", "bench_ledger", "--one", path, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	assert_int_equal(fd_read_full(out[0], ret, sizeof *ret), sizeof *ret);
	close(out[0]);
	waitpid(child, NULL, 0);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The n-th of ten of the time between two stamps, in ms. */
static double tenth(const struct sample *samples, int from, int to, bool cpu, int n)
{
	int64_t values[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		values[i] =
			cpu ? samples[i].cpu_ns[to] - samples[i].cpu_ns[from] : samples[i].wall_ns[to] - samples[i].wall_ns[from];
	qsort(values, ROUNDS, sizeof values[0], by_value);
	return (double)values[(ROUNDS - 1) * n / 10] / 1e6;
}

static void print_row(const struct sample *samples, const char *name, int from, int to)
{
	printf("%-8s wall p10 %7.3f p50 %7.3f p90 %7.3f   cpu p50 %7.3f ms\n", name, tenth(samples, from, to, false, 1),
	       tenth(samples, from, to, false, 5), tenth(samples, from, to, false, 9), tenth(samples, from, to, true, 5));
}

int main(int argc, char **argv)
{
	static struct sample samples[ROUNDS];
	struct ledger_fixture fixture;
	char path[FIXTURE_PATH_SIZE];

	if (argc == 3 && strcmp(argv[1], "--one") == 0)
		return one_run(argv[2]);
	snprintf(path, sizeof path, "%s/caisson-bench-XXXXXX", argc == 2 ? argv[1] : "/tmp");
	assert_non_null(mkdtemp(path));
	fixture_open(&fixture, path, false);
	fixture_close(&fixture);
	for (int i = 0; i < ROUNDS; i++)
		measure(path, &samples[i]);
	for (int step = 0; step < STEPS; step++)
		print_row(samples, step_names[step], step, step + 1);
	print_row(samples, "all", 0, STEPS);
	printf("n = %d processes\n", ROUNDS);
	fixture_remove(&fixture);
	return 0;
}
