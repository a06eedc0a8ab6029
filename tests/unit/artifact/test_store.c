/* test_store.c - the content-addressed store: what has a name has all its bytes, and a full disk leaves nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "artifact/store.h"
#include "base/fd.h"
#include "remove_tree.h"

struct place {
	char path[64];
	int dir;
	struct store *store;
};

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	struct err err = ERR_INIT;
	snprintf(place->path, sizeof(place->path), "/tmp/caisson-store-XXXXXX");
	if (!mkdtemp(place->path))
		return -1;
	place->dir = open(place->path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	*state = place;
	return store_open(place->dir, &place->store, &err);
}

static int teardown(void **state)
{
	struct place *place = *state;
	store_free(place->store);
	close(place->dir);
	int result = remove_tree(place->path);
	free(place);
	return result;
}

static void object_path(const struct digest *digest, char path[static 128])
{
	char hex[DIGEST_HEX_SIZE];
	digest_hex(digest, hex);
	snprintf(path, 128, "objects/%.2s/%s", hex, hex + 2);
}

static int count_objects(struct place *place)
{
	int count = 0;
	DIR *shards = fdopendir(openat(place->dir, "objects", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	assert_non_null(shards);
	for (struct dirent *shard; (shard = readdir(shards));) {
		if (shard->d_name[0] == '.')
			continue;
		DIR *names = fdopendir(openat(dirfd(shards), shard->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		assert_non_null(names);
		for (struct dirent *name; (name = readdir(names));)
			count += name->d_name[0] != '.';
		closedir(names);
	}
	closedir(shards);
	return count;
}

static struct digest put(struct place *place, const char *text)
{
	struct digest digest;
	struct err err = ERR_INIT;
	assert_int_equal(store_put_bytes(place->store, text, strlen(text), false, &digest, &err), 0);
	return digest;
}

static void what_was_put_can_be_got(void **state)
{
	struct place *place = *state;
	const char *texts[] = {"", "a", "hello, world\n"};
	for (size_t i = 0; i < 3; i++) {
		struct digest expected, digest = put(place, texts[i]);
		char bytes[64];
		int64_t size = -1;
		struct err err = ERR_INIT;
		int fd = -1;
		digest_of(texts[i], strlen(texts[i]), &expected);
		assert_true(digest_equal(&digest, &expected));
		assert_int_equal(store_get(place->store, &digest, &fd, &size, &err), 0);
		assert_int_equal(size, strlen(texts[i]));
		assert_int_equal(fd_read_full(fd, bytes, sizeof(bytes)), size);
		assert_memory_equal(bytes, texts[i], (size_t)size);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		assert_int_equal(write(fd, "x", 1), -1);
		close(fd);
		assert_int_equal(store_check(place->store, &digest, &err), 0);
	}
	assert_int_equal(count_objects(place), 3);
}

static void an_object_has_one_link_and_its_mode_whatever_the_umask(void **state)
{
	struct place *place = *state;
	char path[128];
	struct stat status;
	mode_t before = umask(0077);
	struct digest digest;
	struct err err = ERR_INIT;
	int result = store_put_bytes(place->store, "text", 4, true, &digest, &err);
	umask(before);
	assert_int_equal(result, 0);
	object_path(&digest, path);
	assert_int_equal(fstatat(place->dir, path, &status, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(status.st_mode, S_IFREG | 0555);
	assert_int_equal(status.st_nlink, 1);
}

static void putting_again_keeps_the_object(void **state)
{
	struct place *place = *state;
	char path[128];
	struct stat first, second;
	struct digest digest = put(place, "same");
	object_path(&digest, path);
	assert_int_equal(fstatat(place->dir, path, &first, 0), 0);
	put(place, "same");
	assert_int_equal(fstatat(place->dir, path, &second, 0), 0);
	assert_int_equal(first.st_ino, second.st_ino);
	assert_int_equal(count_objects(place), 1);
}

static void a_file_is_put_up_to_its_bound(void **state)
{
	struct place *place = *state;
	static char bytes[300000];
	struct digest digest, expected;
	int64_t size = 0;
	struct err err = ERR_INIT;
	int file = openat(place->dir, "source", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	memset(bytes, 'x', sizeof(bytes));
	assert_int_equal(fd_write_all(file, bytes, sizeof(bytes)), 0);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	assert_int_equal(store_put_fd(place->store, file, sizeof(bytes), true, &digest, &size, &err), 0);
	assert_int_equal(size, sizeof(bytes));
	digest_of(bytes, sizeof(bytes), &expected);
	assert_true(digest_equal(&digest, &expected));
	assert_int_equal(count_objects(place), 1);

	bytes[0] = 'y';
	assert_int_equal(pwrite(file, bytes, 1, 0), 1);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	assert_int_equal(store_put_fd(place->store, file, sizeof(bytes) - 1, false, &digest, &size, &err), ERR_LIMIT);
	assert_int_equal(count_objects(place), 1);
	close(file);
}

static void a_pipe_can_be_put(void **state)
{
	struct place *place = *state;
	int ends[2];
	struct digest digest, expected;
	int64_t size = 0;
	struct err err = ERR_INIT;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "piped", 5), 5);
	close(ends[1]);
	assert_int_equal(store_put_fd(place->store, ends[0], 5, false, &digest, &size, &err), 0);
	digest_of("piped", 5, &expected);
	assert_true(digest_equal(&digest, &expected));
	close(ends[0]);
}

static void an_unreadable_source_is_an_error(void **state)
{
	struct place *place = *state;
	struct digest digest;
	int64_t size = 0;
	struct err err = ERR_INIT;
	assert_true(store_put_fd(place->store, place->dir, 100, false, &digest, &size, &err) < 0);
	assert_int_equal(count_objects(place), 0);
}

static void an_absent_object_is_not_found(void **state)
{
	struct place *place = *state;
	struct digest digest;
	int64_t size;
	int fd;
	struct err err = ERR_INIT;
	digest_of("absent", 6, &digest);
	assert_int_equal(store_get(place->store, &digest, &fd, &size, &err), ERR_NOT_FOUND);
	assert_int_equal(store_check(place->store, &digest, &err), ERR_NOT_FOUND);
}

/* Puts an object's name on something else. */
static struct digest damage(struct place *place, const char *text, const char *how)
{
	char path[128];
	struct digest digest = put(place, text);
	object_path(&digest, path);
	if (strcmp(how, "bytes") == 0 || strcmp(how, "size") == 0) {
		assert_int_equal(fchmodat(place->dir, path, 0755, 0), 0);
		int fd = openat(place->dir, path, O_WRONLY | O_CLOEXEC);
		assert_int_equal(pwrite(fd, "?", 1, how[0] == 's' ? 100 : 0), 1);
		close(fd);
		assert_int_equal(fchmodat(place->dir, path, 0555, 0), 0);
		return digest;
	}
	if (strcmp(how, "mode") == 0) {
		assert_int_equal(fchmodat(place->dir, path, 0755, 0), 0);
		return digest;
	}
	if (strcmp(how, "links") == 0) {
		assert_int_equal(linkat(place->dir, path, place->dir, "second", 0), 0);
		return digest;
	}
	assert_int_equal(unlinkat(place->dir, path, 0), 0);
	if (strcmp(how, "symlink") == 0)
		assert_int_equal(symlinkat("/etc/passwd", place->dir, path), 0);
	else if (strcmp(how, "fifo") == 0)
		assert_int_equal(mkfifoat(place->dir, path, 0555), 0);
	else
		assert_int_equal(mkdirat(place->dir, path, 0555), 0);
	return digest;
}

static void what_is_no_object_of_ours_is_damage(void **state)
{
	struct place *place = *state;
	const char *ways[] = {"mode", "links", "symlink", "fifo", "directory"};
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct digest digest = damage(place, ways[i], ways[i]), again;
		int64_t size;
		int fd;
		struct err err = ERR_INIT;
		assert_int_equal(store_get(place->store, &digest, &fd, &size, &err), ERR_DAMAGED);
		assert_int_equal(store_check(place->store, &digest, &err), ERR_DAMAGED);
		assert_int_equal(store_put_bytes(place->store, ways[i], strlen(ways[i]), false, &again, &err), ERR_DAMAGED);
	}
}

static void changed_bytes_are_found_by_a_check(void **state)
{
	struct place *place = *state;
	struct err err = ERR_INIT;
	struct digest bytes = damage(place, "hello", "bytes"), size = damage(place, "world", "size"), again;
	assert_int_equal(store_check(place->store, &bytes, &err), ERR_DAMAGED);
	assert_int_equal(store_check(place->store, &size, &err), ERR_DAMAGED);
	assert_int_equal(store_put_bytes(place->store, "world", 5, false, &again, &err), ERR_DAMAGED);
}

enum { WRITERS = 6, ROUNDS = 40 };

static void writers_of_the_same_bytes_agree_on_one_object(void **state)
{
	struct place *place = *state;
	pid_t children[WRITERS];
	int gate[2];
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	for (int i = 0; i < WRITERS; i++) {
		children[i] = fork();
		if (children[i] != 0)
			continue;
		char byte;
		close(gate[1]);
		(void)!read(gate[0], &byte, 1); /* EOF opens the gate for all at once */
		for (int round = 0; round < ROUNDS; round++) {
			struct digest digest;
			struct err err = ERR_INIT;
			if (store_put_bytes(place->store, &round, sizeof(round), false, &digest, &err) < 0 ||
			    store_check(place->store, &digest, &err) < 0)
				_exit(1);
		}
		_exit(0);
	}
	close(gate[0]);
	close(gate[1]);
	for (int i = 0; i < WRITERS; i++) {
		int status;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(count_objects(place), ROUNDS);
}

/* In a child with a mount namespace of its own; its exit status says which line failed. */
static int fill_a_small_disk(struct place *place)
{
	static char bytes[256 * 1024];
	struct store *store = NULL;
	struct digest digest;
	struct err err = ERR_INIT;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", place->path, "tmpfs", 0, "size=128k") < 0)
		return 1;
	place->dir = open(place->path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (store_open(place->dir, &store, &err) < 0)
		return 2;
	memset(bytes, 'b', sizeof(bytes));
	if (store_put_bytes(store, bytes, sizeof(bytes), true, &digest, &err) != ERR_NO_SPACE || err.code != ERR_NO_SPACE)
		return 3;
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	int64_t size;
	if (store_put_fd(store, zero, 1 << 20, true, &digest, &size, &err) != ERR_NO_SPACE)
		return 4;
	if (count_objects(place) != 0)
		return 5;
	if (store_put_bytes(store, bytes, 64 * 1024, true, &digest, &err) < 0 || store_check(store, &digest, &err) < 0)
		return 6;
	store_free(store);
	return 0;
}

static void a_full_disk_leaves_nothing_and_works_again(void **state)
{
	int status;
	if (geteuid() != 0) {
		print_message("skipped: a tmpfs of our own needs root\n");
		if (getenv("CAISSON_TEST_MUST_RUN"))
			fail();
		skip();
	}
	pid_t child = fork();
	if (child == 0)
		_exit(fill_a_small_disk(*state));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void a_store_opens_again_with_what_it_had(void **state)
{
	struct place *place = *state;
	struct digest digest = put(place, "lasting");
	struct store *again = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(store_open(place->dir, &again, &err), 0);
	assert_int_equal(store_check(again, &digest, &err), 0);
	assert_true(store_dir_fd(again) >= 0);
	store_free(again);
	store_free(NULL);
	assert_int_equal(store_open(-1, &again, &err), ERR_IO);
}

static void a_link_in_the_place_of_a_subdirectory_is_refused(void **state)
{
	struct place *place = *state;
	struct store *again = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(unlinkat(place->dir, "tmp", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("/tmp", place->dir, "tmp"), 0);
	assert_true(store_open(place->dir, &again, &err) < 0);
	assert_null(again);
}

static void a_spool_has_no_name_and_can_be_put(void **state)
{
	struct place *place = *state;
	struct stat status;
	struct digest digest;
	struct err err = ERR_INIT;
	int64_t size = 0;
	FD_AUTO int spool = -1;
	assert_int_equal(store_spool(place->store, &spool, &err), 0);
	assert_int_equal(fstat(spool, &status), 0);
	assert_int_equal(status.st_nlink, 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(fd_write_all(spool, "bytes", 5), 0);
	assert_int_equal(lseek(spool, 0, SEEK_SET), 0);
	assert_int_equal(store_put_fd(place->store, spool, 5, true, &digest, &size, &err), 0);
	assert_int_equal(size, 5);
	assert_int_equal(store_check(place->store, &digest, &err), 0);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_spool_has_no_name_and_can_be_put),
		STORE_TEST(what_was_put_can_be_got),
		STORE_TEST(an_object_has_one_link_and_its_mode_whatever_the_umask),
		STORE_TEST(putting_again_keeps_the_object),
		STORE_TEST(a_file_is_put_up_to_its_bound),
		STORE_TEST(a_pipe_can_be_put),
		STORE_TEST(an_unreadable_source_is_an_error),
		STORE_TEST(an_absent_object_is_not_found),
		STORE_TEST(what_is_no_object_of_ours_is_damage),
		STORE_TEST(changed_bytes_are_found_by_a_check),
		STORE_TEST(writers_of_the_same_bytes_agree_on_one_object),
		STORE_TEST(a_full_disk_leaves_nothing_and_works_again),
		STORE_TEST(a_store_opens_again_with_what_it_had),
		STORE_TEST(a_link_in_the_place_of_a_subdirectory_is_refused),
	};
	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
