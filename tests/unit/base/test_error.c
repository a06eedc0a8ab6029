/* test_error.c - codes have names, contexts go in front, texts are cut but stay text. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void every_code_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int a = ERR_OK; a >= ERR_INTERNAL; a--) {
		assert_string_not_equal(err_code_name(a), "unknown");
		for (int b = a - 1; b >= ERR_INTERNAL; b--)
			assert_string_not_equal(err_code_name(a), err_code_name(b));
	}
	assert_string_equal(err_code_name(ERR_UNENFORCEABLE), "unenforceable");
}

static void numbers_that_are_no_code_are_unknown(void **state)
{
	(void)state;
	assert_string_equal(err_code_name(1), "unknown");
	assert_string_equal(err_code_name(ERR_INTERNAL - 1), "unknown");
}

static void contexts_stand_outermost_first(void **state)
{
	(void)state;
	struct err err = ERR_INIT;

	int r = err_set(&err, ERR_INVALID, "inner %d", 1);
	r = err_context(&err, r, "middle");
	r = err_context(&err, r, "outer");
	assert_int_equal(r, ERR_INVALID);
	assert_int_equal(err.code, ERR_INVALID);
	assert_string_equal(err.text, "outer: middle: inner 1");
}

static void a_context_may_quote_the_present_text(void **state)
{
	(void)state;
	struct err err = ERR_INIT;

	err_set(&err, ERR_IO, "x");
	err_set(&err, ERR_IO, "<%s>", err.text);
	assert_string_equal(err.text, "<x>");
}

static void without_an_object_the_code_alone_comes_back(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, ERR_BUSY, "x"), ERR_BUSY);
	assert_int_equal(err_context(NULL, ERR_BUSY, "x"), ERR_BUSY);
	assert_int_equal(err_sys(NULL, ENOSPC, "x"), ERR_NO_SPACE);
}

static void errno_decides_the_code_and_ends_the_text(void **state)
{
	(void)state;
	static const struct {
		int errnum, code;
	} cases[] = {
		{ENOMEM, ERR_NO_MEMORY}, {ENOSPC, ERR_NO_SPACE}, {EDQUOT, ERR_NO_SPACE}, {EACCES, ERR_PERMISSION}, {EPERM, ERR_PERMISSION},
		{EROFS, ERR_PERMISSION}, {ENOENT, ERR_NOT_FOUND}, {EEXIST, ERR_EXISTS}, {EBUSY, ERR_BUSY}, {ETIMEDOUT, ERR_TIMEOUT},
		{ENOSYS, ERR_UNSUPPORTED}, {EPIPE, ERR_LOST}, {EIO, ERR_IO}, {12345, ERR_IO},
	};
	struct err err = ERR_INIT;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(err_sys(&err, cases[i].errnum, "open"), cases[i].code);
	err_sys(&err, ENOENT, "open %s", "x");
	assert_string_equal(err.text, "open x: No such file or directory");
	err_sys(&err, 12345, "open");
	assert_string_equal(err.text, "open: unknown system error");
}

static void a_long_chain_loses_its_innermost_end(void **state)
{
	(void)state;
	char letters[2 * ERR_TEXT_MAX];
	struct err err = ERR_INIT;

	memset(letters, 'i', sizeof letters - 1);
	letters[sizeof letters - 1] = '\0';
	err_set(&err, ERR_IO, "%s", letters);
	assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
	err_context(&err, ERR_IO, "outer");
	assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
	assert_int_equal(strncmp(err.text, "outer: iii", 10), 0);
}

static void a_cut_never_halves_a_character(void **state)
{
	(void)state;
	static const char *const characters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x93\xa6"};

	for (size_t c = 0; c < sizeof characters / sizeof characters[0]; c++) {
		for (size_t lead = 0; lead < 4; lead++) {
			char text[2 * ERR_TEXT_MAX] = "xxxx";
			size_t size = strlen(characters[c]), at = lead;
			struct err set = ERR_INIT, appended = ERR_INIT;
			for (; at + size < sizeof text; at += size)
				memcpy(text + at, characters[c], size + 1);
			text[at] = '\0';
			err_set(&set, ERR_IO, "%s", text);
			assert_int_equal((strlen(set.text) - lead) % size, 0);
			assert_true(strlen(set.text) + size >= ERR_TEXT_MAX);
			err_set(&appended, ERR_IO, "%s", text);
			err_context(&appended, ERR_IO, "y");
			assert_int_equal((strlen(appended.text) - 3 - lead) % size, 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_a_name_of_its_own),
		cmocka_unit_test(numbers_that_are_no_code_are_unknown),
		cmocka_unit_test(contexts_stand_outermost_first),
		cmocka_unit_test(a_context_may_quote_the_present_text),
		cmocka_unit_test(without_an_object_the_code_alone_comes_back),
		cmocka_unit_test(errno_decides_the_code_and_ends_the_text),
		cmocka_unit_test(a_long_chain_loses_its_innermost_end),
		cmocka_unit_test(a_cut_never_halves_a_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
