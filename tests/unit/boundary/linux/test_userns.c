/* test_userns.c - the settings that forbid user namespaces, read from a directory that looks like /proc/sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "boundary/linux/userns.h"

static char root[] = "/tmp/caisson-test-XXXXXX";
static int proc_sys = -1;

static void set(const char *file, const char *value)
{
	FD_AUTO int fd = openat(proc_sys, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, value, 2), 0);
}

static int make_root(void **unused)
{
	(void)unused;
	if (!mkdtemp(root))
		return -1;
	proc_sys = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return proc_sys < 0 || mkdirat(proc_sys, "user", 0700) != 0 || mkdirat(proc_sys, "kernel", 0700) != 0;
}

static int remove_entry(const char *path, const struct stat *status, int flag, struct FTW *where)
{
	(void)status;
	(void)flag;
	(void)where;
	return remove(path);
}

static int remove_root(void **unused)
{
	(void)unused;
	fd_close(&proc_sys);
	return nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* The setting that is in the way, or "". */
static const char *setting(bool privileged)
{
	const struct userns_restriction *restriction = userns_restriction_of(proc_sys, privileged);
	return restriction ? restriction->setting : "";
}

static void settings_that_are_not_there_forbid_nothing(void **unused)
{
	(void)unused;
	assert_string_equal(setting(false), "");
	set("user/max_user_namespaces", "9\n");
	set("kernel/unprivileged_userns_clone", "1\n");
	set("kernel/apparmor_restrict_unprivileged_userns", "0\n");
	assert_string_equal(setting(false), "");
	assert_string_equal(setting(true), "");
}

static void what_forbids_is_named_with_the_value_that_would_not(void **unused)
{
	static const struct {
		const char *file, *forbids, *allows, *setting, *value;
		bool root_too;
	} cases[] = {
		{"user/max_user_namespaces", "0\n", "9\n", "user.max_user_namespaces", "15000", true},
		{"kernel/unprivileged_userns_clone", "0\n", "1\n", "kernel.unprivileged_userns_clone", "1", false},
		{"kernel/apparmor_restrict_unprivileged_userns", "1\n", "0\n", "kernel.apparmor_restrict_unprivileged_userns", "0", false},
	};
	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set(cases[i].file, cases[i].forbids);
		assert_string_equal(setting(false), cases[i].setting);
		assert_string_equal(userns_restriction_of(proc_sys, false)->value, cases[i].value);
		assert_string_equal(setting(true), cases[i].root_too ? cases[i].setting : "");
		set(cases[i].file, cases[i].allows);
		assert_string_equal(setting(false), "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_that_are_not_there_forbid_nothing),
		cmocka_unit_test(what_forbids_is_named_with_the_value_that_would_not),
	};
	return cmocka_run_group_tests(tests, make_root, remove_root);
}
