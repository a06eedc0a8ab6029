/* test_outcome.c - the exit status that a run's state comes to is that of `caisson run`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/client.h"
#include "client/outcome.h"

static void expect(int status, const char *receipt)
{
	char text[1024];
	JSON_AUTO json_t *state = NULL;

	snprintf(text, sizeof(text), "{\"run\":\"run-aaaaaaaaaaaaaaaa\",\"receipt\":%s}", receipt);
	assert_int_equal(json_parse(text, strlen(text), &state, NULL), 0);
	assert_int_equal(outcome_status(state), status);
}

static void every_verdict_has_its_status(void **state)
{
	(void)state;
	expect(0, "{\"verdict\":\"succeeded\",\"exit_code\":0}");
	expect(7, "{\"verdict\":\"failed\",\"reason\":\"exit_code\",\"exit_code\":7}");
	expect(124, "{\"verdict\":\"timed_out\",\"reason\":\"cpu_limit\",\"exit_code\":null}");
	expect(137, "{\"verdict\":\"limit_exceeded\",\"reason\":\"memory_limit\",\"exit_code\":null,\"signal\":\"SIGKILL\"}");
	expect(139, "{\"verdict\":\"signaled\",\"reason\":\"SIGSEGV\",\"exit_code\":null,\"signal\":\"SIGSEGV\"}");
	expect(128 + 37, "{\"verdict\":\"signaled\",\"reason\":\"SIGRTMIN+3\",\"exit_code\":null,\"signal\":\"SIGRTMIN+3\"}");
	expect(125, "{\"verdict\":\"failed\",\"reason\":\"artifact_rejected\",\"exit_code\":0}");
	expect(125, "{\"verdict\":\"failed\",\"reason\":\"output_handle_retained\",\"exit_code\":0}");
	expect(125, "{\"verdict\":\"cancelled\",\"exit_code\":null}");
	expect(125, "{\"verdict\":\"interrupted\",\"exit_code\":null}");
	expect(125, "{\"verdict\":\"boundary_error\",\"exit_code\":0}");
	expect(125, "{\"verdict\":\"refused\",\"exit_code\":null}");
}

static void not_found_is_told_from_not_executable(void **state)
{
	(void)state;
	expect(127, "{\"verdict\":\"failed\",\"reason\":\"exec_failed\",\"detail\":\"No such file or directory (ENOENT)\"}");
	expect(126, "{\"verdict\":\"failed\",\"reason\":\"exec_failed\",\"detail\":\"Permission denied (EACCES)\"}");
	expect(126, "{\"verdict\":\"failed\",\"reason\":\"exec_failed\",\"detail\":\"\"}");
}

/* What we do not understand is nobody's success. */
static void an_unknown_receipt_is_125(void **state)
{
	(void)state;
	expect(125, "{\"verdict\":\"splendid\",\"exit_code\":0}");
	expect(125, "{}");
	expect(125, "null");
}

static void expect_quarantined(const char *text, const char *verdict)
{
	JSON_AUTO json_t *run = NULL;

	assert_int_equal(json_parse(text, strlen(text), &run, NULL), 0);
	assert_true(outcome_known(run));
	assert_null(outcome_receipt(run));
	assert_int_equal(outcome_status(run), CLIENT_CAISSON);

	JSON_AUTO json_t *provisional = outcome_provisional(run);
	const char *found = json_string_value(json_object_get(provisional, "verdict"));

	assert_string_equal(found ? found : "", verdict);
}

static void a_provisional_result_is_an_end_and_no_success(void **state)
{
	(void)state;
	expect_quarantined("{\"state\":\"quarantined\",\"receipt\":null,\"provisional_result\":{\"verdict\":\"succeeded\"}}",
	                   "succeeded");
	expect_quarantined("{\"state\":\"quarantined\",\"receipt\":null}", "");
}

static void a_run_that_goes_on_has_no_outcome(void **state)
{
	(void)state;
	static const char text[] = "{\"run\":\"run-aaaaaaaaaaaaaaaa\",\"state\":\"running\",\"receipt\":null}";
	JSON_AUTO json_t *run = NULL;

	assert_int_equal(json_parse(text, strlen(text), &run, NULL), 0);
	assert_false(outcome_known(run));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_verdict_has_its_status),
		cmocka_unit_test(not_found_is_told_from_not_executable),
		cmocka_unit_test(an_unknown_receipt_is_125),
		cmocka_unit_test(a_provisional_result_is_an_end_and_no_success),
		cmocka_unit_test(a_run_that_goes_on_has_no_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
