/* test_upload_cache.c - a file is known again by all that a change would change, and not at all while it may still be changing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/upload_cache.h"

#define DIGEST "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

enum { CHANGED_S = 1000, NOW_MS = CHANGED_S * 1000 + UPLOAD_SETTLED_MS };

static struct stat file_of(ino_t inode)
{
	return (struct stat){
		.st_dev = 1, .st_ino = inode, .st_size = 10, .st_mtim = {.tv_sec = 5}, .st_ctim = {.tv_sec = CHANGED_S}};
}

static void a_file_is_known_while_nothing_of_it_has_changed(void **state)
{
	(void)state;
	struct upload_cache cache = {0};
	struct stat file = file_of(7), others[6];

	upload_cache_add(&cache, &file, DIGEST, NOW_MS);
	assert_string_equal(upload_cache_find(&cache, &file), DIGEST);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		others[i] = file;
	others[0].st_dev++;
	others[1].st_ino++;
	others[2].st_size++;
	others[3].st_mtim.tv_nsec++;
	others[4].st_ctim.tv_nsec++;
	others[5].st_ctim.tv_sec++;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_null(upload_cache_find(&cache, &others[i]));
}

static void a_file_that_was_changed_a_moment_ago_is_not_entered(void **state)
{
	(void)state;
	struct upload_cache cache = {0};
	struct stat file = file_of(7);

	upload_cache_add(&cache, &file, DIGEST, NOW_MS - 1);
	assert_null(upload_cache_find(&cache, &file));
	upload_cache_add(&cache, &file, DIGEST, (CHANGED_S - 100) * 1000); /* nor one of the future */
	assert_null(upload_cache_find(&cache, &file));
}

static void the_oldest_entry_gives_way(void **state)
{
	(void)state;
	struct upload_cache cache = {0};

	for (ino_t inode = 1; inode <= UPLOAD_CACHE_MAX + 1; inode++) {
		struct stat file = file_of(inode);

		upload_cache_add(&cache, &file, DIGEST, NOW_MS);
		upload_cache_add(&cache, &file, DIGEST, NOW_MS); /* once is enough */
	}

	struct stat first = file_of(1), second = file_of(2), last = file_of(UPLOAD_CACHE_MAX + 1);

	assert_null(upload_cache_find(&cache, &first));
	assert_non_null(upload_cache_find(&cache, &second));
	assert_non_null(upload_cache_find(&cache, &last));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_known_while_nothing_of_it_has_changed),
		cmocka_unit_test(a_file_that_was_changed_a_moment_ago_is_not_entered),
		cmocka_unit_test(the_oldest_entry_gives_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
