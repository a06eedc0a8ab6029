/* test_ledger_dir.c - which directories may be a ledger. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "ledger/ledger_dir.h"
#include "ledger_fixture.h"

enum { PATH_SIZE = 128 };

static int setup(void **state)
{
	char *path = strdup("/tmp/caisson-test-dir-XXXXXX");

	assert_non_null(mkdtemp(path));
	*state = path;
	return 0;
}

static int teardown(void **state)
{
	fixture_remove_tree(*state);
	free(*state);
	return 0;
}

static void it_is_made_with_its_parents_for_us_alone(void **state)
{
	FD_AUTO int dir = -1;
	struct err err = ERR_INIT;
	char path[PATH_SIZE];
	struct stat st;

	snprintf(path, sizeof path, "%s/state/caisson", (const char *)*state);
	assert_int_equal(ledger_dir_open(path, true, &dir, NULL, &err), 0);
	assert_int_equal(fstat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void it_is_not_made_when_only_asked_for(void **state)
{
	struct err err = ERR_INIT;
	char path[PATH_SIZE];
	int dir = -1;

	snprintf(path, sizeof path, "%s/absent", (const char *)*state);
	assert_int_equal(ledger_dir_open(path, false, &dir, NULL, &err), ERR_NOT_FOUND);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void one_that_others_can_write_is_refused_by_name(void **state)
{
	static const mode_t modes[] = {0770, 0707, 0777, 01777};
	struct err err = ERR_INIT;
	int dir = -1;

	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		assert_int_equal(chmod(*state, modes[i]), 0);
		assert_int_equal(ledger_dir_open(*state, true, &dir, NULL, &err), ERR_PERMISSION);
		assert_non_null(strstr(err.text, *state));
	}
	assert_int_equal(chmod(*state, 0755), 0);
	assert_int_equal(ledger_dir_open(*state, true, &dir, NULL, &err), 0);
	close(dir);
}

static void one_of_another_user_is_refused(void **state)
{
	struct err err = ERR_INIT;
	int dir = -1;

	if (geteuid() != 0) {
		print_message("skipped: needs root to give a directory away\n");
		skip();
	}
	assert_int_equal(chown(*state, 12345, 12345), 0);
	assert_int_equal(ledger_dir_open(*state, true, &dir, NULL, &err), ERR_PERMISSION);
	assert_non_null(strstr(err.text, "uid 12345"));
}

static void tmpfs_is_allowed_and_told(void **state)
{
	char path[] = "/dev/shm/caisson-test-dir-XXXXXX";
	struct err err = ERR_INIT;
	bool is_volatile = false;
	int dir = -1;

	(void)state;
	if (!mkdtemp(path)) {
		print_message("skipped: no /dev/shm\n");
		skip();
	}
	assert_int_equal(ledger_dir_open(path, false, &dir, &is_volatile, &err), 0);
	assert_true(is_volatile);
	close(dir);
	rmdir(path);
}

static void a_file_is_no_directory(void **state)
{
	struct err err = ERR_INIT;
	char path[PATH_SIZE];
	int dir = -1;

	snprintf(path, sizeof path, "%s/file", (const char *)*state);
	fclose(fopen(path, "w"));
	assert_true(ledger_dir_open(path, true, &dir, NULL, &err) < 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(it_is_made_with_its_parents_for_us_alone),
		CASE(it_is_not_made_when_only_asked_for),
		CASE(one_that_others_can_write_is_refused_by_name),
		CASE(one_of_another_user_is_refused),
		CASE(tmpfs_is_allowed_and_told),
		CASE(a_file_is_no_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
