/* test_channel.c - bounded messages with descriptors: whole or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "keeper/channel.h"

struct both {
	struct channel here, there;
};

static int setup(void **state)
{
	struct both *both = calloc(1, sizeof(*both));
	struct err err = ERR_INIT;
	int ends[2];
	*state = both;
	return channel_pair(ends, &err) || channel_init(&both->here, ends[0], &err) || channel_init(&both->there, ends[1], &err);
}

static int teardown(void **state)
{
	struct both *both = *state;
	channel_done(&both->here);
	channel_done(&both->there);
	free(both);
	return 0;
}

static int open_fds(void)
{
	int count = 0;
	DIR *fds = opendir("/proc/self/fd");
	while (readdir(fds))
		count++;
	closedir(fds);
	return count;
}

static void a_message_arrives_as_it_was_sent(void **state)
{
	struct both *both = *state;
	struct err err = ERR_INIT;
	struct channel_message got;
	const struct channel_message plain = {.text = "{\"op\":1}", .length = 8};
	const struct channel_message rich = {.text = "{}", .length = 2, .document = "a\0b", .document_length = 3};
	const struct channel_message empty = {.text = "{}", .length = 2, .document = "", .document_length = 0};
	assert_int_equal(channel_send(&both->here, &plain, &err), 0);
	assert_int_equal(channel_send(&both->here, &rich, &err), 0);
	assert_int_equal(channel_send(&both->here, &empty, &err), 0);
	assert_int_equal(channel_receive(&both->there, &got, &err), 0);
	assert_string_equal(got.text, "{\"op\":1}");
	assert_int_equal(got.length, 8);
	assert_null(got.document);
	assert_int_equal(channel_receive(&both->there, &got, &err), 0);
	assert_string_equal(got.text, "{}");
	assert_int_equal(got.document_length, 3);
	assert_memory_equal(got.document, "a\0b", 4);
	assert_int_equal(channel_receive(&both->there, &got, &err), 0);
	assert_non_null(got.document);
	assert_int_equal(got.document_length, 0);
}

static void the_longest_message_fits_and_one_byte_more_is_refused(void **state)
{
	struct both *both = *state;
	struct err err = ERR_INIT;
	struct channel_message got;
	char *document = malloc(CHANNEL_MESSAGE_MAX);
	memset(document, 'x', CHANNEL_MESSAGE_MAX);
	struct channel_message message = {.text = "{}", .length = 2, .document = document, .document_length = CHANNEL_MESSAGE_MAX - 3};
	assert_int_equal(channel_send(&both->here, &message, &err), 0);
	assert_int_equal(channel_receive(&both->there, &got, &err), 0);
	assert_int_equal(got.document_length, message.document_length);
	assert_memory_equal(got.document, document, got.document_length);
	message.document_length++;
	assert_int_equal(channel_send(&both->here, &message, &err), ERR_LIMIT);
	free(document);
}

static void a_longer_one_from_a_liar_is_a_breach(void **state)
{
	struct both *both = *state;
	struct err err = ERR_INIT;
	struct channel_message got;
	char *bytes = calloc(1, CHANNEL_MESSAGE_MAX + 1);
	assert_int_equal(send(both->here.fd, bytes, CHANNEL_MESSAGE_MAX + 1, 0), CHANNEL_MESSAGE_MAX + 1);
	assert_int_equal(channel_receive(&both->there, &got, &err), ERR_PROTOCOL);
	free(bytes);
}

static void descriptors_arrive_closed_on_exec(void **state)
{
	struct both *both = *state;
	struct err err = ERR_INIT;
	struct channel_message got, message = {.text = "{}", .length = 2, .fd_count = CHANNEL_FDS_MAX};
	int ends[2], before = open_fds();
	assert_int_equal(pipe(ends), 0);
	for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
		message.fds[i] = ends[1];
	assert_int_equal(channel_send(&both->here, &message, &err), 0);
	assert_int_equal(channel_receive(&both->there, &got, &err), 0);
	assert_int_equal(got.fd_count, CHANNEL_FDS_MAX);
	for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
		assert_int_equal(fcntl(got.fds[i], F_GETFD), FD_CLOEXEC);
	int taken = fd_take(&got.fds[0]);
	assert_int_equal(write(taken, "x", 1), 1);
	close(taken);
	channel_message_done(&got);
	message.fd_count++;
	assert_int_equal(channel_send(&both->here, &message, &err), ERR_LIMIT);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(open_fds(), before);
}

static void too_many_descriptors_are_a_breach_and_none_stays_open(void **state)
{
	struct both *both = *state;
	struct err err = ERR_INIT;
	struct channel_message got;
	enum { MANY = CHANNEL_FDS_MAX + 1 };
	union {
		char bytes[CMSG_SPACE(MANY * sizeof(int))];
		struct cmsghdr align;
	} control = {.bytes = {0}};
	struct iovec part = {.iov_base = (char[]){'{', '}'}, .iov_len = 2};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
	*rights = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(MANY * sizeof(int))};
	memset(CMSG_DATA(rights), 0, MANY * sizeof(int)); /* descriptor 0, often enough */
	int before = open_fds();
	assert_int_equal(sendmsg(both->here.fd, &header, 0), 2);
	assert_int_equal(channel_receive(&both->there, &got, &err), ERR_PROTOCOL);
	assert_int_equal(open_fds(), before);
}

static void the_other_sides_end_is_an_error_and_no_signal(void **state)
{
	struct both *both = *state;
	struct err err = ERR_INIT;
	struct channel_message got, message = {.text = "{}", .length = 2};
	assert_int_equal(channel_send(&both->there, &message, &err), 0);
	fd_close(&both->there.fd);
	assert_int_equal(channel_receive(&both->here, &got, &err), 0);
	assert_int_equal(channel_receive(&both->here, &got, &err), ERR_LOST);
	assert_int_equal(channel_send(&both->here, &message, &err), ERR_LOST);
	assert_int_equal(err.code, ERR_LOST);
}

#define CHANNEL_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CHANNEL_TEST(a_message_arrives_as_it_was_sent),
		CHANNEL_TEST(the_longest_message_fits_and_one_byte_more_is_refused),
		CHANNEL_TEST(a_longer_one_from_a_liar_is_a_breach),
		CHANNEL_TEST(descriptors_arrive_closed_on_exec),
		CHANNEL_TEST(too_many_descriptors_are_a_breach_and_none_stays_open),
		CHANNEL_TEST(the_other_sides_end_is_an_error_and_no_signal),
	};
	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
