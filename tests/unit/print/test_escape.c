/* test_escape.c - what reaches a terminal is text; nothing in it is a command to the terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "print/escape.h"

enum { TEXT_MAX = 8192 };

/* The escaped form of `count` bytes, given in pieces of `piece` bytes. */
static void escape_in_pieces(const char *bytes, size_t count, size_t piece, struct buf *ret)
{
	struct escape escape = {.count = 0};

	for (size_t at = 0; at < count; at += piece)
		assert_int_equal(escape_bytes(&escape, bytes + at, count - at < piece ? count - at : piece, ret, NULL), 0);
	assert_int_equal(escape_finish(&escape, ret, NULL), 0);
}

/* However the bytes are cut, the text is the same. */
static void expect(const char *bytes, size_t count, const char *expected)
{
	for (size_t piece = 1; piece <= count; piece++) {
		BUF_AUTO struct buf text = BUF_INIT(TEXT_MAX);

		escape_in_pieces(bytes, count, piece, &text);
		assert_string_equal(text.data, expected);
	}
}

#define EXPECT(literal, expected) expect((literal), sizeof(literal) - 1, (expected))

static void text_passes(void **state)
{
	(void)state;
	EXPECT("hello,\tworld\n", "hello,\tworld\n");
	EXPECT("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\x89", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\x89");
	EXPECT("\xc2\xa0\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", "\xc2\xa0\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf");
}

static void control_characters_are_named(void **state)
{
	(void)state;
	EXPECT("\x1b]0;owned\x07", "^[]0;owned^G");
	EXPECT("a\rb\x08\x7f", "a^Mb^H^?");
	expect("\0", 1, "^@");
}

static void c1_controls_are_escaped_in_both_spellings(void **state)
{
	(void)state;
	EXPECT("\xc2\x9b"
	       "31m",
	       "\\xc2\\x9b31m");
	EXPECT("\x9b"
	       "31m",
	       "\\x9b31m");
}

static void bytes_that_are_no_utf8_are_escaped(void **state)
{
	(void)state;
	EXPECT("\xff\xfe", "\\xff\\xfe");
	EXPECT("\xc0\x9b", "\\xc0\\x9b");          /* overlong */
	EXPECT("\xe0\x82\x9b", "\\xe0\\x82\\x9b"); /* overlong C1 */
	EXPECT("\xf0\x80\x82\x9b", "\\xf0\\x80\\x82\\x9b");
	EXPECT("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* surrogate */
	EXPECT("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* above U+10FFFF */
	EXPECT("\x80", "\\x80");
}

static void a_broken_character_does_not_swallow_what_follows(void **state)
{
	(void)state;
	EXPECT("\xe2\x82\x1b[1m", "\\xe2\\x82^[[1m");
	EXPECT("\xc3"
	       "a",
	       "\\xc3a");
	EXPECT("\xe2\xc3\xa9", "\\xe2\xc3\xa9");
	EXPECT("cut \xf0\x9f\x8e", "cut \\xf0\\x9f\\x8e");
}

/* Every pair of bytes: only printable text, newline and tab come out. */
static void nothing_a_terminal_obeys_gets_through(void **state)
{
	(void)state;
	for (unsigned pair = 0; pair <= 0xffff; pair++) {
		BUF_AUTO struct buf text = BUF_INIT(TEXT_MAX);
		const char bytes[2] = {(char)(pair >> 8), (char)pair};

		escape_in_pieces(bytes, sizeof(bytes), sizeof(bytes), &text);
		assert_true(text.len <= sizeof(bytes) * ESCAPE_GROWTH);
		for (size_t i = 0; i < text.len; i++) {
			unsigned char byte = (unsigned char)text.data[i];
			bool c1 = byte == 0xc2 && (unsigned char)text.data[i + 1] <= 0x9f;

			assert_true(byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7f));
			assert_false(c1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_passes),
		cmocka_unit_test(control_characters_are_named),
		cmocka_unit_test(c1_controls_are_escaped_in_both_spellings),
		cmocka_unit_test(bytes_that_are_no_utf8_are_escaped),
		cmocka_unit_test(a_broken_character_does_not_swallow_what_follows),
		cmocka_unit_test(nothing_a_terminal_obeys_gets_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
