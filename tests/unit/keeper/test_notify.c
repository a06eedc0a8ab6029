/* test_notify.c - what the service manager hears, over a real socket of its kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "keeper/notify.h"

static int listen_on(const char *path, bool abstract)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path, path, strlen(path));
	if (abstract)
		address.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))), 0);
	return fd;
}

static void hears(const char *path, bool abstract)
{
	struct notify notify;
	char text[64] = "";
	int manager = listen_on(path, abstract);
	assert_int_equal(notify_open(path, &notify, NULL), 0);
	notify_send(&notify, "READY=1\nSTATUS=serving");
	assert_int_equal(recv(manager, text, sizeof(text) - 1, MSG_DONTWAIT), 22);
	assert_string_equal(text, "READY=1\nSTATUS=serving");
	close(manager);
	notify_send(&notify, "STOPPING=1"); /* a manager that is gone hurts nobody */
	notify_close(&notify);
}

static void a_manager_hears_at_a_path_and_at_an_abstract_name(void **state)
{
	char path[64], name[64];
	(void)state;
	snprintf(path, sizeof(path), "/tmp/caisson-notify-%d", getpid());
	snprintf(name, sizeof(name), "@caisson-notify-%d", getpid());
	hears(path, false);
	unlink(path);
	hears(name, true);
}

static void without_a_manager_nothing_happens(void **state)
{
	struct notify notify;
	(void)state;
	assert_int_equal(notify_open(NULL, &notify, NULL), 0);
	assert_int_equal(notify.fd, -1);
	notify_send(&notify, "READY=1");
	assert_int_equal(notify_open("", &notify, NULL), 0);
	notify_close(&notify);
}

static void what_is_no_socket_is_told(void **state)
{
	struct notify notify;
	struct err err = ERR_INIT;
	char long_path[200];
	(void)state;
	memset(long_path, 'a', sizeof(long_path) - 1);
	long_path[0] = '/';
	long_path[sizeof(long_path) - 1] = '\0';
	assert_int_equal(notify_open("vsock:2:1234", &notify, &err), ERR_INVALID);
	assert_int_equal(notify_open("@", &notify, &err), ERR_INVALID);
	assert_int_equal(notify_open(long_path, &notify, &err), ERR_INVALID);
	assert_true(notify_open("/nonexistent/notify", &notify, &err) < 0);
	assert_int_equal(notify.fd, -1);
}

static void the_watchdog_is_due_in_half_its_time_and_only_for_this_process(void **state)
{
	char own[16], other[16];
	(void)state;
	snprintf(own, sizeof(own), "%d", getpid());
	snprintf(other, sizeof(other), "%d", getpid() + 1);
	assert_int_equal(notify_watchdog_ms("30000000", own), 15000);
	assert_int_equal(notify_watchdog_ms("30000000", NULL), 15000);
	assert_int_equal(notify_watchdog_ms("30000000", other), -1);
	assert_int_equal(notify_watchdog_ms("1", own), 1);
	assert_int_equal(notify_watchdog_ms("0", own), -1);
	assert_int_equal(notify_watchdog_ms("-5", own), -1);
	assert_int_equal(notify_watchdog_ms("30s", own), -1);
	assert_int_equal(notify_watchdog_ms("99999999999999999999999", own), -1);
	assert_int_equal(notify_watchdog_ms(NULL, NULL), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_manager_hears_at_a_path_and_at_an_abstract_name),
		cmocka_unit_test(without_a_manager_nothing_happens),
		cmocka_unit_test(what_is_no_socket_is_told),
		cmocka_unit_test(the_watchdog_is_due_in_half_its_time_and_only_for_this_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
