/* test_batch_input.c - lines out of a pipe, however the bytes come. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "client/batch_input.h"

enum { LINE_MAX_BYTES = 100, TOLD_MAX = 64 * 1024 };

/* What is there: "number:text;", or "number!;" for one that is too long. */
static void take_lines(struct batch_input *input, struct buf *told)
{
	struct batch_text line;

	while (batch_input_line(input, &line)) {
		if (line.too_long)
			assert_int_equal(buf_printf(told, NULL, "%lld!;", (long long)line.number), 0);
		else
			assert_int_equal(buf_printf(told, NULL, "%lld:%.*s;", (long long)line.number, (int)line.length, line.text),
			                 0);
	}
}

/* The text in pieces of `piece` bytes. */
static void read_in_pieces(const char *text, size_t piece, struct buf *told)
{
	struct batch_input input;
	size_t length = strlen(text);
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	batch_input_init(&input, ends[0], LINE_MAX_BYTES);
	for (size_t at = 0; at < length; at += piece) {
		assert_int_equal(fd_write_all(ends[1], text + at, length - at < piece ? length - at : piece), 0);
		assert_int_equal(batch_input_fill(&input, NULL), 0);
		take_lines(&input, told);
	}
	close(ends[1]);
	assert_int_equal(batch_input_fill(&input, NULL), 0);
	assert_int_equal(input.fd, -1);
	take_lines(&input, told);
	batch_input_done(&input);
}

static void expect(const char *text, const char *expected)
{
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		BUF_AUTO struct buf told = BUF_INIT(TOLD_MAX);

		read_in_pieces(text, piece, &told);
		assert_string_equal(told.data ? told.data : "", expected);
	}
}

static void lines_come_whole_and_the_last_needs_no_newline(void **state)
{
	(void)state;
	expect("one\ntwo\nthree", "1:one;2:two;3:three;");
	expect("one\n", "1:one;");
	expect("x", "1:x;");
}

static void blank_lines_are_passed_over_and_counted(void **state)
{
	(void)state;
	expect("\n \t\r\na\n\nb\n \n", "3:a;5:b;");
	expect("\n", "");
}

static void a_line_that_is_too_long_is_one_and_the_next_is_read(void **state)
{
	(void)state;
	static const char digits[] = "0123456789012345678901234567890123456789012345678";
	char text[TOLD_MAX] = "a\n";
	size_t at = 2;

	for (int i = 0; i < 3; i++, at += strlen(digits))
		memcpy(text + at, digits, sizeof(digits));
	memcpy(text + at, "\nb\n", 4);
	expect(text, "1:a;2!;3:b;");
	text[at] = '\0';
	expect(text, "1:a;2!;");
}

static void a_line_of_just_the_longest_length_is_read(void **state)
{
	(void)state;
	char text[LINE_MAX_BYTES + 2] = "", expected[LINE_MAX_BYTES + 8] = "1:";

	memset(text, 'x', LINE_MAX_BYTES);
	memcpy(expected + 2, text, LINE_MAX_BYTES);
	expected[LINE_MAX_BYTES + 2] = ';';
	text[LINE_MAX_BYTES] = '\n';
	expect(text, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_whole_and_the_last_needs_no_newline),
		cmocka_unit_test(blank_lines_are_passed_over_and_counted),
		cmocka_unit_test(a_line_that_is_too_long_is_one_and_the_next_is_read),
		cmocka_unit_test(a_line_of_just_the_longest_length_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
