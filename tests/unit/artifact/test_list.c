/* test_list.c - a list of artifacts travels as JSON and comes back equal; what is not such a list is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/list.h"
#include "base/buffer.h"

static void a_list_comes_back_equal(void **state)
{
	(void)state;
	struct artifact items[] = {
		{.path = (char *)"a\nb", .size_bytes = 0, .mode = 0644},
		{.path = (char *)"dir/\xff", .size_bytes = INT64_MAX, .mode = 0755},
	};
	digest_of("", 0, &items[0].sha256);
	digest_of("x", 1, &items[1].sha256);
	const struct artifact_list list = {.items = items, .count = 2};
	BUF_AUTO struct buf text = BUF_INIT(ARTIFACT_LIST_TEXT_MAX);
	ARTIFACT_LIST_AUTO struct artifact_list back = {0};
	assert_int_equal(artifact_list_write(&list, &text, NULL), 0);
	assert_int_equal(artifact_list_read(text.data, text.len, &back, NULL), 0);
	assert_int_equal(back.count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(back.items[i].path, items[i].path);
		assert_int_equal(back.items[i].size_bytes, items[i].size_bytes);
		assert_int_equal(back.items[i].mode, items[i].mode);
		assert_true(digest_equal(&back.items[i].sha256, &items[i].sha256));
	}
}

static void the_longest_list_fits_into_its_text(void **state)
{
	(void)state;
	enum { NAME = ARTIFACT_NAMES_BYTES_MAX / ARTIFACT_FILES_MAX };
	static struct artifact items[ARTIFACT_FILES_MAX];
	static char names[ARTIFACT_FILES_MAX][NAME + 1];
	for (int i = 0; i < ARTIFACT_FILES_MAX; i++) {
		memset(names[i], 1, NAME); /* the longest spelling */
		names[i][0] = (char)(1 + i / 64);
		names[i][1] = (char)(1 + i % 64);
		items[i] = (struct artifact){.path = names[i], .size_bytes = INT64_MAX, .mode = 0755};
	}
	const struct artifact_list list = {.items = items, .count = ARTIFACT_FILES_MAX};
	BUF_AUTO struct buf text = BUF_INIT(ARTIFACT_LIST_TEXT_MAX);
	ARTIFACT_LIST_AUTO struct artifact_list back = {0};
	struct err err = ERR_INIT;
	int result = artifact_list_write(&list, &text, &err);
	if (result == 0)
		result = artifact_list_read(text.data, text.len, &back, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(result, 0);
	assert_int_equal(back.count, ARTIFACT_FILES_MAX);
}

static void rejections_are_counted_beyond_those_that_are_kept(void **state)
{
	(void)state;
	struct artifact_list list = {0};
	char long_name[ARTIFACT_SHOWN_SIZE + 10];
	memset(long_name, 'n', sizeof(long_name));
	memcpy(long_name + ARTIFACT_SHOWN_SIZE - 2, "\xc3\xa9", 3); /* the cut would go through it */
	artifact_reject(&list, long_name, "is a %s", "FIFO");
	for (int i = 0; i < ARTIFACT_REJECTIONS_MAX; i++)
		artifact_reject(&list, "a\\b", "is number %d", i);
	BUF_AUTO struct buf text = BUF_INIT(ARTIFACT_LIST_TEXT_MAX);
	ARTIFACT_LIST_AUTO struct artifact_list back = {0};
	assert_int_equal(artifact_list_write(&list, &text, NULL), 0);
	assert_int_equal(artifact_list_read(text.data, text.len, &back, NULL), 0);
	assert_int_equal(back.rejected, ARTIFACT_REJECTIONS_MAX + 1);
	assert_int_equal(artifact_rejections(&back), ARTIFACT_REJECTIONS_MAX);
	assert_int_equal(strlen(back.rejections[0].path), ARTIFACT_SHOWN_SIZE - 2);
	assert_string_equal(back.rejections[0].reason, "is a FIFO");
	assert_string_equal(back.rejections[1].path, "a\\b");
}

#define DIGEST "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ITEM(mode, path, size) "{\"mode\":\"" mode "\",\"path\":\"" path "\",\"sha256\":\"" DIGEST "\",\"size_bytes\":" size "}"
#define LIST(items, rejected, rejections) "{\"artifacts\":[" items "],\"rejected\":" rejected ",\"rejections\":[" rejections "]}"

static void what_is_no_list_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"", "[]", "{}", LIST(ITEM("0666", "a", "1"), "0", ""), LIST(ITEM("0644", "../a", "1"), "0", ""),
		LIST(ITEM("0644", "a", "-1"), "0", ""), LIST(ITEM("0644", "b", "1") "," ITEM("0644", "a", "1"), "0", ""),
		LIST(ITEM("0644", "a", "1") "," ITEM("0644", "a", "1"), "0", ""), LIST(ITEM("0644", "a", "1"), "1", ""),
		LIST("", "1", ""), LIST("", "0", "{\"path\":\"a\",\"reason\":\"r\"}"), LIST("1", "0", ""), LIST("", "0", "{}"),
		LIST("", "1", "{\"path\":\"a\",\"reason\":\"\xc3\xa9\"}"),
	};
	struct artifact_list back = {0};
	const char *good = LIST(ITEM("0644", "a", "1"), "0", "");
	assert_int_equal(artifact_list_read(good, strlen(good), &back, NULL), 0);
	artifact_list_done(&back);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (artifact_list_read(texts[i], strlen(texts[i]), &back, NULL) != ERR_INVALID)
			fail_msg("%s", texts[i]);
		assert_null(back.items);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_comes_back_equal),
		cmocka_unit_test(the_longest_list_fits_into_its_text),
		cmocka_unit_test(rejections_are_counted_beyond_those_that_are_kept),
		cmocka_unit_test(what_is_no_list_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
