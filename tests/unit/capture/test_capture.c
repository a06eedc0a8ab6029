/* test_capture.c - the bounded sink: exact caps, head and tail, live reading, and what crosses a process boundary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "capture/capture.h"

enum { TEXT_MAX = 256 * 1024 };

struct text {
	char bytes[TEXT_MAX];
	size_t length;
};

static int collect(void *context, const void *bytes, size_t count)
{
	struct text *text = context;
	assert_true(text->length + count <= TEXT_MAX);
	memcpy(text->bytes + text->length, bytes, count);
	text->length += count;
	return 0;
}

static void kept_is(struct capture *capture, int64_t offset, const char *want)
{
	static struct text text;
	struct err err = ERR_INIT;
	text.length = 0;
	assert_int_equal(capture_read(capture, offset, collect, &text, &err), 0);
	assert_int_equal(text.length, strlen(want));
	assert_memory_equal(text.bytes, want, text.length);
}

static struct capture *make(int64_t limit, enum overflow_mode mode)
{
	struct capture *capture = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(capture_new(limit, mode, -1, &capture, &err), 0);
	return capture;
}

static void put(struct capture *capture, const char *text)
{
	struct err err = ERR_INIT;
	assert_int_equal(capture_write(capture, text, strlen(text), &err), 0);
}

static void state_is(const struct capture *capture, int64_t total, int64_t kept, bool overflow)
{
	struct capture_state state;
	capture_get_state(capture, &state);
	assert_int_equal(state.total_bytes, total);
	assert_int_equal(state.kept_bytes, kept);
	assert_int_equal(state.dropped_bytes, total - kept);
	assert_int_equal(state.overflow, overflow);
}

static void exactly_the_cap_is_no_overflow(void **unused)
{
	(void)unused;
	const enum overflow_mode modes[] = {OVERFLOW_KILL, OVERFLOW_TRUNCATE};
	for (size_t i = 0; i < 2; i++) {
		struct capture *capture = make(8, modes[i]);
		put(capture, "abc");
		put(capture, "defgh");
		state_is(capture, 8, 8, false);
		kept_is(capture, 0, "abcdefgh");
		put(capture, "");
		state_is(capture, 8, 8, false);
		capture_free(capture);
	}
}

static void kill_keeps_exactly_the_first_bytes(void **unused)
{
	(void)unused;
	struct capture *capture = make(8, OVERFLOW_KILL);
	put(capture, "abcdefghi");
	state_is(capture, 9, 8, true);
	put(capture, "jkl");
	state_is(capture, 12, 8, true);
	kept_is(capture, 0, "abcdefgh");
	kept_is(capture, 6, "gh");
	kept_is(capture, 8, "");
	capture_free(capture);
}

static void a_limit_of_nothing_overflows_at_the_first_byte(void **unused)
{
	(void)unused;
	const enum overflow_mode modes[] = {OVERFLOW_KILL, OVERFLOW_TRUNCATE};
	for (size_t i = 0; i < 2; i++) {
		struct capture *capture = make(0, modes[i]);
		state_is(capture, 0, 0, false);
		put(capture, "x");
		state_is(capture, 1, 0, true);
		kept_is(capture, 0, "");
		capture_free(capture);
	}
}

static void truncate_keeps_head_and_tail(void **unused)
{
	(void)unused;
	struct capture *capture = make(9, OVERFLOW_TRUNCATE);
	put(capture, "abcdefghi");
	put(capture, "j");
	state_is(capture, 10, 9, true);
	kept_is(capture, 0, "abcdeghij");
	put(capture, "klmnopqrstuvwxyz");
	state_is(capture, 26, 9, true);
	kept_is(capture, 0, "abcdewxyz");
	kept_is(capture, 3, "dewxyz");
	kept_is(capture, 7, "yz");
	capture_free(capture);
}

/* Every limit, total and piece size in a small world, against the plain definition. */
static void head_and_tail_agree_with_their_definition(void **unused)
{
	(void)unused;
	const char alphabet[] = "abcdefghijklmnopqrstuvwxyz";
	for (int64_t limit = 0; limit <= 7; limit++)
		for (size_t total = 0; total <= 20; total++)
			for (size_t piece = 1; piece <= 11; piece++) {
				struct capture *capture = make(limit, OVERFLOW_TRUNCATE);
				for (size_t at = 0; at < total; at += piece) {
					char bytes[32] = "";
					memcpy(bytes, alphabet + at, total - at < piece ? total - at : piece);
					put(capture, bytes);
				}
				char want[32] = "";
				size_t tail = (size_t)limit / 2, head = (size_t)limit - tail;
				if (total <= (size_t)limit)
					memcpy(want, alphabet, total);
				else {
					memcpy(want, alphabet, head);
					memcpy(want + head, alphabet + total - tail, tail);
				}
				kept_is(capture, 0, want);
				struct digest got, expected;
				struct err err = ERR_INIT;
				assert_int_equal(capture_digest(capture, &got, &err), 0);
				digest_of(want, strlen(want), &expected);
				assert_true(digest_equal(&got, &expected));
				capture_free(capture);
			}
}

static void pump_takes_what_is_there_and_sees_the_end(void **unused)
{
	(void)unused;
	int ends[2];
	bool eof = false;
	struct err err = ERR_INIT;
	struct capture *capture = make(100, OVERFLOW_KILL);
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(capture_pump(capture, ends[0], 4096, &eof, &err), 0);
	assert_false(eof);
	assert_int_equal(write(ends[1], "hello", 5), 5);
	assert_int_equal(capture_pump(capture, ends[0], 3, &eof, &err), 0);
	kept_is(capture, 0, "hel");
	assert_int_equal(capture_pump(capture, ends[0], 4096, &eof, &err), 0);
	assert_false(eof);
	close(ends[1]);
	assert_int_equal(capture_pump(capture, ends[0], 4096, &eof, &err), 0);
	assert_true(eof);
	kept_is(capture, 0, "hello");
	close(ends[0]);
	assert_int_equal(capture_pump(capture, -1, 1, &eof, &err), ERR_IO);
	capture_free(capture);
}

static void pump_reads_at_most_max(void **unused)
{
	(void)unused;
	int ends[2];
	bool eof = false;
	struct err err = ERR_INIT;
	static char bytes[50000];
	struct capture *capture = make(10, OVERFLOW_KILL);
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(write(ends[1], bytes, sizeof(bytes)), sizeof(bytes));
	assert_int_equal(capture_pump(capture, ends[0], 40000, &eof, &err), 0);
	state_is(capture, 40000, 10, true);
	close(ends[0]);
	close(ends[1]);
	capture_free(capture);
}

static struct capture *other_side(const struct capture *capture, int64_t limit, enum overflow_mode mode)
{
	struct capture *other = NULL;
	struct err err = ERR_INIT;
	int spool = fcntl(capture_spool_fd(capture), F_DUPFD_CLOEXEC, 0), notify = fcntl(capture_notify_fd(capture), F_DUPFD_CLOEXEC, 0);
	assert_int_equal(capture_attach(spool, notify, limit, mode, &other, &err), 0);
	return other;
}

static void a_reader_sees_the_head_grow_but_no_unsettled_tail(void **unused)
{
	(void)unused;
	struct capture *reader = make(8, OVERFLOW_TRUNCATE), *writer = other_side(reader, 8, OVERFLOW_TRUNCATE);
	struct pollfd wait = {.fd = capture_notify_fd(reader), .events = POLLIN};
	uint64_t growths = 0;
	kept_is(reader, 0, "");
	assert_int_equal(poll(&wait, 1, 0), 0);
	put(writer, "ab");
	assert_int_equal(poll(&wait, 1, 0), 1);
	assert_int_equal(read(wait.fd, &growths, sizeof(growths)), sizeof(growths));
	kept_is(reader, 0, "ab");
	put(writer, "cdefghijk");
	kept_is(reader, 2, "cd");
	state_is(reader, 4, 4, false);

	struct capture_state state;
	struct err err = ERR_INIT;
	capture_mark_drained(writer);
	capture_get_state(writer, &state);
	assert_int_equal(capture_set_state(reader, &state, &err), 0);
	kept_is(reader, 0, "abcdhijk");
	capture_get_state(reader, &state);
	assert_true(state.drained);
	capture_free(writer);
	capture_free(reader);
}

static void what_a_dead_writer_left_can_be_read(void **unused)
{
	(void)unused;
	struct capture *reader = make(6, OVERFLOW_KILL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct capture *writer = other_side(reader, 6, OVERFLOW_KILL);
		struct err err = ERR_INIT;
		_exit(capture_write(writer, "from the child", 14, &err) == 0 ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	kept_is(reader, 0, "from t");
	state_is(reader, 6, 6, false);
	const struct capture_state state = {.total_bytes = 14, .kept_bytes = 6, .dropped_bytes = 8, .overflow = true};
	struct err err = ERR_INIT;
	assert_int_equal(capture_set_state(reader, &state, &err), 0);
	state_is(reader, 14, 6, true);
	capture_free(reader);
}

static void a_state_that_contradicts_the_spool_is_damage(void **unused)
{
	(void)unused;
	const struct capture_state wrong[] = {
		{.total_bytes = -1, .kept_bytes = -1},
		{.total_bytes = 2, .kept_bytes = 2},
		{.total_bytes = 4, .kept_bytes = 4},
		{.total_bytes = 3, .kept_bytes = 2, .dropped_bytes = 1},
		{.total_bytes = 3, .kept_bytes = 3, .dropped_bytes = 1},
		{.total_bytes = 3, .kept_bytes = 3, .overflow = true},
		{.total_bytes = 5, .kept_bytes = 4, .dropped_bytes = 1},
		{.total_bytes = 5, .kept_bytes = 5},
	};
	struct capture *reader = make(4, OVERFLOW_KILL), *writer = other_side(reader, 4, OVERFLOW_KILL);
	put(writer, "abc");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct err err = ERR_INIT;
		assert_int_equal(capture_set_state(reader, &wrong[i], &err), ERR_DAMAGED);
		assert_int_equal(err.code, ERR_DAMAGED);
	}
	state_is(reader, 3, 3, false);
	capture_free(writer);
	capture_free(reader);
}

static int stop_at_once(void *context, const void *bytes, size_t count)
{
	(void)bytes;
	*(size_t *)context += count;
	return 7;
}

static void a_sink_can_end_the_reading(void **unused)
{
	(void)unused;
	static char bytes[200000];
	size_t seen = 0;
	struct err err = ERR_INIT;
	struct capture *capture = make(200000, OVERFLOW_KILL);
	assert_int_equal(capture_write(capture, bytes, sizeof(bytes), &err), 0);
	assert_int_equal(capture_read(capture, 0, stop_at_once, &seen, &err), 7);
	assert_true(seen > 0 && seen < sizeof(bytes));
	capture_free(capture);
}

static void a_spool_above_the_memory_bound_is_an_unnamed_file(void **unused)
{
	(void)unused;
	char path[] = "/tmp/caisson-capture-XXXXXX";
	assert_non_null(mkdtemp(path));
	int dir = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	struct capture *capture = NULL;
	struct err err = ERR_INIT;
	struct stat status;
	assert_int_equal(capture_new(CAPTURE_MEMORY_MAX + 1, OVERFLOW_KILL, dir, &capture, &err), 0);
	put(capture, "text");
	kept_is(capture, 0, "text");
	assert_int_equal(fstat(capture_spool_fd(capture), &status), 0);
	assert_int_equal(status.st_nlink, 0);
	assert_int_equal(status.st_size, 4);
	assert_int_equal(rmdir(path), 0);
	capture_free(capture);
	close(dir);
	assert_int_equal(capture_new(CAPTURE_MEMORY_MAX + 1, OVERFLOW_KILL, -1, &capture, &err), ERR_IO);
	assert_int_equal(capture_new(-1, OVERFLOW_KILL, -1, &capture, &err), ERR_INVALID);
}

static void a_failed_write_leaves_counters_that_agree_with_the_spool(void **unused)
{
	(void)unused;
	struct capture *writer = NULL;
	struct err err = ERR_INIT;
	int read_only = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(capture_attach(read_only, -1, 10, OVERFLOW_KILL, &writer, &err), 0);
	assert_int_equal(capture_write(writer, "abc", 3, &err), ERR_IO);
	state_is(writer, 0, 0, false);
	capture_free(writer);
	capture_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exactly_the_cap_is_no_overflow),
		cmocka_unit_test(kill_keeps_exactly_the_first_bytes),
		cmocka_unit_test(a_limit_of_nothing_overflows_at_the_first_byte),
		cmocka_unit_test(truncate_keeps_head_and_tail),
		cmocka_unit_test(head_and_tail_agree_with_their_definition),
		cmocka_unit_test(pump_takes_what_is_there_and_sees_the_end),
		cmocka_unit_test(pump_reads_at_most_max),
		cmocka_unit_test(a_reader_sees_the_head_grow_but_no_unsettled_tail),
		cmocka_unit_test(what_a_dead_writer_left_can_be_read),
		cmocka_unit_test(a_state_that_contradicts_the_spool_is_damage),
		cmocka_unit_test(a_sink_can_end_the_reading),
		cmocka_unit_test(a_spool_above_the_memory_bound_is_an_unnamed_file),
		cmocka_unit_test(a_failed_write_leaves_counters_that_agree_with_the_spool),
	};
	return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}
