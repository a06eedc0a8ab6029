/* test_evidence.c - the list of verified properties is bounded and says what it was told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "boundary/boundary.h"

static void line_says_what_was_added(void **state)
{
	struct evidence_list list = {.count = 0};
	(void)state;
	assert_int_equal(evidence_add(&list, "limit.pids", EVIDENCE_OBSERVED, NULL, "pids.max %d", 64), 0);
	assert_int_equal(list.count, 1);
	assert_string_equal(list.lines[0].name, "limit.pids");
	assert_string_equal(list.lines[0].detail, "pids.max 64");
	assert_string_equal(evidence_grade_name(list.lines[0].grade), "observed");
}

static void full_list_takes_no_more(void **state)
{
	static struct evidence_list list;
	struct err err = ERR_INIT;
	(void)state;
	for (int i = 0; i < EVIDENCE_MAX; i++)
		assert_int_equal(evidence_add(&list, "ns.pid", EVIDENCE_PROBED, &err, "line %d", i), 0);
	assert_int_equal(evidence_add(&list, "ns.net", EVIDENCE_PROBED, &err, "one more"), ERR_LIMIT);
	assert_int_equal(list.count, EVIDENCE_MAX);
}

static void name_is_never_cut(void **state)
{
	struct evidence_list list = {.count = 0};
	char name[EVIDENCE_NAME_MAX + 1];
	(void)state;
	memset(name, 'n', EVIDENCE_NAME_MAX);
	name[EVIDENCE_NAME_MAX] = '\0';
	assert_int_equal(evidence_add(&list, name, EVIDENCE_OBSERVED, NULL, "x"), ERR_LIMIT);
	name[EVIDENCE_NAME_MAX - 1] = '\0';
	assert_int_equal(evidence_add(&list, name, EVIDENCE_OBSERVED, NULL, "x"), 0);
	assert_string_equal(list.lines[0].name, name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_says_what_was_added),
		cmocka_unit_test(full_list_takes_no_more),
		cmocka_unit_test(name_is_never_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
