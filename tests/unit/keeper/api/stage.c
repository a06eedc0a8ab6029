/* stage.c - the keeper that is played, and a client. */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "ledger/shared.h"

enum { ANSWER_MAX = 4 * 1024 * 1024 };

static const char *front_path;

void stage_front(const char *path)
{
	front_path = path;
}

static void changed(void *context, const char *run_id)
{
	struct stage *stage = context;
	if (stage->api)
		api_changed(stage->api, run_id);
}

static int play_submit(void *context, const struct api_submission *submission, struct api_submitted *ret, struct err *err)
{
	struct stage *stage = context;
	snprintf(stage->submitted_by, sizeof(stage->submitted_by), "%s", submission->principal);
	snprintf(stage->submitted_key, sizeof(stage->submitted_key), "%s",
	         submission->idempotency_key ? submission->idempotency_key : "");
	if (stage->refuse)
		return err_set(err, stage->refuse, "%s", stage->refusal);
	return fixture_try_submit(&stage->fixture, submission->principal, submission->idempotency_key, ret->run_id, &ret->existing,
	                          err);
}

static int play_cancel(void *context, const char *run_id, bool *ret_sealed, struct err *err)
{
	struct stage *stage = context;
	return stage->fixture.ledger->ops->request_cancel(stage->fixture.ledger, run_id, ret_sealed, err);
}

static int play_live(void *context, const char *run_id, struct api_live *ret, struct err *err)
{
	(void)context, (void)run_id, (void)err;
	*ret = (struct api_live){.paused = true, .reason = "no_safe_worker"};
	return 0;
}

static int play_stream(void *context, const char *run_id, int stream, struct capture **ret, struct err *err)
{
	struct stage *stage = context;
	(void)run_id;
	pthread_mutex_lock(&stage->lock);
	int spool = stage->capture && stream == 0 ? dup(capture_spool_fd(stage->capture)) : -1;
	pthread_mutex_unlock(&stage->lock);
	if (spool < 0)
		return err_set(err, ERR_NOT_FOUND, "not driven");
	return capture_attach(spool, -1, 1 << 20, OVERFLOW_KILL, ret, err);
}

static int play_workers(void *context, api_worker_fn fn, void *fn_context, struct err *err)
{
	const struct api_worker workers[] = {
		{.slot = 0, .profile = "linux", .state = STATS_BUSY, .reason = "", .run_id = "run-a", .principal = "uid:7"},
		{.slot = 1,
	         .profile = "linux",
	         .state = STATS_QUARANTINED,
	         .reason = "not_verified_empty",
	         .run_id = "",
	         .principal = ""},
	};
	int result = 0;
	(void)context, (void)err;
	for (size_t i = 0; i < 2 && result == 0; i++)
		result = fn(fn_context, &workers[i]);
	return result;
}

static int play_recover(void *context, int slot, bool *ret_recovered, struct err *err)
{
	struct stage *stage = context;
	if (slot != 1)
		return err_set(err, ERR_STATE, "slot %d is not quarantined", slot);
	stage->recovered++;
	*ret_recovered = true;
	return 0;
}

static bool play_ready(void *context, char reason[static API_REASON_MAX])
{
	struct stage *stage = context;
	snprintf(reason, API_REASON_MAX, "no_safe_worker");
	return stage->ready;
}

static void play_stats(void *context, struct api_stats *ret)
{
	(void)context;
	*ret = (struct api_stats){.submitted = 77};
}

static void play_log(void *context, const char *line)
{
	struct stage *stage = context;
	pthread_mutex_lock(&stage->lock);
	snprintf(stage->log, sizeof(stage->log), "%s", line);
	pthread_mutex_unlock(&stage->lock);
}

int stage_start(struct stage *stage, struct err *err)
{
	const struct api_options options = {
		.socket_path = stage->socket_path,
		.front_path = front_path,
		.front_uid = NOBODY,
		.front_gid = NOBODY,
		.ledger = stage->fixture.ledger,
		.store = stage->store,
		.core = &stage->core,
	};
	return api_start(&options, &stage->api, err);
}

int stage_set_up(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	struct err err = ERR_INIT;
	assert_non_null(stage);
	pthread_mutex_init(&stage->lock, NULL);
	fixture_make(&stage->fixture);
	fixture_share(&stage->fixture, true, changed, stage);
	assert_int_equal(mkdirat(stage->fixture.dir, "store", 0700), 0);
	FD_AUTO int dir = openat(stage->fixture.dir, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(store_open(dir, &stage->store, &err), 0);
	snprintf(stage->socket_path, sizeof(stage->socket_path), "%s/api.sock", stage->fixture.path);
	stage->core = (struct api_core){play_submit, play_cancel, play_live, play_stream, play_workers, play_recover, play_ready,
		play_stats, play_log, stage};
	if (stage_start(stage, &err))
		fail_msg("%s", err.text);
	*state = stage;
	return 0;
}

int stage_tear_down(void **state)
{
	struct stage *stage = *state;
	api_stop(stage->api);
	assert_int_equal(access(stage->socket_path, F_OK), -1);
	capture_free(stage->capture);
	store_free(stage->store);
	fixture_remove(&stage->fixture); /* with it the ledger's thread, which tells of changes */
	api_free(stage->api);
	pthread_mutex_destroy(&stage->lock);
	free(stage);
	return 0;
}

struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	assert_true(strlen(path) < sizeof(address.sun_path));
	memcpy(address.sun_path, path, strlen(path));
	return address;
}

int dial(const char *path)
{
	struct sockaddr_un address = address_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = PATIENCE_S}, sizeof(struct timeval));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void send_request(int fd, const char *method, const char *target, const char *more, const char *body)
{
	BUF_AUTO struct buf text = BUF_INIT(ANSWER_MAX);
	assert_int_equal(
		buf_printf(&text, NULL, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s", method, target, more), 0);
	if (body)
		assert_int_equal(buf_printf(&text, NULL, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		                            strlen(body), body),
		                 0);
	else
		assert_int_equal(buf_puts(&text, "\r\n", NULL), 0);
	fd_write_all(fd, text.data, text.len); /* it may be refused before all of it is sent */
}

char *ask(const struct stage *stage, const char *method, const char *target, const char *more, const char *body)
{
	struct buf answer = BUF_INIT(ANSWER_MAX);
	FD_AUTO int fd = dial(stage->socket_path);
	send_request(fd, method, target, more, body);
	fd_read_rest(fd, &answer, NULL);
	char *text = buf_take(&answer);
	return text ? text : strdup("");
}

void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in:\n%s", part, text);
}

void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' is in:\n%s", part, text);
}

void await_waiting(const struct stage *stage, int count)
{
	char line[64];
	snprintf(line, sizeof(line), "\ncaisson_api_waiting %d\n", count);
	for (int64_t until = clock_mono_ns() + PATIENCE_S * NS_PER_S;;) {
		char *answer = ask(stage, "GET", "/metrics", "", NULL);
		bool found = strstr(answer, line) != NULL;
		free(answer);
		if (found)
			return;
		assert_true(clock_mono_ns() < until);
	}
}
