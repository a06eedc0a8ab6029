/* test_tree.c - a directory is sealed by what is in it, laid out once, and shown only as it was sealed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "artifact/store_internal.h"
#include "artifact/tree.h"
#include "base/fd.h"
#include "remove_tree.h"

enum { MANY = 10 * 1000, A_MIB = 1024 * 1024, WAIT_NS = 500 * 1000, WAITS_MAX = 20 * 1000 };

struct place {
	char path[64];
	int dir, source;
	struct store *store;
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
	place->source = openat(place->dir, "source", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	FD_AUTO int store = openat(place->dir, "store", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	*state = place;
	return store_open(store, &place->store, NULL);
}

static int teardown(void **state)
{
	struct place *place = *state;
	store_free(place->store);
	close(place->source);
	close(place->dir);
	int status = remove_tree(place->path);
	free(place);
	return status;
}

static void make_file(int dir, const char *name, const char *text, mode_t mode)
{
	FD_AUTO int fd = openat(dir, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static int put(struct place *place)
{
	place->err = ERR_INIT;
	return store_put_tree(place->store, place->source, A_MIB, &place->digest, &place->size, &place->err);
}

static int get(struct place *place)
{
	FD_AUTO int fd = -1;
	int64_t size = -1;
	int result = store_get_tree(place->store, &place->digest, &fd, &size, NULL);
	if (result == 0)
		assert_int_equal(size, place->size);
	return result;
}

/* Below the copy of the tree, relative to the store. */
static const char *copy_path(const struct place *place, const char *name, char path[static 256])
{
	char hex[DIGEST_HEX_SIZE];
	snprintf(path, 256, "store/" TREES_DIR "/%s%s%s", digest_hex(&place->digest, hex), *name ? "/" : "", name);
	return path;
}

static struct stat look(const struct place *place, const char *name)
{
	char path[256];
	struct stat status;
	assert_int_equal(fstatat(place->dir, copy_path(place, name, path), &status, AT_SYMLINK_NOFOLLOW), 0);
	return status;
}

static void settle(const struct place *place, const char *name)
{
	const struct timespec pause = {.tv_nsec = WAIT_NS};
	struct stat status = look(place, name);
	for (int i = 0; i < WAITS_MAX && !note_settled(&status); i++)
		nanosleep(&pause, NULL);
	assert_true(note_settled(&status));
}

static void make_some(const struct place *place)
{
	make_file(place->source, "b", "plain", 0640);
	make_file(place->source, "a", "program", 0700);
	assert_int_equal(mkdirat(place->source, "d", 0700), 0);
	assert_int_equal(mkdirat(place->source, "d/empty", 0700), 0);
	make_file(place->source, "d/none", "", 0600);
	assert_int_equal(symlinkat("../b", place->source, "d/up"), 0);
}

static void a_listing_says_all_that_counts(void **state)
{
	struct place *place = *state;
	char text[2048], plain[DIGEST_TEXT_SIZE], program[DIGEST_TEXT_SIZE], none[DIGEST_TEXT_SIZE], expected[2048];
	struct digest digest;
	make_some(place);
	assert_int_equal(put(place), 0);
	digest_of("plain", 5, &digest);
	digest_text(&digest, plain);
	digest_of("program", 7, &digest);
	digest_text(&digest, program);
	digest_of("", 0, &digest);
	digest_text(&digest, none);
	snprintf(expected, sizeof(expected),
	         "[{\"kind\":\"file\",\"mode\":\"0555\",\"path\":\"a\",\"sha256\":\"%s\",\"size_bytes\":7},"
	         "{\"kind\":\"file\",\"mode\":\"0444\",\"path\":\"b\",\"sha256\":\"%s\",\"size_bytes\":5},"
	         "{\"kind\":\"dir\",\"path\":\"d\"},{\"kind\":\"dir\",\"path\":\"d/empty\"},"
	         "{\"kind\":\"file\",\"mode\":\"0444\",\"path\":\"d/none\",\"sha256\":\"%s\",\"size_bytes\":0},"
	         "{\"kind\":\"link\",\"path\":\"d/up\",\"target\":\"../b\"}]", program, plain, none);
	FD_AUTO int fd = -1;
	int64_t size = 0;
	assert_int_equal(store_get(place->store, &place->digest, &fd, &size, NULL), 0);
	assert_in_range(size, 1, sizeof(text) - 1);
	assert_int_equal(fd_read_full(fd, text, sizeof(text)), size);
	text[size] = '\0';
	assert_string_equal(text, expected);
	assert_int_equal(place->size, 12);
}

static void the_copy_has_modes_of_its_own_and_links_as_links(void **state)
{
	struct place *place = *state;
	char path[256], target[16] = "";
	mode_t before = umask(0077);
	make_some(place);
	int result = put(place);
	umask(before);
	assert_int_equal(result, 0);
	assert_int_equal(look(place, "").st_mode, S_IFDIR | 0755);
	assert_int_equal(look(place, "a").st_mode, S_IFREG | 0555);
	assert_int_equal(look(place, "b").st_mode, S_IFREG | 0444);
	assert_int_equal(look(place, "d/empty").st_mode, S_IFDIR | 0755);
	assert_true(S_ISLNK(look(place, "d/up").st_mode));
	assert_int_equal(readlinkat(place->dir, copy_path(place, "d/up", path), target, sizeof(target) - 1), 4);
	assert_string_equal(target, "../b");
	assert_int_equal(get(place), 0);
	assert_int_equal(store_check_tree(place->store, &place->digest, NULL), 0);
}

static void the_same_contents_are_one_tree(void **state)
{
	struct place *place = *state;
	make_some(place);
	assert_int_equal(put(place), 0);
	struct digest first = place->digest, only;
	struct stat before = look(place, "a");
	int64_t size = 0;
	assert_int_equal(fchmodat(place->source, "b", 0604, 0), 0);
	assert_int_equal(put(place), 0);
	assert_true(digest_equal(&first, &place->digest));
	assert_int_equal(look(place, "a").st_ino, before.st_ino);
	assert_int_equal(tree_digest(place->source, A_MIB, &only, &size, NULL), 0);
	assert_true(digest_equal(&first, &only));
	assert_int_equal(unlinkat(place->source, "d/empty", AT_REMOVEDIR), 0);
	assert_int_equal(put(place), 0);
	assert_false(digest_equal(&first, &place->digest));
}

static void an_empty_directory_and_any_name_will_do(void **state)
{
	struct place *place = *state;
	static const char *const names[] = {"\xff\xfe", "new\nline", "back\\x5cslash", "\"", " ", "...", "-rf", "\xc3\xa4"};
	assert_int_equal(put(place), 0);
	assert_int_equal(get(place), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		make_file(place->source, names[i], names[i], 0600);
	assert_int_equal(put(place), 0);
	assert_int_equal(get(place), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(look(place, names[i]).st_size, strlen(names[i]));
	assert_int_equal(store_check_tree(place->store, &place->digest, NULL), 0);
}

static void links_that_could_lead_out_are_refused_by_name(void **state)
{
	struct place *place = *state;
	static const struct { const char *target; const char *words; } cases[] = {
		{"/etc/passwd", "absolute"}, {"../..", "leaves"}, {"../../x", "leaves"}, {"..//../x", "leaves"}, {"./../../x", "leaves"},
		{"x/../../..", "goes up"}, {"x/../y", "goes up"},
	};
	static const char *const fine[] = {"..", "../d", "nowhere", ".", "../x/y/z", "up"};
	assert_int_equal(mkdirat(place->source, "d", 0700), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(symlinkat(cases[i].target, place->source, "d/bad"), 0);
		assert_int_equal(put(place), ERR_INVALID);
		assert_non_null(strstr(place->err.text, "d/bad: "));
		assert_non_null(strstr(place->err.text, cases[i].words));
		assert_int_equal(unlinkat(place->source, "d/bad", 0), 0);
	}
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		assert_int_equal(symlinkat(fine[i], place->source, "d/good"), 0);
		assert_int_equal(put(place), 0);
		assert_int_equal(unlinkat(place->source, "d/good", 0), 0);
	}
}

static void what_is_no_file_directory_or_link_is_refused_by_name(void **state)
{
	struct place *place = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	assert_int_equal(mkdirat(place->source, "d", 0700), 0);
	assert_int_equal(mkfifoat(place->source, "d/x", 0600), 0);
	assert_int_equal(put(place), ERR_INVALID);
	assert_string_equal(place->err.text, "d/x: is a FIFO");
	assert_int_equal(unlinkat(place->source, "d/x", 0), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/source/d/x", place->path);
	FD_AUTO int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(put(place), ERR_INVALID);
	assert_string_equal(place->err.text, "d/x: is a socket");
}

static void bytes_and_depth_are_bounded(void **state)
{
	struct place *place = *state;
	make_file(place->source, "a", "1234", 0600);
	make_file(place->source, "b", "1234", 0600);
	assert_int_equal(store_put_tree(place->store, place->source, 8, &place->digest, &place->size, NULL), 0);
	assert_int_equal(store_put_tree(place->store, place->source, 7, &place->digest, &place->size, NULL), ERR_LIMIT);
	FD_AUTO int at = fcntl(place->source, F_DUPFD_CLOEXEC, 0);
	for (int i = 0; i <= TREE_DEPTH_MAX; i++) {
		assert_int_equal(mkdirat(at, "d", 0700), 0);
		int next = openat(at, "d", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
		close(at);
		at = next;
	}
	assert_int_equal(put(place), ERR_LIMIT);
}

static void ten_thousand_files_are_one_tree(void **state)
{
	struct place *place = *state;
	char name[32];
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "d%d", i % 100);
		if (i < 100)
			assert_int_equal(mkdirat(place->source, name, 0700), 0);
		snprintf(name, sizeof(name), "d%d/f%d", i % 100, i);
		make_file(place->source, name, name, 0600);
	}
	assert_int_equal(put(place), 0);
	assert_int_equal(get(place), 0);
	assert_int_equal(look(place, "d99/f9999").st_size, 9);
}

static void overwrite(const char *path)
{
	assert_int_equal(chmod(path, 0600), 0);
	FD_AUTO int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "?", 1, 0), 1);
	assert_int_equal(fchmod(fd, 0444), 0);
}

static void add(const char *path)
{
	char other[320];
	snprintf(other, sizeof(other), "%sx", path);
	FD_AUTO int fd = open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0444);
	assert_true(fd >= 0);
}

static void drop(const char *path)
{
	assert_int_equal(unlink(path), 0);
}

static void put_a_link(const char *path)
{
	drop(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
}

static void put_a_fifo(const char *path)
{
	drop(path);
	assert_int_equal(mkfifo(path, 0444), 0);
}

static void make_executable(const char *path)
{
	assert_int_equal(chmod(path, 0555), 0);
}

static void a_copy_with_other_contents_is_damage_each_time(void **state)
{
	struct place *place = *state;
	void (*const ways[])(const char *path) = {overwrite, add, drop, put_a_link, put_a_fifo, make_executable};
	make_some(place);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		char path[256], whole[320], text[8];
		snprintf(text, sizeof(text), "%zu", i);
		make_file(place->source, "b", text, 0600); /* another tree each time */
		assert_int_equal(put(place), 0);
		assert_int_equal(get(place), 0);
		settle(place, "");
		snprintf(whole, sizeof(whole), "%s/%s", place->path, copy_path(place, "b", path));
		ways[i](whole);
		assert_int_equal(get(place), ERR_DAMAGED);
		settle(place, "");
		assert_int_equal(get(place), ERR_DAMAGED);
		assert_int_equal(store_check_tree(place->store, &place->digest, NULL), ERR_DAMAGED);
	}
}

static int count(void *context, const struct store_entry *entry)
{
	if (!entry->stray)
		((int *)context)[entry->tree]++;
	else
		((int *)context)[2]++;
	return 0;
}

static void a_sweep_finds_and_removes_trees_and_what_was_left_of_one(void **state)
{
	struct place *place = *state;
	int counts[3] = {0};
	make_some(place);
	assert_int_equal(put(place), 0);
	assert_int_equal(mkdirat(place->dir, "store/tmp/tree-left", 0700), 0);
	make_file(place->dir, "store/tmp/tree-left/file", "x", 0444);
	assert_int_equal(store_remove_tree(place->store, &place->digest, NULL), ERR_STATE);
	assert_int_equal(store_walk(place->store, count, counts, NULL), 0);
	assert_int_equal(counts[0], 1);
	assert_int_equal(counts[1], 1);
	assert_int_equal(counts[2], 1);
	assert_int_equal(store_sweep_begin(place->store, 0, NULL), 0);
	assert_int_equal(store_remove_unfinished(place->store, NULL), 0);
	assert_int_equal(store_remove_tree(place->store, &place->digest, NULL), 0);
	assert_int_equal(store_remove_tree(place->store, &place->digest, NULL), ERR_NOT_FOUND);
	store_sweep_end(place->store);
	assert_int_equal(get(place), ERR_NOT_FOUND);
	memset(counts, 0, sizeof(counts));
	assert_int_equal(store_walk(place->store, count, counts, NULL), 0);
	assert_int_equal(counts[1] + counts[2], 0);
	assert_int_equal(put(place), 0);
	assert_int_equal(get(place), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_listing_says_all_that_counts),
		CASE(the_copy_has_modes_of_its_own_and_links_as_links),
		CASE(the_same_contents_are_one_tree),
		CASE(an_empty_directory_and_any_name_will_do),
		CASE(links_that_could_lead_out_are_refused_by_name),
		CASE(what_is_no_file_directory_or_link_is_refused_by_name),
		CASE(bytes_and_depth_are_bounded),
		CASE(ten_thousand_files_are_one_tree),
		CASE(a_copy_with_other_contents_is_damage_each_time),
		CASE(a_sweep_finds_and_removes_trees_and_what_was_left_of_one),
	};
	return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
