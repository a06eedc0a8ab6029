/* batch.c - `caisson batch`: many runs at a time through a keeper, one result for each line.
 *
 * One loop, one thread. A line is read only when there is a job free for it and room for its result, so that a batch of any length
 * takes the same memory. What a keeper forgets to say when it dies is asked for again; what it accepted before is found by its
 * key. */
#include "client/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "print/output.h"

enum {
	IN_FLIGHT_DEFAULT = 32,
	IN_FLIGHT_MAX = 1024,
	ROOM_PER_JOB = 16, /* results that may wait for that of an earlier line */
	TICK_MS = 20,      /* while something is to be made again */
	IDLE_MS = 1000,
	CANCEL_MS = 30 * 1000, /* from the first signal to the end, whatever the keeper does */
	SIGNAL_BASE = 128,
};

enum { WATCH_SIGNALS, WATCH_INPUT, WATCH_KEEPER, WATCH_COUNT };

static struct job *free_job(struct batch *batch)
{
	for (size_t i = 0; i < (size_t)batch->request->in_flight; i++)
		if (!batch->jobs[i].used)
			return &batch->jobs[i];
	return NULL;
}

static bool wants_line(const struct batch *batch)
{
	return !batch->first_signal && batch->busy < (size_t)batch->request->in_flight && batch_order_has_room(&batch->order);
}

/* Writes what is ready. A reader that has gone away needs no more runs. */
static void write_ready(struct batch *batch)
{
	struct buf *ready = &batch->order.ready;

	if (!ready->len)
		return;
	batch_progress_clear(&batch->progress);
	if (fd_write_all(STDOUT_FILENO, ready->data, ready->len))
		batch->reader_gone = true;
	buf_done(ready);
}

static int take_result(struct batch *batch, struct job *job, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(OUTPUT_TEXT_MAX);
	const char *message = json_string_value(json_object_get(json_object_get(job->result, "error"), "message"));
	int result = json_canonical(job->result, &text, err);

	if (result == 0)
		result = batch_order_put(&batch->order, job->place, text.data, err);
	if (result)
		return result;
	if (message && !batch->first_error.code)
		err_set(&batch->first_error, ERR_INVALID, "%s", message);
	batch->over++;
	batch->sealed += job->sealed;
	batch->busy--;
	job_clear(job);
	return 0;
}

static void begin_line(struct batch *batch, const struct batch_text *text)
{
	struct job *job = free_job(batch);
	struct batch_line line;

	if (text->too_long)
		batch_line_too_long(text->number, batch->key, &line);
	else
		batch_line_parse(text->text, text->length, text->number, batch->key, &line);
	job->place = batch_order_begin(&batch->order);
	batch->busy++;
	job_begin(job, &batch->context, &line);
}

static int take_results(struct batch *batch, struct err *err)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < (size_t)batch->request->in_flight; i++)
		if (batch->jobs[i].used && batch->jobs[i].result)
			result = take_result(batch, &batch->jobs[i], err);
	write_ready(batch);
	return result;
}

/* A result that is taken makes room for a line; a line that is refused at once has its result already. */
static int begin_lines(struct batch *batch, struct err *err)
{
	for (;;) {
		struct batch_text text;
		int result = take_results(batch, err);

		if (result || !wants_line(batch) || !batch_input_line(&batch->input, &text))
			return result;
		begin_line(batch, &text);
	}
}

static void hear_calls(struct batch *batch)
{
	for (struct http_call *call; (call = http_finished(batch->context.http));) {
		struct job *job = (struct job *)(void *)((char *)call - offsetof(struct job, call));

		if (batch->own && call->result == 0)
			own_keeper_answered(batch->own);
		job_hear(job, &batch->context);
	}
}

static void stop_beginning(struct batch *batch, int signal)
{
	batch->first_signal = signal;
	batch->give_up_ns = clock_mono_ns() + CANCEL_MS * NS_PER_MS;
	for (size_t i = 0; i < (size_t)batch->request->in_flight; i++)
		job_cancel(&batch->jobs[i], &batch->context);
}

/* The first cancels what is in flight; the second does not wait for it. */
static void hear_signal(struct batch *batch)
{
	struct signalfd_siginfo info;

	if (read(batch->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (batch->first_signal)
		batch->give_up_ns = clock_mono_ns();
	else
		stop_beginning(batch, (int)info.ssi_signo);
}

static void give_up(struct batch *batch, const struct err *why)
{
	for (size_t i = 0; i < (size_t)batch->request->in_flight; i++)
		job_abandon(&batch->jobs[i], &batch->context, why);
}

static int tick(struct batch *batch, struct err *err)
{
	int64_t now_ns = clock_mono_ns();
	int result = batch->own && !batch->give_up_ns ? own_keeper_tick(batch->own, now_ns, err) : 0;

	if (batch->reader_gone && !batch->first_signal)
		stop_beginning(batch, SIGPIPE);
	for (size_t i = 0; i < (size_t)batch->request->in_flight; i++)
		job_tick(&batch->jobs[i], &batch->context, now_ns);
	if (batch->give_up_ns && now_ns >= batch->give_up_ns) {
		struct err why = ERR_INIT;

		err_set(&why, ERR_TIMEOUT, "not sealed when the batch ended");
		give_up(batch, &why);
	}
	batch_progress_show(batch, now_ns);
	return result;
}

static bool retries(const struct batch *batch)
{
	for (size_t i = 0; i < (size_t)batch->request->in_flight; i++)
		if (batch->jobs[i].used && batch->jobs[i].retry_at_ns)
			return true;
	return batch->own && !batch->own->pid;
}

static int wait_for_news(struct batch *batch, struct err *err)
{
	struct pollfd watched[WATCH_COUNT] = {
		[WATCH_SIGNALS] = {.fd = batch->signals, .events = POLLIN},
		[WATCH_INPUT] = {.fd = wants_line(batch) ? batch->input.fd : -1, .events = POLLIN},
		[WATCH_KEEPER] = {.fd = batch->own ? batch->own->pidfd : -1, .events = POLLIN},
	};
	int result = http_wait(batch->context.http, watched, WATCH_COUNT, retries(batch) ? TICK_MS : IDLE_MS, err);

	if (result)
		return result;
	if (watched[WATCH_SIGNALS].revents)
		hear_signal(batch);
	if (watched[WATCH_KEEPER].revents)
		result = own_keeper_died(batch->own, err);
	if (result == 0 && watched[WATCH_INPUT].revents)
		result = batch_input_fill(&batch->input, err);
	return result;
}

static bool is_over(const struct batch *batch)
{
	return !batch->busy &&
	       (batch->first_signal || (batch->input.fd < 0 && batch->input.at == batch->input.text.len && !batch->input.skipping));
}

static int run_all(struct batch *batch, struct err *err)
{
	for (;;) {
		int result = begin_lines(batch, err);

		if (result == 0 && is_over(batch))
			return 0;
		if (result == 0)
			result = wait_for_news(batch, err);
		if (result)
			return result;
		hear_calls(batch);
		result = tick(batch, err);
		if (result)
			return result;
	}
}

/* An end that is not the batch's own: every line that was begun gets its result all the same. */
static void end_early(struct batch *batch, const struct err *why)
{
	struct err err = ERR_INIT;

	give_up(batch, why);
	(void)take_results(batch, &err);
}

static int open_input(const char *path, struct err *err)
{
	int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? err_sys(err, errno, "%s", path) : fd;
}

static int catch_signals(struct batch *batch, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(err, errno, "catch signals");
	batch->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return batch->signals < 0 ? err_sys(err, errno, "catch signals") : 0;
}

/* The key of the batch, from which those of its lines are made. */
static int choose_key(struct batch *batch, struct err *err)
{
	char id[ID_SIZE];
	const char *key = batch->request->key;

	id_new("bat", id);
	if (!key)
		key = id;

	int result = key_check(key, err);

	if (result == 0 && strlen(key) > BATCH_KEY_MAX)
		result = err_set(err, ERR_INVALID, "must have at most %d bytes", BATCH_KEY_MAX);
	if (result)
		return err_context(err, result, "--key");
	memcpy(batch->key, key, strlen(key) + 1);
	return 0;
}

static int prepare(struct batch *batch, struct err *err)
{
	int result = choose_key(batch, err);
	int fd = result ? result : open_input(batch->request->file, err);

	if (fd < 0)
		return fd;
	batch_input_init(&batch->input, fd, BATCH_LINE_MAX);
	batch->context.cache = &batch->cache;
	batch_progress_begin(&batch->progress);
	batch->jobs = calloc((size_t)batch->request->in_flight, sizeof(*batch->jobs));
	if (!batch->jobs)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	result = batch_order_init(&batch->order, (size_t)batch->request->in_flight * ROOM_PER_JOB, batch->request->unordered, err);
	return result ? result : catch_signals(batch, err);
}

static void finish(struct batch *batch)
{
	for (size_t i = 0; batch->jobs && i < (size_t)batch->request->in_flight; i++) {
		http_stop(batch->context.http, &batch->jobs[i].call);
		job_clear(&batch->jobs[i]);
	}
	free(batch->jobs);
	batch_order_done(&batch->order);
	batch_input_done(&batch->input);
	fd_close(&batch->signals);
}

static int say_end(const struct batch *batch)
{
	if (batch->first_error.code)
		complain("batch: %lld of %lld lines have no receipt, the first for this: %s",
		         (long long)(batch->over - batch->sealed), (long long)batch->over, batch->first_error.text);
	if (batch->reader_gone)
		return CLIENT_CAISSON;
	if (batch->first_signal)
		return SIGNAL_BASE + batch->first_signal;
	return batch->sealed == batch->over ? CLIENT_OK : CLIENT_NO;
}

static int run_batch(struct batch *batch, struct err *err)
{
	int result = prepare(batch, err);

	if (result == 0)
		result = run_all(batch, err);
	if (result && batch->jobs)
		end_early(batch, err);
	batch_progress_clear(&batch->progress);
	return result ? result : say_end(batch);
}

/* With the keeper that answers, or with one of our own. */
int client_batch(struct client *client, struct err *err)
{
	const struct request *request = client->request;
	struct batch batch = {
		.request = request, .context = {.http = client->http, .patience_ms = request->patience_ms}, .signals = -1};
	struct own_keeper own = {.pidfd = -1, .log = -1};
	HTTP_AUTO struct http *own_http = NULL;
	int result = 0;

	if (!request->file || request->in_flight < 1 || request->in_flight > IN_FLIGHT_MAX)
		return err_set(err, ERR_INVALID, "the request is incomplete");
	if (own_keeper_is_needed(request->socket)) {
		if (!request->program)
			return err_set(err, ERR_LOST, "no keeper answers on %s (see caisson serve --help)", request->socket);
		result = own_keeper_start(&own, request, err);
		if (result == 0)
			result = http_new(own.socket, &own_http, err);
		batch.own = &own;
		batch.context.http = own_http;
	}
	if (result == 0)
		result = run_batch(&batch, err);
	finish(&batch);
	own_keeper_stop(&own);
	return result;
}
