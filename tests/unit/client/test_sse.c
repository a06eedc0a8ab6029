/* test_sse.c - event streams: however the bytes are cut, the same events come out; what was begun and lost is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/sse.h"

enum { TOLD_MAX = 64 * 1024 };

/* Each event as a line "id|name|data;". */
static int tell(void *context, const char *id, const char *name, const char *data)
{
	return buf_printf(context, NULL, "%s|%s|%s;", id, name, data);
}

static void expect(const char *text, const char *expected)
{
	size_t length = strlen(text);

	for (size_t piece = 1; piece <= length; piece++) {
		BUF_AUTO struct buf told = BUF_INIT(TOLD_MAX);
		SSE_AUTO struct sse sse = SSE_INIT(tell, &told);

		for (size_t at = 0; at < length; at += piece)
			assert_int_equal(sse_feed(&sse, text + at, length - at < piece ? length - at : piece, NULL), 0);
		assert_string_equal(told.data ? told.data : "", expected);
	}
}

static void events_are_told_whole_however_they_are_cut(void **state)
{
	(void)state;
	expect("id: 1-1\nevent: launched\ndata: {\"a\":1}\n\nid: 1-2\nevent: sealed\ndata:{}\n\n",
	       "1-1|launched|{\"a\":1};1-2|sealed|{};");
	expect("data: one\r\n\r\ndata: two\r\n\r\n", "|message|one;|message|two;");
}

static void lines_of_data_are_joined(void **state)
{
	(void)state;
	expect("data: a\ndata: b\ndata:  c\n\n", "|message|a\nb\n c;");
}

static void comments_and_foreign_fields_are_passed_over(void **state)
{
	(void)state;
	expect(": still here\n\nretry: 10\ncolour: red\nnothing\ndata: x\n\n", "|message|x;");
}

static void an_event_that_is_not_finished_is_none(void **state)
{
	(void)state;
	expect("id: 1\ndata: x\n\nid: 2\ndata: y\n", "1|message|x;");
}

static void an_id_stays_until_the_next(void **state)
{
	(void)state;
	expect("id: 7\ndata: a\n\ndata: b\n\n", "7|message|a;7|message|b;");
}

/* After a loss the stream is asked for again behind the last event that was told, and not behind one that was begun. */
static void a_lost_connection_resumes_behind_the_last_whole_event(void **state)
{
	(void)state;
	BUF_AUTO struct buf told = BUF_INIT(TOLD_MAX);
	SSE_AUTO struct sse sse = SSE_INIT(tell, &told);
	static const char first[] = "id: 1-1\ndata: a\n\nid: 1-2\nevent: e\ndata: half of b", second[] = "id: 1-2\ndata: b\n\n";

	assert_int_equal(sse_feed(&sse, first, strlen(first), NULL), 0);
	assert_string_equal(sse.id, "1-1");
	sse_restart(&sse);
	assert_int_equal(sse_feed(&sse, second, strlen(second), NULL), 0);
	assert_string_equal(sse.id, "1-2");
	assert_string_equal(told.data, "1-1|message|a;1-2|message|b;");
}

static void what_is_too_long_is_refused(void **state)
{
	(void)state;
	SSE_AUTO struct sse sse = SSE_INIT(tell, NULL);
	char line[SSE_FIELD_SIZE + 8];
	int result = 0;

	memset(line, 'x', sizeof(line));
	assert_int_equal(sse_feed(&sse, "id: ", 4, NULL), 0);
	assert_int_equal(sse_feed(&sse, line, sizeof(line), NULL), 0);
	assert_int_equal(sse_feed(&sse, "\n", 1, NULL), ERR_PROTOCOL);
	for (size_t count = 0; result == 0 && count <= SSE_LINE_MAX; count += sizeof(line))
		result = sse_feed(&sse, line, sizeof(line), NULL);
	assert_int_equal(result, ERR_LIMIT);
}

static int refuse(void *context, const char *id, const char *name, const char *data)
{
	(void)context;
	(void)id;
	(void)name;
	(void)data;
	return ERR_IO;
}

static void what_the_function_says_ends_the_reading(void **state)
{
	(void)state;
	SSE_AUTO struct sse sse = SSE_INIT(refuse, NULL);

	assert_int_equal(sse_feed(&sse, "id: 1\ndata: x\n\n", strlen("id: 1\ndata: x\n\n"), NULL), ERR_IO);
	assert_string_equal(sse.id, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_told_whole_however_they_are_cut),
		cmocka_unit_test(lines_of_data_are_joined),
		cmocka_unit_test(comments_and_foreign_fields_are_passed_over),
		cmocka_unit_test(an_event_that_is_not_finished_is_none),
		cmocka_unit_test(an_id_stays_until_the_next),
		cmocka_unit_test(a_lost_connection_resumes_behind_the_last_whole_event),
		cmocka_unit_test(what_is_too_long_is_refused),
		cmocka_unit_test(what_the_function_says_ends_the_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
