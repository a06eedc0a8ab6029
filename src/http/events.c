/* events.c - /v1/runs/{run}/events: the records of a run as server-sent events.
 *
 * By pull: the next piece is asked for when MHD has passed on the one before, and so when the client has read. One that never reads
 * holds one piece and its connection, and nobody waits for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/front.h"

enum { ATTEMPT_MAX = 1000 };

struct stream {
	struct request *request;
	struct client *client;
	struct buf text;           /* the piece at hand */
	size_t passed_on;
	int64_t attempt, seq;      /* the last event of it */
	bool follows;              /* waits for what is to come */
	bool ends, failed;
};

/* "ATTEMPT-SEQ": the id of an event, as it was sent. */
static int parse_id(const char *text, int64_t *ret_attempt, int64_t *ret_seq, struct err *err)
{
	char *end;
	errno = 0;
	long long attempt = strtoll(text, &end, 10), seq = 0;
	bool good = *text >= '0' && *text <= '9' && *end == '-' && end[1] >= '0' && end[1] <= '9';
	if (good)
		seq = strtoll(end + 1, &end, 10);
	if (!good || *end || errno || attempt > ATTEMPT_MAX)
		return err_set(err, ERR_INVALID, "Last-Event-ID must be the id of an event, as it was sent");
	*ret_attempt = attempt;
	*ret_seq = seq;
	return 0;
}

static int put_question(struct request *request, int64_t attempt, int64_t seq, int64_t wait_ms, struct question *ret)
{
	*ret = (struct question){.fd = -1};
	ret->text = json_pack("{s:s, s:s, s:I, s:I, s:I}", "op", "events", "run", request->subject, "attempt", (json_int_t)attempt,
	                      "seq", (json_int_t)seq, "wait_ms", (json_int_t)wait_ms);
	return ret->text ? 0 : ERR_NO_MEMORY;
}

static int read_follow(const struct request *request, bool *ret, struct err *err)
{
	const char *follow = parameter_text(request, "follow");
	*ret = !follow || strcmp(follow, "true") == 0;
	if (*ret || strcmp(follow, "false") == 0)
		return 0;
	return err_set(err, ERR_INVALID, "follow must be true or false");
}

/* The first piece does not wait, so that the head of the answer is there at once. */
static int ask_events(struct request *request, struct question *ret, struct err *err)
{
	const char *last = head_value(request, "Last-Event-ID");
	int64_t attempt = 0, seq = 0;
	bool follows;
	int result = last ? parse_id(last, &attempt, &seq, err) : 0;
	if (result == 0)
		result = read_follow(request, &follows, err);
	if (result)
		return result;
	result = put_question(request, attempt, seq, 0, ret);
	return result ? err_set(err, result, "out of memory") : 0;
}

static int take_piece(struct stream *stream, const struct answer *answer)
{
	static const char keep_alive[] = ": \n\n";
	stream->passed_on = 0;
	stream->attempt = answer_number(answer, "attempt", stream->attempt);
	stream->seq = answer_number(answer, "seq", stream->seq);
	stream->ends = answer_flag(answer, "end") || (answer->body_length == 0 && !stream->follows);
	if (answer->body_length == 0 && !stream->ends)
		return buf_puts(&stream->text, keep_alive, NULL);
	return buf_append(&stream->text, answer->body ? answer->body : "", answer->body_length, NULL);
}

static void release_stream(void *context)
{
	struct stream *stream = context;
	buf_done(&stream->text);
	free(stream);
}

static void ask_more(struct stream *stream)
{
	struct question question;
	if (put_question(stream->request, stream->attempt, stream->seq, stream->follows ? FRONT_KEEP_ALIVE_MS : 0, &question) ||
	    client_ask(stream->client, stream->request, &question, NULL))
		stream->failed = true;
}

static ssize_t read_stream(void *context, uint64_t position, char *to, size_t max)
{
	struct stream *stream = context;
	size_t left = stream->text.len - stream->passed_on;
	(void)position;
	if (left > 0) {
		size_t count = left < max ? left : max;
		memcpy(to, stream->text.data + stream->passed_on, count);
		stream->passed_on += count;
		return (ssize_t)count;
	}
	buf_done(&stream->text);
	stream->passed_on = 0;
	if (stream->ends && !stream->failed)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (!stream->failed)
		ask_more(stream);
	return stream->failed ? MHD_CONTENT_READER_END_WITH_ERROR : 0;
}

void stream_hear(struct stream *stream, struct answer *answer)
{
	if (take_piece(stream, answer))
		stream->failed = true;
}

void stream_fail(struct stream *stream)
{
	stream->failed = true;
}

static void answer_events(struct request *request, struct answer *answer)
{
	struct stream *stream = calloc(1, sizeof(*stream));
	if (!stream)
		return;
	*stream = (struct stream){.request = request, .client = request->client, .text = BUF_INIT(WIRE_BODY_MAX)};
	read_follow(request, &stream->follows, NULL);
	if (take_piece(stream, answer)) {
		release_stream(stream);
		return;
	}
	request->stream = stream;
	respond_stream(request, "text/event-stream", read_stream, stream, release_stream);
}

static const char *const events_parameters[] = {"follow", NULL};

const struct route route_events_get = {.method = MHD_HTTP_METHOD_GET,
                                       .pattern = "/v1/runs/*/events",
                                       .parameters = events_parameters,
                                       .streams = true,
                                       .ask = ask_events,
                                       .answer = answer_events};
