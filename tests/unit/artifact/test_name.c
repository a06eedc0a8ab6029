/* test_name.c - paths of artifacts: which there are, and that each has one spelling that reads back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "artifact/name.h"

static void spells(const char *path, const char *expected)
{
	JSON_AUTO json_t *object = json_object();
	char *back = NULL;
	assert_int_equal(artifact_set_path(object, "path", path, NULL), 0);
	const char *text = json_string_value(json_object_get(object, "path"));
	assert_string_equal(text, expected);
	assert_int_equal(artifact_parse_path(text, &back, NULL), 0);
	assert_string_equal(back, path);
	free(back);
}

static void a_path_is_spelled_and_read_back(void **state)
{
	(void)state;
	spells("result.json", "result.json");
	spells("dir/-rf \"quoted\" it's", "dir/-rf \"quoted\" it's");
	spells("caf\xc3\xa9", "caf\xc3\xa9");
	spells("two\nlines", "two\\x0alines");
	spells("\xff\xfe", "\\xff\\xfe");
	spells("a\\x0ab", "a\\x5cx0ab"); /* not the newline that it looks like */
	spells("\\", "\\x5c");
	spells("caf\xc3\xa9\\", "caf\\xc3\\xa9\\x5c");
	spells("..x/...", "..x/...");
}

/* All pairs of bytes: no two paths share a spelling, and each reads back. */
static void no_two_paths_share_a_spelling(void **state)
{
	(void)state;
	for (int first = 1; first < 256; first++)
		for (int second = 1; second < 256; second++) {
			const char path[] = {'n', (char)first, (char)second, '\0'};
			JSON_AUTO json_t *object = json_object();
			char *back = NULL;
			assert_int_equal(artifact_set_path(object, "path", path, NULL), 0);
			const char *text = json_string_value(json_object_get(object, "path"));
			assert_int_equal(artifact_parse_text(text, &back, NULL), 0);
			assert_string_equal(back, path);
			free(back);
		}
}

static void other_spellings_are_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"a\\x41", "a\\x0Ab", "a\\", "a\\x", "a\\x0", "a\\x00", "a\\n", "caf\xc3\xa9\\x5c", "a\\x5c\n",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *back = NULL;
		assert_int_equal(artifact_parse_path(texts[i], &back, NULL), ERR_INVALID);
		assert_null(back);
	}
}

static void what_leaves_its_place_is_no_path(void **state)
{
	(void)state;
	static const char *const paths[] = {"", "/", "/etc/shadow", "..", "../x", "a/..", "a/../b", ".", "a/./b", "a//b", "a/"};
	char *back = NULL;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_false(artifact_path_valid(paths[i]));
		assert_int_equal(artifact_parse_path(paths[i], &back, NULL), ERR_INVALID);
	}
	char longest[ARTIFACT_PATH_MAX + 2];
	memset(longest, 'x', sizeof(longest));
	longest[ARTIFACT_PATH_MAX + 1] = '\0';
	assert_false(artifact_path_valid(longest));
	longest[ARTIFACT_PATH_MAX] = '\0';
	assert_true(artifact_path_valid(longest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_spelled_and_read_back),
		cmocka_unit_test(no_two_paths_share_a_spelling),
		cmocka_unit_test(other_spellings_are_refused),
		cmocka_unit_test(what_leaves_its_place_is_no_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
