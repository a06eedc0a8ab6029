/* test_public.c - what of a record is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "keeper/api/api_internal.h"

static void assert_view(const char *kind, const char *body, const char *expected)
{
	struct ledger_record record = {.seq = 1, .at_ms = 0, .body = body};
	BUF_AUTO struct buf text = BUF_INIT(64 * 1024);
	snprintf(record.kind, sizeof(record.kind), "%s", kind);
	JSON_AUTO json_t *view = public_record(&record);
	assert_non_null(view);
	assert_int_equal(json_canonical(view, &text, NULL), 0);
	assert_string_equal(text.data, expected);
}

static void a_known_record_shows_its_named_members_alone(void **state)
{
	(void)state;
	assert_view("accepted",
	            "{\"boundary\":\"bnd-a\",\"manifest\":\"sha256:m\",\"plan\":null,\"principal\":\"uid:0\",\"profile\":\"linux\","
	            "\"run\":\"run-a\"}",
	            "{\"at\":\"1970-01-01T00:00:00.000Z\",\"manifest\":\"sha256:m\",\"plan\":null,\"profile\":\"linux\"}");
	assert_view("admission", "{\"admit\":true,\"epoch\":\"sha256:e\",\"findings\":[]}",
	            "{\"admit\":true,\"at\":\"1970-01-01T00:00:00.000Z\",\"findings\":[]}");
	assert_view("cleanup_failed", "{\"at_ns\":7,\"detail\":\"/sys/fs/cgroup/caisson/bnd-a is busy\",\"reason\":\"busy\"}",
	            "{\"at\":\"1970-01-01T00:00:00.000Z\",\"reason\":\"busy\"}");
	assert_view("launch_intent", "{\"at_ns\":7,\"boundary\":\"bnd-a\"}", "{\"at\":\"1970-01-01T00:00:00.000Z\"}");
}

static void an_unknown_or_damaged_record_shows_that_it_was(void **state)
{
	(void)state;
	assert_view("of_tomorrow", "{\"lease\":\"secret\"}", "{\"at\":\"1970-01-01T00:00:00.000Z\"}");
	assert_view("accepted", "{\"profile\":", "{\"at\":\"1970-01-01T00:00:00.000Z\"}");
	assert_view("accepted", "[]", "{\"at\":\"1970-01-01T00:00:00.000Z\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_known_record_shows_its_named_members_alone),
		cmocka_unit_test(an_unknown_or_damaged_record_shows_that_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
