/* test_reply.c - what a keeper answered: its own words where it has some, and never a success by mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/reply.h"

static void set_reply(struct http_call *call, long status, const char *text)
{
	http_call_set(call, "GET", "/");
	call->status = status;
	assert_int_equal(buf_puts(&call->reply, text, NULL), 0);
}

static void a_refusal_has_the_keepers_words_and_the_place(void **state)
{
	(void)state;
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	struct refusal refusal;

	set_reply(&call, 400,
	          "{\"error\":{\"code\":\"invalid\",\"message\":\"must be an integer\",\"path\":\"$.limits.wall_ms\"}}");
	refusal_of_call(&call, &refusal);
	assert_string_equal(refusal.code, "invalid");
	assert_string_equal(refusal.path, "$.limits.wall_ms");
	assert_string_equal(refusal.err.text, "$.limits.wall_ms: must be an integer");
	assert_int_equal(refusal.err.code, ERR_INVALID);
}

static void a_message_that_names_the_place_does_not_name_it_twice(void **state)
{
	(void)state;
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	struct refusal refusal;

	set_reply(&call, 400, "{\"error\":{\"code\":\"invalid\",\"message\":\"$.stdin: unknown field\",\"path\":\"$.stdin\"}}");
	refusal_of_call(&call, &refusal);
	assert_string_equal(refusal.err.text, "$.stdin: unknown field");
}

static void the_status_decides_where_there_are_no_words(void **state)
{
	(void)state;
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	static const struct {
		long status;
		int code;
	} cases[] = {{404, ERR_NOT_FOUND}, {409, ERR_CONFLICT}, {429, ERR_BUSY},
	             {503, ERR_BUSY},      {500, ERR_INTERNAL}, {302, ERR_INTERNAL}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct refusal refusal;

		set_reply(&call, cases[i].status, "<html>");
		refusal_of_call(&call, &refusal);
		assert_int_equal(refusal.err.code, cases[i].code);
		assert_non_null(strstr(refusal.err.text, "HTTP status"));
		assert_string_equal(refusal.path, "");
	}
}

static void an_error_of_ours_gives_its_path(void **state)
{
	(void)state;
	struct err err = ERR_INIT;
	struct refusal refusal;

	err_set(&err, ERR_NOT_FOUND, "$.inputs[3].source: x: cannot be read");
	refusal_of_error(&err, &refusal);
	assert_string_equal(refusal.path, "$.inputs[3].source");
	assert_string_equal(refusal.code, "not_found");
	err_set(&err, ERR_LOST, "the connection: lost");
	refusal_of_error(&err, &refusal);
	assert_string_equal(refusal.path, "");
}

static void a_good_reply_that_is_no_json_is_no_success(void **state)
{
	(void)state;
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	JSON_AUTO json_t *document = NULL;
	struct err err = ERR_INIT;

	set_reply(&call, 200, "{\"run\":\"run-");
	assert_int_equal(reply_document(&call, &document, &err), ERR_PROTOCOL);
	set_reply(&call, 200, "");
	assert_int_equal(reply_document(&call, &document, &err), ERR_PROTOCOL);
	assert_null(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refusal_has_the_keepers_words_and_the_place),
		cmocka_unit_test(a_message_that_names_the_place_does_not_name_it_twice),
		cmocka_unit_test(the_status_decides_where_there_are_no_words),
		cmocka_unit_test(an_error_of_ours_gives_its_path),
		cmocka_unit_test(a_good_reply_that_is_no_json_is_no_success),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
