/* test_buffer.c - a buffer grows up to its limit, exactly, and not one byte further. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"

static void what_is_appended_can_be_read_as_text(void **state)
{
	(void)state;
	BUF_AUTO struct buf buf = BUF_INIT(100);

	assert_int_equal(buf_puts(&buf, "ab", NULL), 0);
	assert_int_equal(buf_append(&buf, "cde", 2, NULL), 0);
	assert_int_equal(buf_printf(&buf, NULL, "-%03d", 7), 0);
	assert_string_equal(buf.data, "abcd-007");
	assert_int_equal(buf.len, 8);
}

static void appending_nothing_gives_an_empty_text(void **state)
{
	(void)state;
	BUF_AUTO struct buf buf = BUF_INIT(0);

	assert_int_equal(buf_append(&buf, NULL, 0, NULL), 0);
	assert_string_equal(buf.data, "");
}

static void the_limit_itself_fits_and_one_more_does_not(void **state)
{
	(void)state;
	BUF_AUTO struct buf buf = BUF_INIT(4);
	struct err err = ERR_INIT;

	assert_int_equal(buf_puts(&buf, "abc", &err), 0);
	assert_int_equal(buf_puts(&buf, "de", &err), ERR_LIMIT);
	assert_string_equal(err.text, "more than 4 bytes");
	assert_string_equal(buf.data, "abc");
	assert_int_equal(buf_printf(&buf, &err, "%s", "de"), ERR_LIMIT);
	assert_string_equal(buf.data, "abc");
	assert_int_equal(buf_puts(&buf, "d", &err), 0);
	assert_int_equal(buf_puts(&buf, "", &err), 0);
	assert_int_equal(buf_puts(&buf, "e", &err), ERR_LIMIT);
	assert_string_equal(buf.data, "abcd");
}

static void a_size_that_would_wrap_around_is_refused(void **state)
{
	(void)state;
	BUF_AUTO struct buf bounded = BUF_INIT(1000), unbounded = BUF_INIT(SIZE_MAX);

	assert_int_equal(buf_puts(&bounded, "x", NULL), 0);
	assert_int_equal(buf_append(&bounded, "", SIZE_MAX, NULL), ERR_LIMIT);
	assert_int_equal(buf_append(&unbounded, "", SIZE_MAX, NULL), ERR_NO_MEMORY);
	assert_null(unbounded.data);
}

static void many_small_pieces_make_one_large_whole(void **state)
{
	(void)state;
	enum { PIECES = 10000 };
	BUF_AUTO struct buf buf = BUF_INIT(PIECES);

	for (int i = 0; i < PIECES; i++)
		assert_int_equal(buf_append(&buf, &"abcdefghij"[i % 10], 1, NULL), 0);
	assert_int_equal(buf.len, PIECES);
	assert_memory_equal(buf.data + PIECES - 10, "abcdefghij", 11);
}

static void taking_leaves_an_empty_buffer_behind(void **state)
{
	(void)state;
	BUF_AUTO struct buf buf = BUF_INIT(10);

	assert_null(buf_take(&buf));
	assert_int_equal(buf_puts(&buf, "ab", NULL), 0);
	char *text = buf_take(&buf);
	assert_string_equal(text, "ab");
	free(text);
	assert_null(buf.data);
	assert_int_equal(buf_puts(&buf, "c", NULL), 0);
	assert_string_equal(buf.data, "c");
	buf_done(&buf);
	buf_done(NULL);
	assert_int_equal(buf.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_appended_can_be_read_as_text),
		cmocka_unit_test(appending_nothing_gives_an_empty_text),
		cmocka_unit_test(the_limit_itself_fits_and_one_more_does_not),
		cmocka_unit_test(a_size_that_would_wrap_around_is_refused),
		cmocka_unit_test(many_small_pieces_make_one_large_whole),
		cmocka_unit_test(taking_leaves_an_empty_buffer_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
