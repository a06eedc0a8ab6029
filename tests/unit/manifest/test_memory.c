/* test_memory.c - out of memory, at every single allocation in turn: an error, nothing returned, nothing lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "manifest/plan.h"

/* The linker sends the allocations of the libraries under test here (--wrap), but for malloc, which is Jansson's and aborts. Counts down
 * to the one that fails; negative: none does. */
static int left = -1;

static int fails(void)
{
	return left >= 0 && left-- == 0;
}

/* NOLINTBEGIN: the names are the linker's. */
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
char *__real_strdup(const char *text);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
char *__wrap_strdup(const char *text);
/* NOLINTEND */

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	return fails() ? NULL : __real_realloc(memory, size);
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : __real_strdup(text);
}

static const char text[] =
	"{\"version\":\"caisson.manifest/v1\",\"command\":{\"argv\":[\"/usr/bin/python3\",\"main.py\"],\"cwd\":\"/box\",\"env\":{\"TZ\":\"UTC\"}},"
	"\"inputs\":[{\"source\":\"a\",\"target\":\"/box/a\"},{\"text\":\"1\",\"target\":\"/box/b\"}],\"stdin\":{\"text\":\"2\"},"
	"\"outputs\":{\"required\":[\"r\"]},\"limits\":{\"wall_ms\":5,\"cpus\":\"1\"},\"require\":[\"landlock\"],\"labels\":{\"a\":\"b\"}}";

static int parse_compile_and_read(struct err *err)
{
	static const struct plan_host host = {.page_bytes = 4096, .cpus = 2, .memory_bytes = INT64_C(8) << 30, .open_files_hard = 20000, .stack_hard = INT64_MAX,
	.processes_hard = INT64_MAX, .cpu_hard_ms = INT64_MAX, .memory_hard = INT64_MAX, .file_hard = INT64_MAX};
	static const struct plan_input inputs[2];
	static const struct digest policy;
	const struct plan_sealed sealed = {.inputs = inputs, .input_count = 2};
	MANIFEST_AUTO struct manifest *manifest = NULL;
	PLAN_AUTO struct plan *plan = NULL;
	PLAN_AUTO struct plan *read = NULL;

	int r = manifest_parse(text, sizeof text - 1, &manifest, err);
	assert_int_equal(manifest == NULL, r < 0);
	if (r < 0)
		return r;
	r = plan_compile(manifest, &host, &sealed, &policy, &plan, err);
	assert_int_equal(plan == NULL, r < 0);
	if (r < 0)
		return r;
	r = plan_parse(plan->canonical, plan->canonical_length, &read, err);
	assert_int_equal(read == NULL, r < 0);
	return r;
}

static void each_allocation_may_fail(void **state)
{
	(void)state;
	enum { ALLOCATIONS_MAX = 10000 };
	int n = 0;

	for (; n < ALLOCATIONS_MAX; n++) {
		struct err err = ERR_INIT;
		left = n;
		int r = parse_compile_and_read(&err);
		int untouched = left;
		left = -1;
		if (untouched >= 0) {
			assert_int_equal(r, 0);
			break;
		}
		if (r != ERR_NO_MEMORY)
			fail_msg("allocation %d: %d \"%s\"", n, r, err.text);
	}
	assert_in_range(n, 50, ALLOCATIONS_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_may_fail)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
