/* test_tree_objects.c - a tree comes of its listing and of objects just as it comes of a directory, and of nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/store_internal.h"
#include "artifact/tree.h"
#include "base/fd.h"
#include "remove_tree.h"

#define DIR(path) "{\"kind\":\"dir\",\"path\":\"" path "\"}"
#define LINK(path, target) "{\"kind\":\"link\",\"path\":\"" path "\",\"target\":\"" target "\"}"
#define FILE_OF(path, digest, size) \
	"{\"kind\":\"file\",\"mode\":\"0444\",\"path\":\"" path "\",\"sha256\":\"" digest "\",\"size_bytes\":" size "}"
#define HELLO "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" /* of "hello" */
#define ABSENT "sha256:0000000000000000000000000000000000000000000000000000000000000000"

enum { A_MIB = 1024 * 1024 };

struct place {
	char path[64];
	int dir;
	struct store *store;
	char missing[3][DIGEST_TEXT_SIZE];
	size_t missing_count, enough;
	struct digest digest;
	int64_t size;
	struct err err;
};

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	snprintf(place->path, sizeof(place->path), "/tmp/caisson-tree-XXXXXX");
	if (!mkdtemp(place->path))
		return -1;
	place->dir = open(place->path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (mkdirat(place->dir, "source", 0700) < 0 || mkdirat(place->dir, "store", 0700) < 0)
		return -1;
	FD_AUTO int store = openat(place->dir, "store", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	place->enough = 3;
	*state = place;
	return store_open(store, &place->store, NULL);
}

static int teardown(void **state)
{
	struct place *place = *state;
	store_free(place->store);
	close(place->dir);
	int status = remove_tree(place->path);
	free(place);
	return status;
}

static int note_missing(void *context, const struct digest *digest)
{
	struct place *place = context;
	digest_text(digest, place->missing[place->missing_count++]);
	return place->missing_count == place->enough;
}

static int put_bytes(struct place *place, const char *listing, size_t length)
{
	place->err = ERR_INIT;
	place->missing_count = 0;
	return store_put_listing(place->store, listing, length, A_MIB, note_missing, place, &place->digest, &place->size, &place->err);
}

static int put(struct place *place, const char *listing)
{
	return put_bytes(place, listing, strlen(listing));
}

static void put_object(struct place *place, const char *text)
{
	struct digest digest;
	assert_int_equal(store_put_bytes(place->store, text, strlen(text), true, &digest, NULL), 0);
}

static int is_a_name(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Nothing of it stands in the store, under a name or on the way to one. */
static void expect_nothing(struct place *place)
{
	static const char *const dirs[] = {"store/trees", "store/tmp"};
	for (size_t i = 0; i < 2; i++) {
		struct dirent **names = NULL;
		int count = scandirat(place->dir, dirs[i], &names, is_a_name, alphasort);
		assert_true(count == 0 || (count < 0 && i == 0));
		free(names);
	}
}

static void make_source(struct place *place)
{
	FD_AUTO int source = openat(place->dir, "source", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	FD_AUTO int plain = openat(source, "b", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_all(plain, "hello", 5), 0);
	FD_AUTO int odd = openat(source, "a \\ \xff\n\"}", O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
	assert_int_equal(fd_write_all(odd, "run me", 6), 0);
	assert_int_equal(mkdirat(source, "d", 0700), 0);
	assert_int_equal(mkdirat(source, "d/empty", 0700), 0);
	assert_int_equal(symlinkat("../b", source, "d/link"), 0);
	assert_int_equal(symlinkat("nowhere", source, "d/odd \xff"), 0);
	FD_AUTO int empty = openat(source, "d/nothing", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(empty >= 0);
}

static void list_source(struct place *place, struct buf *ret)
{
	FD_AUTO int source = openat(place->dir, "source", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	int64_t size;
	assert_int_equal(tree_list(source, A_MIB, ret, &size, NULL), 0);
	assert_int_equal(size, 11);
}

static void a_directory_elsewhere_becomes_the_same_tree(void **state)
{
	struct place *place = *state;
	BUF_AUTO struct buf listing = BUF_INIT(A_MIB);
	struct digest digest;
	make_source(place);
	list_source(place, &listing);
	assert_int_equal(put_bytes(place, listing.data, listing.len), 1);
	assert_int_equal(place->missing_count, 3);
	assert_string_equal(place->missing[1], HELLO); /* in the order of the names */
	expect_nothing(place);
	put_object(place, "hello");
	put_object(place, "run me");
	assert_int_equal(put_bytes(place, listing.data, listing.len), 1);
	assert_int_equal(place->missing_count, 1);
	put_object(place, "");
	assert_int_equal(put_bytes(place, listing.data, listing.len), 0);
	assert_int_equal(place->size, 11);
	digest_of(listing.data, listing.len, &digest);
	assert_true(digest_equal(&digest, &place->digest));
	assert_int_equal(store_check_tree(place->store, &digest, NULL), 0);
	assert_int_equal(store_check(place->store, &digest, NULL), 0); /* the listing itself */
}

static void a_tree_that_is_there_needs_no_objects(void **state)
{
	struct place *place = *state;
	BUF_AUTO struct buf listing = BUF_INIT(A_MIB);
	FD_AUTO int source = openat(place->dir, "source", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	struct digest digest;
	int64_t size;
	make_source(place);
	list_source(place, &listing);
	assert_int_equal(store_put_tree(place->store, source, A_MIB, &digest, &size, NULL), 0);
	assert_int_equal(put_bytes(place, listing.data, listing.len), 0);
	assert_true(digest_equal(&digest, &place->digest));
	assert_int_equal(place->size, size);
}

static void only_so_many_that_are_missing_are_told(void **state)
{
	struct place *place = *state;
	place->enough = 1;
	assert_int_equal(put(place, "[" FILE_OF("a", ABSENT, "1") "," FILE_OF("b", HELLO, "5") "]"), 1);
	assert_int_equal(place->missing_count, 1);
	assert_string_equal(place->missing[0], ABSENT);
}

static void the_empty_directory_is_one(void **state)
{
	assert_int_equal(put(*state, "[]"), 0);
	assert_int_equal(((struct place *)*state)->size, 0);
}

struct bad {
	const char *what, *listing;
	int code;
	const char *says;
};

static const struct bad bad[] = {
	{"no JSON", "hello", ERR_INVALID, "entry 1: "},
	{"nothing", "", ERR_INVALID, "entry 1: "},
	{"no array", "{}", ERR_INVALID, "entry 1: "},
	{"no end", "[" DIR("a"), ERR_INVALID, "entry 2: "},
	{"no end of a line", "[{\"kind\":\"dir\",\"path\":\"}\"", ERR_INVALID, "entry 1: has no end"},
	{"something behind it", "[" DIR("a") "]x", ERR_INVALID, "entry 2: "},
	{"space", "[" DIR("a") ", " DIR("b") "]", ERR_INVALID, "entry 2: "},
	{"space inside", "[{\"kind\": \"dir\",\"path\":\"a\"}]", ERR_INVALID, "canonical"},
	{"a key twice", "[{\"kind\":\"dir\",\"kind\":\"dir\",\"path\":\"a\"}]", ERR_INVALID, "entry 1: "},
	{"a key too many", "[{\"kind\":\"dir\",\"mode\":\"0444\",\"path\":\"a\"}]", ERR_INVALID, "mode"},
	{"a key too few", "[{\"kind\":\"dir\"}]", ERR_INVALID, "entry 1: $.path: is missing"},
	{"another kind", "[{\"kind\":\"fifo\",\"path\":\"a\"}]", ERR_INVALID, "$.kind"},
	{"another mode", "[{\"kind\":\"file\",\"mode\":\"4555\",\"path\":\"a\",\"sha256\":\"" HELLO "\",\"size_bytes\":5}]", ERR_INVALID, "$.mode"},
	{"no digest", "[" FILE_OF("a", "sha256:00", "5") "]", ERR_INVALID, "$.sha256"},
	{"a negative size", "[" FILE_OF("a", HELLO, "-1") "]", ERR_INVALID, "$.size_bytes"},
	{"another size", "[" FILE_OF("a", HELLO, "6") "]", ERR_INVALID, "a: has not the size"},
	{"sizes past the end of numbers", "[" FILE_OF("a", HELLO, "9223372036854775807") "," FILE_OF("b", HELLO, "9223372036854775807") "]",
	 ERR_LIMIT, "bytes"},
	{"the top itself", "[" DIR(".") "]", ERR_INVALID, "$.path"},
	{"upwards", "[" DIR("../a") "]", ERR_INVALID, "$.path"},
	{"an absolute path", "[" FILE_OF("/etc/passwd", HELLO, "5") "]", ERR_INVALID, "$.path"},
	{"an empty path", "[" DIR("") "]", ERR_INVALID, "$.path"},
	{"in a directory that was not named", "[" FILE_OF("d/a", HELLO, "5") "]", ERR_INVALID, "d/a: does not fit"},
	{"in a file", "[" FILE_OF("a", HELLO, "5") "," FILE_OF("a/b", HELLO, "5") "]", ERR_INVALID, "a/b: does not fit"},
	{"through a link", "[" DIR("a") "," LINK("b", "a") "," FILE_OF("b/c", HELLO, "5") "]", ERR_INVALID, "b/c: does not fit"},
	{"through a link upwards", "[" LINK("b", "..") "," DIR("b/c") "]", ERR_INVALID, "b/c: does not fit"},
	{"over a link", "[" LINK("b", "../../x") "," FILE_OF("b", HELLO, "5") "]", ERR_INVALID, "b: does not fit"},
	{"a name twice", "[" FILE_OF("a", HELLO, "5") "," FILE_OF("a", HELLO, "5") "]", ERR_INVALID, "a: does not fit"},
	{"a directory twice", "[" DIR("a") "," DIR("a") "]", ERR_INVALID, "a: does not fit"},
	{"an absolute link", "[" LINK("b", "/etc/shadow") "]", ERR_INVALID, "b: is an absolute link"},
	{"a link that leads out", "[" LINK("b", "../x") "]", ERR_INVALID, "b: is a link that leaves"},
	{"a link to nothing", "[" LINK("b", "") "]", ERR_INVALID, "b: is a link to nothing"},
	{"another order", "[" DIR("b") "," DIR("a") "]", ERR_INVALID, "canonical"},
	{"another spelling", "[" DIR("\\\\x61") "]", ERR_INVALID, "$.path"},
	{"invalid UTF-8", "[" DIR("\xff") "]", ERR_INVALID, "entry 1: "},
	{"a NUL", "[" DIR("a\\u0000b") "]", ERR_INVALID, "entry 1: "},
};

static void what_is_no_listing_of_a_tree_leaves_nothing(void **state)
{
	struct place *place = *state;
	put_object(place, "hello");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int result = put(place, bad[i].listing);
		if (result != bad[i].code || !strstr(place->err.text, bad[i].says))
			fail_msg("%s: %d, %s", bad[i].what, result, place->err.text);
		expect_nothing(place);
	}
}

static int put_levels(struct place *place, int levels)
{
	BUF_AUTO struct buf listing = BUF_INIT(A_MIB), path = BUF_INIT(A_MIB);
	for (int level = 0; level < levels; level++) {
		assert_int_equal(buf_printf(&path, NULL, "%sd", level > 0 ? "/" : ""), 0);
		assert_int_equal(buf_printf(&listing, NULL, "%c{\"kind\":\"dir\",\"path\":\"%s\"}", level > 0 ? ',' : '[', path.data), 0);
	}
	assert_int_equal(buf_puts(&listing, "]", NULL), 0);
	return put_bytes(place, listing.data, listing.len);
}

static void a_name_that_no_file_system_takes_is_told(void **state)
{
	static const struct {
		const char *before, *after;
		int length;
	} lines[] = {
		{"[{\"kind\":\"dir\",\"path\":\"", "\"}]", 300},
		{"[{\"kind\":\"file\",\"mode\":\"0444\",\"path\":\"", "\",\"sha256\":\"" HELLO "\",\"size_bytes\":5}]", 300},
		{"[{\"kind\":\"link\",\"path\":\"a\",\"target\":\"", "\"}]", 5000},
	};
	struct place *place = *state;
	put_object(place, "hello");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		BUF_AUTO struct buf listing = BUF_INIT(A_MIB);
		assert_int_equal(buf_printf(&listing, NULL, "%s%0*d%s", lines[i].before, lines[i].length, 1, lines[i].after), 0);
		assert_int_equal(put_bytes(place, listing.data, listing.len), ERR_INVALID);
		assert_non_null(strstr(place->err.text, "is too long"));
		expect_nothing(place);
	}
}

/* As deep as what is walked, no deeper; and what could not be walked is not even begun. */
static void no_more_levels_than_a_tree_may_have(void **state)
{
	struct place *place = *state;
	assert_int_equal(put_levels(place, TREE_DEPTH_MAX + 1), ERR_LIMIT);
	assert_non_null(strstr(place->err.text, "entry 65: $.path: is more than"));
	assert_int_equal(put_levels(place, TREE_DEPTH_MAX - 1), ERR_LIMIT);
	expect_nothing(place);
	assert_int_equal(put_levels(place, TREE_DEPTH_MAX - 2), 0);
}

/* Whoever can write to the store, past its rules. */
static void an_object_that_was_changed_is_damage(void **state)
{
	struct place *place = *state;
	char object[160];
	put_object(place, "hello");
	snprintf(object, sizeof(object), "%s/store/objects/2c/%s", place->path, &HELLO[strlen("sha256:2c")]);
	assert_int_equal(chmod(object, 0700), 0);
	FD_AUTO int fd = open(object, O_WRONLY | O_CLOEXEC);
	assert_int_equal(fd_write_all(fd, "jello", 5), 0);
	assert_int_equal(chmod(object, STORE_OBJECT_MODE), 0);
	assert_int_equal(put(place, "[" FILE_OF("a", HELLO, "5") "]"), ERR_DAMAGED);
	expect_nothing(place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_directory_elsewhere_becomes_the_same_tree, setup, teardown),
		cmocka_unit_test_setup_teardown(a_tree_that_is_there_needs_no_objects, setup, teardown),
		cmocka_unit_test_setup_teardown(only_so_many_that_are_missing_are_told, setup, teardown),
		cmocka_unit_test_setup_teardown(the_empty_directory_is_one, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_listing_of_a_tree_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_that_no_file_system_takes_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(no_more_levels_than_a_tree_may_have, setup, teardown),
		cmocka_unit_test_setup_teardown(an_object_that_was_changed_is_damage, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
