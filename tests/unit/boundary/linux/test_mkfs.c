/* test_mkfs.c - a file becomes an ext4 with exactly these inodes; what cannot be one is refused in the program's own words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "boundary/linux/mkfs.h"

/* Of the superblock, which is little-endian (Documentation/filesystems/ext4, "Super Block"). */
enum { SUPERBLOCK = 1024, INODES_AT = 0, BLOCKS_AT = 4, MAGIC_AT = 56, FEATURES_AT = 92, MAGIC = 0xef53, HAS_JOURNAL = 4, IMAGE_BYTES = 8 << 20 };

static int make_image(void)
{
	int image = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	assert_true(image >= 0);
	assert_int_equal(fallocate(image, 0, 0, IMAGE_BYTES), 0);
	return image;
}

static uint32_t number_at(int image, off_t place, size_t bytes)
{
	uint8_t raw[4] = {0};
	assert_int_equal(fd_pread_full(image, raw, bytes, SUPERBLOCK + place), (ssize_t)bytes);
	return (uint32_t)raw[0] | (uint32_t)raw[1] << 8 | (uint32_t)raw[2] << 16 | (uint32_t)raw[3] << 24;
}

static void a_file_becomes_a_file_system_of_its_size(void **state)
{
	(void)state;
	struct err err = ERR_INIT;
	FD_AUTO int image = make_image();
	if (mkfs_ext4(image, 512, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(number_at(image, MAGIC_AT, 2), MAGIC);
	assert_int_equal(number_at(image, INODES_AT, 4), 512);
	assert_int_equal(number_at(image, BLOCKS_AT, 4), IMAGE_BYTES / MKFS_BLOCK_BYTES);
	assert_int_equal(number_at(image, FEATURES_AT, 4) & HAS_JOURNAL, 0);
}

/* The descriptor that the program is given has a number of its own. */
static void any_number_of_a_descriptor_will_do(void **state)
{
	(void)state;
	struct err err = ERR_INIT;
	int image = make_image();
	for (int number = 3; number <= 4; number++) {
		FD_AUTO int moved = fcntl(image, F_DUPFD_CLOEXEC, number);
		assert_true(moved >= 3);
		assert_int_equal(mkfs_ext4(moved, 64, &err), 0);
	}
	close(image);
}

static void what_cannot_be_one_is_refused_in_its_own_words(void **state)
{
	(void)state;
	struct err err = ERR_INIT;
	FD_AUTO int image = make_image();
	assert_int_equal(mkfs_ext4(image, 1 << 20, &err), ERR_UNENFORCEABLE);
	assert_non_null(strstr(err.text, "limit.work: mkfs.ext4: "));
	assert_non_null(strstr(err.text, "inode"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_becomes_a_file_system_of_its_size),
		cmocka_unit_test(any_number_of_a_descriptor_will_do),
		cmocka_unit_test(what_cannot_be_one_is_refused_in_its_own_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
