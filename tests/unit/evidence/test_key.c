/* test_key.c - the keeper's key: made once, kept private, and standard Ed25519. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "evidence/key.h"

enum { MAKERS = 16 };

static int setup(void **state)
{
	char path[] = "/tmp/caisson-test-key-XXXXXX";
	int *dir = malloc(sizeof *dir);

	assert_non_null(mkdtemp(path));
	*dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = dir;
	return 0;
}

static int teardown(void **state)
{
	int *dir = *state;
	char link[40], path[64] = "";

	unlinkat(*dir, "key", 0);
	snprintf(link, sizeof link, "/proc/self/fd/%d", *dir);
	assert_true(readlink(link, path, sizeof path - 1) > 0);
	assert_int_equal(rmdir(path), 0); /* nothing else was left in it */
	close(*dir);
	free(dir);
	return 0;
}

static void it_is_made_once_and_for_us_alone(void **state)
{
	const int *dir = *state;
	struct key *first, *second;
	struct err err = ERR_INIT;
	struct stat st;

	assert_int_equal(key_open(*dir, &first, &err), 0);
	assert_int_equal(key_open(*dir, &second, &err), 0);
	assert_string_equal(key_fingerprint(first), key_fingerprint(second));
	assert_int_equal(fstatat(*dir, "key", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	key_free(first);
	key_free(second);
}

static void many_makers_agree_on_one(void **state)
{
	const int *dir = *state;
	int go[2], told[2];
	char first[DIGEST_HEX_SIZE], other[DIGEST_HEX_SIZE];

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(told), 0);
	for (int i = 0; i < MAKERS; i++)
		if (fork() == 0) {
			struct key *key;
			char byte;

			close(go[1]);
			if (read(go[0], &byte, 1) != 0 || key_open(*dir, &key, NULL) < 0)
				_exit(1);
			_exit(write(told[1], key_fingerprint(key), DIGEST_HEX_SIZE) != DIGEST_HEX_SIZE);
		}
	close(go[0]);
	close(go[1]);
	close(told[1]);
	assert_int_equal(fd_read_full(told[0], first, sizeof first), sizeof first);
	for (int i = 1; i < MAKERS; i++) {
		assert_int_equal(fd_read_full(told[0], other, sizeof other), sizeof other);
		assert_string_equal(other, first);
	}
	close(told[0]);
	for (int i = 0; i < MAKERS; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
}

static void one_that_others_could_have_read_is_refused(void **state)
{
	const int *dir = *state;
	struct key *key;
	struct err err = ERR_INIT;

	assert_int_equal(key_open(*dir, &key, &err), 0);
	key_free(key);
	assert_int_equal(fchmodat(*dir, "key", 0640, 0), 0);
	assert_int_equal(key_open(*dir, &key, &err), ERR_PERMISSION);
	assert_non_null(strstr(err.text, "0640"));
}

static void one_of_another_user_is_refused(void **state)
{
	const int *dir = *state;
	struct key *key;
	struct err err = ERR_INIT;

	if (geteuid() != 0) {
		print_message("skipped: needs root to give a file away\n");
		skip();
	}
	assert_int_equal(key_open(*dir, &key, &err), 0);
	key_free(key);
	assert_int_equal(fchownat(*dir, "key", 12345, 12345, 0), 0);
	assert_int_equal(key_open(*dir, &key, &err), ERR_PERMISSION);
}

static void a_link_or_a_short_file_is_no_key(void **state)
{
	const int *dir = *state;
	struct key *key;
	struct err err = ERR_INIT;

	assert_int_equal(symlinkat("/dev/zero", *dir, "key"), 0);
	assert_true(key_open(*dir, &key, &err) < 0);
	assert_int_equal(unlinkat(*dir, "key", 0), 0);
	FD_AUTO int fd = openat(*dir, "key", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_all(fd, "too short", 9), 0);
	assert_int_equal(key_open(*dir, &key, &err), ERR_DAMAGED);
}

static void from_hex(const char *hex, uint8_t *ret)
{
	for (; *hex; hex += 2) {
		unsigned int byte;

		assert_int_equal(sscanf(hex, "%2x", &byte), 1);
		*ret++ = (uint8_t)byte;
	}
}

/* RFC 8032, section 7.1, test 2: the file is seed and public key, and gives the RFC's signature. */
static void it_signs_as_the_rfc_says(void **state)
{
	const int *dir = *state;
	uint8_t file[64], expected[64], signature[64];
	struct key *key;
	struct err err = ERR_INIT;

	from_hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
	         "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", file);
	from_hex("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
	         "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00", expected);
	FD_AUTO int fd = openat(*dir, "key", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_all(fd, file, sizeof file), 0);
	assert_int_equal(key_open(*dir, &key, &err), 0);
	assert_int_equal(key_sign(key, "\x72", 1, signature, &err), 0);
	assert_memory_equal(signature, expected, sizeof expected);
	assert_int_equal(key_verify(key_public(key), "\x72", 1, signature, &err), 0);
	assert_int_equal(key_verify(key_public(key), "\x73", 1, signature, &err), ERR_DAMAGED);
	signature[63] ^= 1;
	assert_int_equal(key_verify(key_public(key), "\x72", 1, signature, &err), ERR_DAMAGED);
	key_free(key);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(it_is_made_once_and_for_us_alone),
		CASE(many_makers_agree_on_one),
		CASE(one_that_others_could_have_read_is_refused),
		CASE(one_of_another_user_is_refused),
		CASE(a_link_or_a_short_file_is_no_key),
		CASE(it_signs_as_the_rfc_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
