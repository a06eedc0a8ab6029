/* test_outcome.c - exit statuses and the lines that people read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>

#include "cli/outcome.h"
#include "print/report.h"

static int status_of(struct verdict verdict, bool provisional, int first_signal)
{
	const struct keeper_result result = {.run = {.verdict = verdict, .provisional = provisional}};

	return outcome_status(&result, first_signal);
}

static void a_run_exits_as_its_verdict_says(void **state)
{
	static const struct {
		struct verdict verdict;
		int first_signal, status;
	} cases[] = {
		{{.kind = VERDICT_SUCCEEDED}, 0, 0},
		{{.kind = VERDICT_FAILED, .reason = "exit_code", .exit_code = 137}, 0, 137},
		{{.kind = VERDICT_FAILED, .reason = "output_handle_retained"}, 0, 125},
		{{.kind = VERDICT_SIGNALED, .exit_code = -1, .signal = SIGSEGV}, 0, 139},
		{{.kind = VERDICT_TIMED_OUT, .exit_code = -1, .signal = SIGKILL}, 0, 124},
		{{.kind = VERDICT_LIMIT_EXCEEDED, .exit_code = -1, .signal = SIGKILL}, 0, 137},
		{{.kind = VERDICT_CANCELLED, .exit_code = -1, .signal = SIGTERM}, SIGINT, 130},
		{{.kind = VERDICT_REFUSED, .exit_code = -1}, 0, 125},
		{{.kind = VERDICT_NOT_LAUNCHED, .exit_code = -1}, 0, 125},
		{{.kind = VERDICT_BOUNDARY_ERROR, .exit_code = -1}, 0, 125},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(status_of(cases[i].verdict, false, cases[i].first_signal), cases[i].status);
}

static void a_provisional_success_is_none(void **state)
{
	(void)state;
	assert_int_equal(status_of((struct verdict){.kind = VERDICT_SUCCEEDED}, true, 0), 125);
	assert_int_equal(status_of((struct verdict){.kind = VERDICT_FAILED, .reason = "exit_code", .exit_code = 3}, true, 0), 125);
}

static void a_line_leaves_out_what_is_empty(void **state)
{
	PAGE_AUTO struct page full = PAGE_INIT, bare = PAGE_INIT;

	(void)state;
	report_line(&full, "run-x", "timed_out", "wall_limit", "ran 1000 ms of 1000 ms");
	assert_string_equal(full.text.data, "timed_out: wall_limit: ran 1000 ms of 1000 ms (run-x)");
	report_line(&bare, "run-x", "succeeded", "", "");
	assert_string_equal(bare.text.data, "succeeded (run-x)");
}

static void the_summary_says_empty_only_when_it_was_verified(void **state)
{
	static const char *const cases[][2] = {
		{"{\"boundary\":{\"verified_empty\":true,\"survivors_killed\":0}}", "boundary verified empty"},
		{"{\"boundary\":{\"verified_empty\":true,\"survivors_killed\":2}}", "boundary verified empty, survivors killed: 2"},
		{"{\"boundary\":{\"verified_empty\":false,\"survivors_killed\":null}}", "boundary NOT verified empty"},
		{"{}", "boundary NOT verified empty"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		PAGE_AUTO struct page page = PAGE_INIT;
		JSON_AUTO json_t *receipt = NULL;

		assert_int_equal(json_parse(cases[i][0], strlen(cases[i][0]), &receipt, NULL), 0);
		report_boundary(&page, receipt);
		assert_string_equal(page.text.data, cases[i][1]);
	}
}

static void what_could_not_be_read_is_unknown_and_not_zero(void **state)
{
	PAGE_AUTO struct page page = PAGE_INIT;
	JSON_AUTO json_t *receipt = json_pack("{s:{s:i,s:n,s:i,s:n,s:n}}", "usage", "wall_ms", 12, "cpu_user_ms", "cpu_system_ms",
	                                      0, "memory_peak_bytes", "pids_peak");

	(void)state;
	report_usage(&page, receipt);
	assert_string_equal(page.text.data, "wall 12 ms, CPU user unknown, CPU system 0 ms, memory peak unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_exits_as_its_verdict_says),
		cmocka_unit_test(a_provisional_success_is_none),
		cmocka_unit_test(a_line_leaves_out_what_is_empty),
		cmocka_unit_test(the_summary_says_empty_only_when_it_was_verified),
		cmocka_unit_test(what_could_not_be_read_is_unknown_and_not_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
