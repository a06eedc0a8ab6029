/* test_serve.c - the API as a front sees it that was taken over: it may say what it likes. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "stage.h"

/* A channel of its own, as a front that was taken over has it: another user's. */
static struct channel open_channel(struct stage *stage)
{
	const struct peer peer = {.uid = 7, .principal = "uid:7"};
	struct channel channel;
	struct err err = ERR_INIT;
	int pair[2];
	assert_int_equal(channel_pair(pair, &err), 0);
	assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(schedule_add(stage->api, pair[0], &peer, &err), 0);
	assert_int_equal(channel_init(&channel, pair[1], &err), 0);
	return channel;
}

/* What comes back: the text (valid until the next one), or "" when the channel is closed instead. */
static const char *question(struct channel *channel, const char *text, const int *fds, size_t fd_count)
{
	struct channel_message message = {.text = text, .length = strlen(text), .fd_count = fd_count}, answer;
	for (size_t i = 0; i < fd_count; i++)
		message.fds[i] = fds[i];
	assert_int_equal(channel_send(channel, &message, NULL), 0);
	if (channel_receive(channel, &answer, NULL))
		return "";
	channel_message_done(&answer);
	return answer.text;
}

static void a_front_that_asks_what_it_may_not_is_cut_off(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"null",
		"{\"op\":1}",
		"{\"op\":\"\"}",
		"{\"op\":\"shutdown\"}",
		"{\"op\":\"health\",\"uid\":0}",
		"{\"op\":\"run\",\"principal\":\"uid:0\"}",
		"{\"op\":\"health\",\"op\":\"health\"}",
	};
	struct stage *stage = *state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct channel channel = open_channel(stage);
		const char *answer = question(&channel, texts[i], NULL, 0);
		if (*answer)
			fail_msg("'%s' was answered: %s", texts[i], answer);
		channel_done(&channel);
	}
	assert_answer(stage, "GET", "/v1/health", "", NULL, "HTTP/1.1 200 ");
}

static void a_front_that_asks_badly_is_told_so_and_gets_nothing(void **state)
{
	static const char *const texts[] = {
		"{\"op\":\"run\",\"run\":\"../../x\"}",
		"{\"op\":\"run\",\"run\":7}",
		"{\"op\":\"run\"}",
		"{\"op\":\"logs\",\"run\":\"run-aaaaaaaaaaaaaaaa\",\"stream\":\"stdin\",\"offset\":0,\"wait_ms\":0}",
		"{\"op\":\"list\",\"limit\":201}",
		"{\"op\":\"list\",\"limit\":-1}",
		"{\"op\":\"list\",\"limit\":10,\"cursor\":\"1; DROP TABLE run\"}",
		"{\"op\":\"events\",\"run\":\"run-aaaaaaaaaaaaaaaa\",\"attempt\":-1,\"seq\":0,\"wait_ms\":0}",
		"{\"op\":\"object_seal\"}",
		"{\"op\":\"tree_seal\"}",
		"{\"op\":\"recover\",\"slot\":1}",
		"{\"op\":\"recover\",\"slot\":99999999999}",
		"{\"op\":\"submit\"}",
	};
	struct stage *stage = *state;
	struct channel channel = open_channel(stage);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_has(question(&channel, texts[i], NULL, 0), "{\"error\":");
	assert_int_equal(stage->recovered, 0);
	assert_has(question(&channel, "{\"op\":\"list\",\"limit\":10,\"owner\":\"uid:0\"}", NULL, 0), "{\"ok\":");
	channel_done(&channel);
}

/* Whatever it passes as a manifest: nothing blocks, and nothing stays open. */
static void a_front_that_passes_strange_descriptors_is_told_so(void **state)
{
	struct stage *stage = *state;
	struct channel channel = open_channel(stage);
	int pipes[2];
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	FD_AUTO int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	FD_AUTO int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FD_AUTO int large = memfd_create("large", MFD_CLOEXEC);
	assert_int_equal(ftruncate(large, INT64_C(1) << 40), 0);
	const int fds[] = {pipes[0], zero, dir, large};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		assert_has(question(&channel, "{\"op\":\"submit\"}", &fds[i], 1), "{\"error\":");
	close(pipes[0]);
	for (int64_t until = clock_mono_ns() + PATIENCE_S * NS_PER_S; write(pipes[1], "x", 1) == 1;)
		assert_true(clock_mono_ns() < until);
	assert_int_equal(errno, EPIPE);
	close(pipes[1]);
	channel_done(&channel);
}

static void a_front_that_speaks_while_it_has_to_wait_is_cut_off(void **state)
{
	struct stage *stage = *state;
	struct channel channel = open_channel(stage);
	struct channel_message message, answer;
	char run_id[ID_SIZE], text[128];
	bool existing;
	assert_int_equal(fixture_try_submit(&stage->fixture, "uid:7", NULL, run_id, &existing, NULL), 0);
	snprintf(text, sizeof(text), "{\"op\":\"run\",\"run\":\"%s\",\"wait_ms\":60000}", run_id);
	message = (struct channel_message){.text = text, .length = strlen(text)};
	assert_int_equal(channel_send(&channel, &message, NULL), 0);
	await_waiting(stage, 1);
	assert_int_equal(channel_send(&channel, &message, NULL), 0);
	assert_int_equal(channel_receive(&channel, &answer, NULL), ERR_LOST);
	await_waiting(stage, 0);
	channel_done(&channel);
}

static void uploads_are_few_at_a_time_and_a_lost_one_makes_room(void **state)
{
	struct stage *stage = *state;
	struct channel channels[API_UPLOADS_MAX + 1];
	for (size_t i = 0; i <= API_UPLOADS_MAX; i++) {
		channels[i] = open_channel(stage);
		assert_has(question(&channels[i], "{\"op\":\"object_begin\"}", NULL, 0),
		           i < API_UPLOADS_MAX ? "{\"ok\":" : "\"error\":\"busy\"");
	}
	channel_done(&channels[0]);
	for (int64_t until = clock_mono_ns() + PATIENCE_S * NS_PER_S;;) {
		if (strstr(question(&channels[API_UPLOADS_MAX], "{\"op\":\"object_begin\"}", NULL, 0), "{\"ok\":"))
			break;
		assert_true(clock_mono_ns() < until);
	}
	assert_has(question(&channels[1], "{\"op\":\"object_begin\"}", NULL, 0), "{\"ok\":"); /* its own again */
	assert_has(question(&channels[1], "{\"op\":\"object_seal\"}", NULL, 0), "{\"ok\":");
	for (size_t i = 1; i <= API_UPLOADS_MAX; i++)
		channel_done(&channels[i]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		api_test(a_front_that_asks_what_it_may_not_is_cut_off),
		api_test(a_front_that_asks_badly_is_told_so_and_gets_nothing),
		api_test(a_front_that_passes_strange_descriptors_is_told_so),
		api_test(a_front_that_speaks_while_it_has_to_wait_is_cut_off),
		api_test(uploads_are_few_at_a_time_and_a_lost_one_makes_room),
	};
	if (argc != 2)
		return 2;
	stage_front(argv[1]);
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
