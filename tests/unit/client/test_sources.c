/* test_sources.c - the files that a manifest names are found one after the other, and their digests take their places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "client/sources.h"

#define EMPTY "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static json_t *parse(const char *text)
{
	json_t *document = NULL;

	assert_int_equal(json_parse(text, strlen(text), &document, NULL), 0);
	return document;
}

static void expect_text(const json_t *document, const char *expected)
{
	BUF_AUTO struct buf text = BUF_INIT(4096);

	assert_int_equal(json_canonical(document, &text, NULL), 0);
	assert_string_equal(text.data, expected);
}

/* A reply for an upload of nothing. */
static void answer(struct http_call *call, const char *text)
{
	http_call_set(call, "PUT", "/v1/objects");
	call->status = 201;
	digest_of("", 0, &call->sent);
	assert_int_equal(buf_puts(&call->reply, text, NULL), 0);
}

static void each_source_gives_way_to_its_digest(void **state)
{
	(void)state;
	JSON_AUTO json_t *manifest =
		parse("{\"inputs\":[{\"text\":\"x\",\"target\":\"/box/a\"},{\"source\":\"b\",\"target\":\"/box/b\"}],"
	              "\"stdin\":{\"source\":\"-\"}}");
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	struct source source = SOURCE_NONE;
	char path[JSON_PATH_MAX];

	json_t *input = sources_next(manifest, path);
	assert_string_equal(path, "$.stdin");
	answer(&call, "{\"digest\":\"" EMPTY "\"}");
	assert_int_equal(sources_settle(&source, input, &call, NULL), 0);
	input = sources_next(manifest, path);
	assert_string_equal(path, "$.inputs[1]");
	assert_int_equal(sources_settle(&source, input, &call, NULL), 0);
	assert_null(sources_next(manifest, path));
	expect_text(manifest,
	            "{\"inputs\":[{\"target\":\"/box/a\",\"text\":\"x\"},{\"digest\":\"" EMPTY "\",\"target\":\"/box/b\"}],"
	            "\"stdin\":{\"digest\":\"" EMPTY "\"}}");
}

static void another_digest_than_that_of_what_was_sent_is_refused(void **state)
{
	(void)state;
	JSON_AUTO json_t *input = parse("{\"source\":\"b\"}");
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	struct source source = SOURCE_NONE;

	answer(&call, "{\"digest\":\"sha256:00\"}");
	assert_int_equal(sources_settle(&source, input, &call, NULL), ERR_DAMAGED);
	answer(&call, "{}");
	assert_int_equal(sources_settle(&source, input, &call, NULL), ERR_DAMAGED);
	expect_text(input, "{\"source\":\"b\"}");
}

/* A gibibyte takes a slow disk longer than any other answer may take. */
static void a_keeper_has_time_for_what_it_is_sent(void **state)
{
	(void)state;
	char path[] = "/tmp/caisson-sources-XXXXXX", file[64], text[128];
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	struct source source;

	assert_non_null(mkdtemp(path));
	snprintf(file, sizeof(file), "%s/sparse", path);
	FD_AUTO int fd = open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, INT64_C(1) << 30), 0);
	const char *const names[] = {file, path};
	for (size_t i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "{\"source\":\"%s\",\"target\":\"/box/x\"}", names[i]);
		JSON_AUTO json_t *input = parse(text);
		assert_int_equal(sources_open(input, false, &source, NULL), 0);
		assert_int_equal(source.tree != NULL, i == 1);
		assert_int_equal(sources_call(&source, &call, NULL), 0);
		assert_true(call.wait_ms > 120 * 1000 && call.wait_ms < 600 * 1000);
		sources_close(&source);
	}
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(path), 0);
}

static void only_a_stdin_may_be_standard_input_and_only_where_it_is_allowed(void **state)
{
	(void)state;
	JSON_AUTO json_t *standard_input = parse("{\"source\":\"-\"}"), *file = parse("{\"source\":\"-\",\"target\":\"/box/x\"}");
	struct source source;

	assert_int_equal(sources_open(standard_input, false, &source, NULL), ERR_UNSUPPORTED);
	assert_int_equal(sources_open(file, true, &source, NULL), ERR_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_source_gives_way_to_its_digest),
		cmocka_unit_test(another_digest_than_that_of_what_was_sent_is_refused),
		cmocka_unit_test(a_keeper_has_time_for_what_it_is_sent),
		cmocka_unit_test(only_a_stdin_may_be_standard_input_and_only_where_it_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
