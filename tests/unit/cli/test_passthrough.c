/* test_passthrough.c - the caller sees the guest's bytes while it runs, all of them in the end, and can never hold it up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/passthrough.h"

enum { TEXT_MAX = 1024, BIG_BYTES = 1024 * 1024 };

/* The guest's side, the caller's side, and what lies between. */
struct scene {
	struct plan_limits limits;
	struct capture *captures[2];
	int out[2], errors[2];
	struct passthrough *passthrough;
};

static void set_up(struct scene *scene, int64_t limit_bytes, enum overflow_mode mode)
{
	scene->limits = (struct plan_limits){.stdout_bytes = limit_bytes, .stderr_bytes = limit_bytes, .on_overflow = mode};
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(capture_new(limit_bytes, mode, AT_FDCWD, &scene->captures[i], NULL), 0);
	assert_int_equal(pipe2(scene->out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(scene->errors, O_CLOEXEC), 0);
	assert_int_equal(passthrough_new(&scene->limits, scene->out[1], scene->errors[1], &scene->passthrough, NULL), 0);
}

static void tear_down(struct scene *scene)
{
	passthrough_free(scene->passthrough);
	for (size_t i = 0; i < 2; i++) {
		capture_free(scene->captures[i]);
		fd_close(&scene->out[i]);
		fd_close(&scene->errors[i]);
	}
}

static void guest_writes(struct scene *scene, size_t stream, const char *text)
{
	assert_int_equal(capture_write(scene->captures[stream], text, strlen(text), NULL), 0);
}

static void expect_read(int fd, const char *text)
{
	char bytes[TEXT_MAX];
	size_t count = strlen(text);

	assert_int_equal(fd_read_full(fd, bytes, count), (ssize_t)count);
	assert_memory_equal(bytes, text, count);
}

static void expect_end(int *write_end, int read_end)
{
	char byte;

	fd_close(write_end);
	assert_int_equal(read(read_end, &byte, 1), 0);
}

static void finish(struct scene *scene)
{
	passthrough_finish(scene->passthrough, scene->captures[0], scene->captures[1]);
}

static void output_is_seen_while_the_guest_runs(void **state)
{
	struct scene scene;

	(void)state;
	set_up(&scene, TEXT_MAX, OVERFLOW_KILL);
	passthrough_follow(scene.passthrough, scene.captures[0], scene.captures[1]);
	guest_writes(&scene, 0, "one\n");
	expect_read(scene.out[0], "one\n");
	guest_writes(&scene, 1, "two\n");
	expect_read(scene.errors[0], "two\n");
	guest_writes(&scene, 0, "three\n");
	expect_read(scene.out[0], "three\n");
	finish(&scene);
	expect_end(&scene.out[1], scene.out[0]);
	expect_end(&scene.errors[1], scene.errors[0]);
	tear_down(&scene);
}

static void without_a_launch_all_is_shown_at_the_end(void **state)
{
	struct scene scene;

	(void)state;
	set_up(&scene, TEXT_MAX, OVERFLOW_KILL);
	guest_writes(&scene, 0, "\x1b[31m\xff\n");
	finish(&scene);
	expect_read(scene.out[0], "\x1b[31m\xff\n");
	expect_end(&scene.out[1], scene.out[0]);
	tear_down(&scene);
}

static void a_truncated_stream_is_head_then_tail(void **state)
{
	struct scene scene;

	(void)state;
	set_up(&scene, 8, OVERFLOW_TRUNCATE);
	passthrough_follow(scene.passthrough, scene.captures[0], scene.captures[1]);
	guest_writes(&scene, 0, "HEAD and a lot of TAIL");
	expect_read(scene.out[0], "HEAD");
	finish(&scene);
	expect_read(scene.out[0], "TAIL");
	expect_end(&scene.out[1], scene.out[0]);
	tear_down(&scene);
}

static void a_reader_that_is_gone_ends_its_own_stream_alone(void **state)
{
	struct scene scene;

	(void)state;
	set_up(&scene, TEXT_MAX, OVERFLOW_KILL);
	passthrough_follow(scene.passthrough, scene.captures[0], scene.captures[1]);
	fd_close(&scene.out[0]);
	guest_writes(&scene, 0, "nobody hears this\n");
	guest_writes(&scene, 1, "but this\n");
	expect_read(scene.errors[0], "but this\n");
	guest_writes(&scene, 0, "nor this\n");
	finish(&scene);
	tear_down(&scene);
}

/* More than a pipe takes, and nobody reads: the guest's writes are done all the same. */
static void a_slow_reader_does_not_hold_the_guest_up(void **state)
{
	struct scene scene;
	char *big = malloc(BIG_BYTES), *back = malloc(BIG_BYTES);

	(void)state;
	assert_non_null(big);
	assert_non_null(back);
	for (size_t i = 0; i < BIG_BYTES; i++)
		big[i] = (char)(i * 7 / 3);
	set_up(&scene, BIG_BYTES, OVERFLOW_KILL);
	passthrough_follow(scene.passthrough, scene.captures[0], scene.captures[1]);
	assert_int_equal(capture_write(scene.captures[0], big, BIG_BYTES, NULL), 0);
	assert_int_equal(fd_read_full(scene.out[0], back, BIG_BYTES), BIG_BYTES);
	assert_memory_equal(back, big, BIG_BYTES);
	finish(&scene);
	expect_end(&scene.out[1], scene.out[0]);
	tear_down(&scene);
	free(big);
	free(back);
}

static void a_refused_run_has_nothing_to_show(void **state)
{
	struct scene scene;

	(void)state;
	set_up(&scene, TEXT_MAX, OVERFLOW_KILL);
	passthrough_finish(scene.passthrough, NULL, NULL);
	expect_end(&scene.out[1], scene.out[0]);
	tear_down(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_is_seen_while_the_guest_runs),
		cmocka_unit_test(without_a_launch_all_is_shown_at_the_end),
		cmocka_unit_test(a_truncated_stream_is_head_then_tail),
		cmocka_unit_test(a_reader_that_is_gone_ends_its_own_stream_alone),
		cmocka_unit_test(a_slow_reader_does_not_hold_the_guest_up),
		cmocka_unit_test(a_refused_run_has_nothing_to_show),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
