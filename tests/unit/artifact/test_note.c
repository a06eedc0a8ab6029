/* test_note.c - an object that was found right is read again only when it may be another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "artifact/store_internal.h"
#include "base/fd.h"
#include "remove_tree.h"

enum { LARGE = 2 * NOTE_MIN_BYTES, WAIT_NS = 500 * 1000, WAITS_MAX = 20 * 1000 };

struct place {
	char path[64], object[128], note[128];
	int dir;
	struct store *store;
	struct digest digest;
};

static void put(struct place *place, char filling, size_t size)
{
	static char bytes[LARGE];
	char hex[DIGEST_HEX_SIZE];
	memset(bytes, filling, size);
	assert_int_equal(store_put_bytes(place->store, bytes, size, true, &place->digest, NULL), 0);
	digest_hex(&place->digest, hex);
	snprintf(place->object, sizeof(place->object), "objects/%.2s/%.62s", hex, hex + 2);
	snprintf(place->note, sizeof(place->note), NOTES_DIR "/%s", hex);
}

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	snprintf(place->path, sizeof(place->path), "/tmp/caisson-note-XXXXXX");
	if (!mkdtemp(place->path))
		return -1;
	place->dir = open(place->path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	*state = place;
	return store_open(place->dir, &place->store, NULL);
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

static struct stat look(const struct place *place)
{
	struct stat status;
	assert_int_equal(fstatat(place->dir, place->object, &status, AT_SYMLINK_NOFOLLOW), 0);
	return status;
}

/* Until the clock of the file system has gone on since the object's last change. */
static void settle(const struct place *place)
{
	const struct timespec pause = {.tv_nsec = WAIT_NS};
	struct stat status = look(place);
	for (int i = 0; i < WAITS_MAX && !note_settled(&status); i++)
		nanosleep(&pause, NULL);
	assert_true(note_settled(&status));
}

static bool is_noted(const struct place *place)
{
	struct stat status = look(place);
	return note_holds(place->store, &place->digest, &status);
}

static int get(const struct place *place)
{
	FD_AUTO int fd = -1;
	int64_t size = -1;
	int result = store_get_checked(place->store, &place->digest, &fd, &size, NULL);
	if (result == 0) {
		assert_int_equal(size, look(place).st_size);
		assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	}
	return result;
}

/* Other bytes of the same number, through the mode and back. */
static void overwrite(const struct place *place)
{
	settle(place);
	assert_int_equal(fchmodat(place->dir, place->object, 0755, 0), 0);
	FD_AUTO int fd = openat(place->dir, place->object, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "?", 1, LARGE / 2), 1);
	assert_int_equal(fchmodat(place->dir, place->object, 0555, 0), 0);
}

static void change_nothing_but_the_time(const struct place *place)
{
	settle(place);
	assert_int_equal(fchmodat(place->dir, place->object, 0555, 0), 0);
}

static void what_was_put_is_noted(void **state)
{
	struct place *place = *state;
	put(place, 'a', LARGE);
	assert_true(is_noted(place));
	assert_int_equal(get(place), 0);
}

static void a_small_object_is_always_read(void **state)
{
	struct place *place = *state;
	put(place, 'a', NOTE_MIN_BYTES - 1);
	settle(place);
	assert_int_equal(get(place), 0);
	assert_int_equal(faccessat(place->dir, NOTES_DIR, F_OK, 0), -1);
}

/* That the object is not read shows in that a note which says so is believed. */
static void a_noted_object_is_not_read(void **state)
{
	struct place *place = *state;
	put(place, 'a', LARGE);
	overwrite(place);
	struct stat status = look(place);
	note_write(place->store, &place->digest, &status);
	assert_int_equal(get(place), 0);
	assert_int_equal(store_check(place->store, &place->digest, NULL), ERR_DAMAGED);
}

static void other_bytes_are_damage_each_time(void **state)
{
	struct place *place = *state;
	put(place, 'a', LARGE);
	overwrite(place);
	settle(place);
	assert_int_equal(get(place), ERR_DAMAGED);
	assert_int_equal(get(place), ERR_DAMAGED);
	assert_false(is_noted(place));
}

static void a_changed_time_costs_one_reading(void **state)
{
	struct place *place = *state;
	put(place, 'a', LARGE);
	change_nothing_but_the_time(place);
	assert_false(is_noted(place));
	settle(place);
	assert_int_equal(get(place), 0);
	assert_true(is_noted(place));
}

static void another_file_under_the_name_is_read(void **state)
{
	struct place *place = *state;
	put(place, 'a', LARGE);
	settle(place);
	FD_AUTO int fd = openat(place->dir, "other", O_CREAT | O_RDWR | O_CLOEXEC, 0555);
	assert_int_equal(ftruncate(fd, LARGE), 0);
	assert_int_equal(fchmod(fd, 0555), 0);
	assert_int_equal(renameat(place->dir, "other", place->dir, place->object), 0);
	assert_int_equal(get(place), ERR_DAMAGED);
}

static void a_change_in_this_tick_is_not_noted(void **state)
{
	struct place *place = *state;
	put(place, 'a', LARGE);
	settle(place);
	bool unsettled = false;
	for (int i = 0; i < WAITS_MAX && !unsettled; i++) {
		change_nothing_but_the_time(place);
		assert_int_equal(get(place), 0);
		unsettled = !is_noted(place);
	}
	assert_true(unsettled);
}

enum falsehood { CUT, OTHER_MODE, TWO_LINKS, A_LINK, A_DIRECTORY, EMPTY, FALSEHOODS };

static void falsify(struct place *place, enum falsehood how)
{
	FD_AUTO int fd = -1;
	switch (how) {
	case CUT:
	case EMPTY:
		assert_int_equal(fchmodat(place->dir, place->note, 0600, 0), 0);
		fd = openat(place->dir, place->note, O_WRONLY | O_CLOEXEC);
		assert_int_equal(ftruncate(fd, how == CUT ? 10 : 0), 0);
		assert_int_equal(fchmodat(place->dir, place->note, 0400, 0), 0);
		return;
	case OTHER_MODE:
		assert_int_equal(fchmodat(place->dir, place->note, 0420, 0), 0);
		return;
	case TWO_LINKS:
		assert_int_equal(linkat(place->dir, place->note, place->dir, "second", 0), 0);
		return;
	case A_LINK:
		assert_int_equal(renameat(place->dir, place->note, place->dir, "moved"), 0);
		assert_int_equal(symlinkat("../moved", place->dir, place->note), 0);
		return;
	case A_DIRECTORY:
		assert_int_equal(unlinkat(place->dir, place->note, 0), 0);
		assert_int_equal(mkdirat(place->dir, place->note, 0400), 0);
		return;
	case FALSEHOODS:
		fail();
	}
}

static void a_note_that_is_not_as_it_was_made_is_not_believed(void **state)
{
	struct place *place = *state;
	for (enum falsehood how = CUT; how < FALSEHOODS; how++) {
		put(place, (char)('a' + (int)how), LARGE);
		assert_true(is_noted(place));
		falsify(place, how);
		assert_false(is_noted(place));
		settle(place);
		assert_int_equal(get(place), 0);
		assert_int_equal(is_noted(place), how != A_DIRECTORY); /* renewed where it can be */
	}
}

static void a_note_goes_with_its_object(void **state)
{
	struct place *place = *state;
	put(place, 'a', LARGE);
	assert_int_equal(faccessat(place->dir, place->note, F_OK, 0), 0);
	assert_int_equal(store_sweep_begin(place->store, 0, NULL), 0);
	assert_int_equal(store_remove(place->store, &place->digest, NULL), 0);
	store_sweep_end(place->store);
	assert_int_equal(faccessat(place->dir, place->note, F_OK, 0), -1);
}

static int count_strays(void *context, const struct store_entry *entry)
{
	if (entry->stray) {
		assert_string_equal(entry->name, NOTES_DIR "/odd");
		++*(int *)context;
	}
	return 0;
}

static void a_walk_passes_notes_over_and_names_strays_beside_them(void **state)
{
	struct place *place = *state;
	int strays = 0;
	put(place, 'a', LARGE);
	assert_int_equal(store_walk(place->store, count_strays, &strays, NULL), 0);
	assert_int_equal(strays, 0);
	close(openat(place->dir, NOTES_DIR "/odd", O_CREAT | O_WRONLY | O_CLOEXEC, 0400));
	assert_int_equal(store_walk(place->store, count_strays, &strays, NULL), 0);
	assert_int_equal(strays, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(what_was_put_is_noted),
		CASE(a_small_object_is_always_read),
		CASE(a_noted_object_is_not_read),
		CASE(other_bytes_are_damage_each_time),
		CASE(a_changed_time_costs_one_reading),
		CASE(another_file_under_the_name_is_read),
		CASE(a_change_in_this_tick_is_not_noted),
		CASE(a_note_that_is_not_as_it_was_made_is_not_believed),
		CASE(a_note_goes_with_its_object),
		CASE(a_walk_passes_notes_over_and_names_strays_beside_them),
	};
	return cmocka_run_group_tests_name("note", tests, NULL, NULL);
}
