/* test_cpu_list.c - lists of CPUs are read in any order and written in one way, the kernel's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "manifest/cpu_list.h"

static void a_list_has_one_canonical_form(void **state)
{
	(void)state;
	static const struct {
		const char *text, *canonical;
		int count;
	} cases[] = {
		{"0", "0", 1}, {"3-3", "3", 1}, {"0,1", "0-1", 2}, {"2-3,0", "0,2-3", 3}, {"5,4,3,1", "1,3-5", 4}, {"0-3,2-7", "0-7", 8},
		{"1,1,1", "1", 1}, {"63-64", "63-64", 2}, {"1023", "1023", 1}, {"0-1023", "0-1023", 1024},
	};
	char text[CPU_LIST_TEXT_SIZE];

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct cpu_list list, again;
		assert_true(cpu_list_parse(cases[i].text, &list));
		assert_string_equal(cpu_list_format(&list, text), cases[i].canonical);
		assert_int_equal(cpu_list_count(&list), cases[i].count);
		assert_true(cpu_list_parse(text, &again));
		assert_memory_equal(&list, &again, sizeof list);
	}
}

static void what_is_no_list_is_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {"", " ", "all", "-1", "1-", "-", ",", "0,", ",0", "0,,1", "3-1", "01", "00", "0-01", "0 1", "0, 1", " 0",
	                                    "0\n", "1024", "9999", "10000", "0-1024", "0-3:1/2", "0x1", "+1", "1.5", "0--1", "4294967296"};
	struct cpu_list list = {{7}};

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		if (cpu_list_parse(wrong[i], &list))
			fail_msg("\"%s\" was read", wrong[i]);
	assert_int_equal(list.words[0], 7);
}

/* The room for text is enough for the list that is the longest to write. */
static void the_longest_list_fits(void **state)
{
	(void)state;
	struct cpu_list list = {{0}}, again;
	char text[CPU_LIST_TEXT_SIZE];

	for (int cpu = 0; cpu < CPU_LIST_CPUS; cpu++)
		if (cpu % 3 != 2)
			cpu_list_add(&list, cpu);
	assert_true(strlen(cpu_list_format(&list, text)) < CPU_LIST_TEXT_SIZE - 1);
	assert_true(cpu_list_parse(text, &again));
	assert_memory_equal(&list, &again, sizeof list);
}

static void no_cpu_is_the_empty_text(void **state)
{
	(void)state;
	char text[CPU_LIST_TEXT_SIZE] = "x";

	assert_string_equal(cpu_list_format(&(struct cpu_list){{0}}, text), "");
}

static void the_first_that_others_lack_is_found(void **state)
{
	(void)state;
	struct cpu_list list, others;

	assert_true(cpu_list_parse("0,2,70", &list) && cpu_list_parse("0-3", &others));
	assert_int_equal(cpu_list_first_beyond(&list, &others), 70);
	assert_int_equal(cpu_list_first_beyond(&others, &list), 1);
	assert_int_equal(cpu_list_first_beyond(&list, &list), -1);
	assert_true(cpu_list_has(&list, 70));
	assert_false(cpu_list_has(&list, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_has_one_canonical_form),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(the_longest_list_fits),
		cmocka_unit_test(no_cpu_is_the_empty_text),
		cmocka_unit_test(the_first_that_others_lack_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
