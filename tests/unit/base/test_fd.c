/* test_fd.c - whole reads and writes, small kernel files, and paths that cannot leave their directory. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

/* A directory of the test's own, removed at its end. */
struct place {
	char path[64];
	int dir;
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof *place);

	snprintf(place->path, sizeof place->path, "/tmp/caisson-test-fd-XXXXXX");
	assert_non_null(mkdtemp(place->path));
	place->dir = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(place->dir >= 0);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = {"sub/file", "file", "link", "up", NULL};
	struct place *place = *state;

	for (size_t i = 0; names[i]; i++)
		unlinkat(place->dir, names[i], 0);
	unlinkat(place->dir, "sub", AT_REMOVEDIR);
	close(place->dir);
	assert_int_equal(rmdir(place->path), 0);
	free(place);
	return 0;
}

static void put(const struct place *place, const char *name, const char *bytes, size_t count)
{
	FD_AUTO int fd = openat(place->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, bytes, count), 0);
}

static void put_text(const struct place *place, const char *text)
{
	put(place, "file", text, strlen(text));
}

static void closing_keeps_errno_and_forgets_the_number(void **state)
{
	(void)state;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), closed = fd;

	errno = ERANGE;
	fd_close(&fd);
	assert_int_equal(fd, -1);
	assert_int_equal(errno, ERANGE);
	assert_int_equal(fcntl(closed, F_GETFD), -1);
	fd_close(&fd);
}

static void taking_moves_a_descriptor_out(void **state)
{
	(void)state;
	int fd = 7;

	assert_int_equal(fd_take(&fd), 7);
	assert_int_equal(fd, -1);
}

static void a_pipe_is_read_to_its_end(void **state)
{
	(void)state;
	int ends[2];
	char bytes[10];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fd_write_all(ends[1], "abcdef", 6), 0);
	assert_int_equal(fd_read_full(ends[0], bytes, 2), 2);
	close(ends[1]);
	assert_int_equal(fd_read_full(ends[0], bytes, sizeof bytes), 4);
	assert_memory_equal(bytes, "cdef", 4);
	assert_int_equal(fd_read_full(ends[0], bytes, sizeof bytes), 0);
	close(ends[0]);
	assert_int_equal(fd_read_full(-1, bytes, 1), -EBADF);
	assert_int_equal(fd_write_all(-1, bytes, 1), -EBADF);
}

static void a_positioned_read_leaves_the_offset_alone(void **state)
{
	const struct place *place = *state;
	char bytes[10];

	put_text(place, "0123456789");
	FD_AUTO int fd = openat(place->dir, "file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd_pread_full(fd, bytes, 4, 3), 4);
	assert_memory_equal(bytes, "3456", 4);
	assert_int_equal(fd_pread_full(fd, bytes, sizeof bytes, 8), 2);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
}

static void the_rest_of_a_file_fits_or_is_refused(void **state)
{
	const struct place *place = *state;
	enum { SIZE = 50000 };
	static char bytes[SIZE];
	BUF_AUTO struct buf fits = BUF_INIT(SIZE), tight = BUF_INIT(SIZE - 1);
	struct err err = ERR_INIT;

	memset(bytes, 'x', SIZE);
	put(place, "file", bytes, SIZE);
	FD_AUTO int fd = openat(place->dir, "file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd_read_rest(fd, &fits, &err), 0);
	assert_int_equal(fits.len, SIZE);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_rest(fd, &tight, &err), ERR_LIMIT);
	assert_int_equal(fd_read_rest(-1, &fits, &err), ERR_IO);
}

static void a_path_beneath_is_opened_and_no_other(void **state)
{
	const struct place *place = *state;

	assert_int_equal(mkdirat(place->dir, "sub", 0700), 0);
	put(place, "sub/file", "x", 1);
	assert_int_equal(symlinkat("sub/file", place->dir, "link"), 0);
	assert_int_equal(symlinkat("..", place->dir, "up"), 0);

	FD_AUTO int fd = fd_open_beneath(place->dir, "sub/file", O_RDONLY, 0);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fd_open_beneath(place->dir, "link", O_RDONLY, 0), -ELOOP);
	assert_int_equal(fd_open_beneath(place->dir, "up", O_RDONLY, 0), -ELOOP);
	assert_int_equal(fd_open_beneath(place->dir, "..", O_RDONLY, 0), -EXDEV);
	assert_int_equal(fd_open_beneath(place->dir, "/etc/passwd", O_RDONLY, 0), -EXDEV);
	assert_int_equal(fd_open_beneath(place->dir, "nothing", O_RDONLY, 0), -ENOENT);

	FD_AUTO int made = fd_open_beneath(place->dir, "file", O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(made >= 0);
}

static void small_texts_lose_one_newline(void **state)
{
	const struct place *place = *state;
	char text[8];

	put_text(place, "abc\n\n");
	assert_int_equal(fd_read_text(place->dir, "file", text, sizeof text), 4);
	assert_string_equal(text, "abc\n");
	put_text(place, "");
	assert_int_equal(fd_read_text(place->dir, "file", text, sizeof text), 0);
	assert_string_equal(text, "");
	put_text(place, "1234567");
	assert_int_equal(fd_read_text(place->dir, "file", text, sizeof text), 7);
	put_text(place, "12345678");
	assert_int_equal(fd_read_text(place->dir, "file", text, sizeof text), -EFBIG);
	assert_int_equal(fd_read_text(place->dir, "nothing", text, sizeof text), -ENOENT);
}

static void a_kernel_file_longer_than_a_page_is_read_whole(void **state)
{
	(void)state;
	static char text[1 << 20];
	ssize_t length = fd_read_text(AT_FDCWD, "/proc/self/smaps", text, sizeof text);

	assert_true(length > 4096);
	assert_non_null(strstr(text, "[stack]"));
}

static void texts_are_written_in_one_piece(void **state)
{
	const struct place *place = *state;
	char text[8];

	put_text(place, "");
	assert_int_equal(fd_write_text(place->dir, "file", "max"), 0);
	assert_int_equal(fd_read_text(place->dir, "file", text, sizeof text), 3);
	assert_string_equal(text, "max");
	assert_int_equal(fd_write_text(place->dir, "nothing", "1"), -ENOENT);
	assert_int_equal(fd_write_text(AT_FDCWD, "/dev/full", "1"), -ENOSPC);
}

static void numbers_are_read_strictly(void **state)
{
	const struct place *place = *state;
	static const struct {
		const char *text;
		int result;
		int64_t number;
	} cases[] = {
		{"0\n", 0, 0},
		{"42\n", 0, 42},
		{"-1\n", 0, -1},
		{"max\n", 0, INT64_MAX},
		{"9223372036854771712\n", 0, INT64_C(9223372036854771712)},
		{"9223372036854775807", 0, INT64_MAX},
		{"9223372036854775808", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"\n", -EINVAL, 0},
		{"-", -EINVAL, 0},
		{"--1", -EINVAL, 0},
		{"1 2", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{"1.5", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"maximum", -EINVAL, 0},
		{"1\n\n", -EINVAL, 0},
		{"000000000000000000000000000000000000000000001", -EINVAL, 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int64_t number = -77;
		put_text(place, cases[i].text);
		assert_int_equal(fd_read_number(place->dir, "file", &number), cases[i].result);
		assert_int_equal(number, cases[i].result == 0 ? cases[i].number : -77);
	}
	int64_t number = -77;
	put(place, "file", "1\0002", 3);
	assert_int_equal(fd_read_number(place->dir, "file", &number), -EINVAL);
	assert_int_equal(fd_read_number(place->dir, "nothing", &number), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_keeps_errno_and_forgets_the_number),
		cmocka_unit_test(taking_moves_a_descriptor_out),
		cmocka_unit_test(a_pipe_is_read_to_its_end),
		cmocka_unit_test_setup_teardown(a_positioned_read_leaves_the_offset_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_rest_of_a_file_fits_or_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_path_beneath_is_opened_and_no_other, set_up, tear_down),
		cmocka_unit_test_setup_teardown(small_texts_lose_one_newline, set_up, tear_down),
		cmocka_unit_test(a_kernel_file_longer_than_a_page_is_read_whole),
		cmocka_unit_test_setup_teardown(texts_are_written_in_one_piece, set_up, tear_down),
		cmocka_unit_test_setup_teardown(numbers_are_read_strictly, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
