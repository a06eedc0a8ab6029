/* bench_ledger.c - what a cold run pays to its ledger: open, accept, append, intent, seal, close; medians over many processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ledger_fixture.h"

enum { ROUNDS = 200, STEPS = 8 };

static const char *const step_names[STEPS] = {"open", "accept", "append", "append", "intent", "append", "seal", "close"};

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void one_run(const char *path, int64_t ret_ns[static STEPS])
{
	struct ledger_fixture fixture;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	int64_t at[STEPS + 1];

	at[0] = clock_mono_ns();
	fixture_open(&fixture, path, false);
	at[0] += 0;
	at[1] = clock_mono_ns();
	fixture_accept(&fixture, &attempt);
	at[2] = clock_mono_ns();
	assert_int_equal(fixture_append(&fixture, &attempt, "prepared", "preparing", &err), 0);
	at[3] = clock_mono_ns();
	assert_int_equal(fixture_append(&fixture, &attempt, "enrolled", "enrolled", &err), 0);
	at[4] = clock_mono_ns();
	assert_int_equal(fixture_intent(&fixture, &attempt, &err), 0);
	at[5] = clock_mono_ns();
	assert_int_equal(fixture_append(&fixture, &attempt, "exited", "exited", &err), 0);
	at[6] = clock_mono_ns();
	assert_int_equal(fixture_seal(&fixture, &attempt, "hello\n", &err), 0);
	at[7] = clock_mono_ns();
	fixture_close(&fixture);
	at[8] = clock_mono_ns();
	for (int i = 0; i < STEPS; i++)
		ret_ns[i] = at[i + 1] - at[i];
}

int main(void)
{
	struct ledger_fixture fixture;
	int64_t (*ns)[STEPS] = mmap(NULL, ROUNDS * sizeof *ns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t total = 0;

	fixture_make(&fixture);
	fixture_close(&fixture);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t child = fork();
		if (child == 0) {
			one_run(fixture.path, ns[i]);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	for (int step = 0; step < STEPS; step++) {
		int64_t values[ROUNDS];
		for (int i = 0; i < ROUNDS; i++)
			values[i] = ns[i][step];
		qsort(values, ROUNDS, sizeof values[0], by_value);
		total += values[ROUNDS / 2];
		printf("%-8s p50 %7.3f ms  p90 %7.3f ms\n", step_names[step], (double)values[ROUNDS / 2] / 1e6,
		       (double)values[ROUNDS * 9 / 10] / 1e6);
	}
	printf("sum of medians %.3f ms, n = %d processes\n", (double)total / 1e6, ROUNDS);
	fixture_remove(&fixture);
	return 0;
}
