/* logs.c - `caisson logs -f RUN`: what a run writes, as it writes it, each stream to its own. */
#include <unistd.h>

#include "client/client.h"
#include "client/reply.h"
#include "print/output.h"

enum { STREAMS = 2 };

/* One stream of the run, and how far it was shown. */
struct stream {
	const char *name;
	struct output output;
	int64_t offset, shown; /* of the call under way: where it began, and what came of it since */
	struct http_call call;
	struct losses losses;
	bool wanted, over;
};

static int show(void *context, const void *bytes, size_t count)
{
	struct stream *stream = context;

	output_bytes(&stream->output, bytes, count);
	stream->shown += (int64_t)count;
	return stream->output.dead ? ERR_LOST : 0;
}

static int ask(struct client *client, const char *run_id, struct stream *stream, struct err *err)
{
	http_call_set(&stream->call, "GET", "/v1/runs/%s/logs?stream=%s&offset=%lld&wait_ms=%d", run_id, stream->name,
	              (long long)stream->offset, CLIENT_WAIT_MS);
	stream->call.wait_ms = CLIENT_WAIT_MS;
	stream->call.sink = show;
	stream->call.context = stream;
	stream->shown = 0;
	return http_start(client->http, &stream->call, err);
}

/* A call is over: *ret_more says whether the next one is to be made. What was shown of a reply that was cut off stays shown. */
static int settle(struct client *client, struct stream *stream, struct err *err)
{
	struct http_call *call = &stream->call;

	stream->offset += stream->shown;
	if (stream->shown)
		stream->losses = (struct losses){0};
	if (stream->output.dead) {
		stream->over = true;
		return 0;
	}
	if (client_may_retry(call))
		return client_lost(client, call, &stream->losses, err);
	if (!reply_good(call)) {
		JSON_AUTO json_t *document = NULL;

		return reply_document(call, &document, err);
	}
	client->met = true;
	stream->losses = (struct losses){0};
	/* What the keeper has dropped (a stream that was cut in its middle) is passed over. */
	if (call->offset > stream->offset)
		stream->offset = call->offset;
	stream->over = call->end;
	return 0;
}

static struct stream *stream_of(struct stream *streams, const struct http_call *call)
{
	for (size_t i = 0; i < STREAMS; i++)
		if (call == &streams[i].call)
			return &streams[i];
	return NULL;
}

static bool all_over(const struct stream *streams)
{
	for (size_t i = 0; i < STREAMS; i++)
		if (streams[i].wanted && !streams[i].over)
			return false;
	return true;
}

static int follow(struct client *client, const char *run_id, struct stream *streams, struct err *err)
{
	int result = 0;

	for (size_t i = 0; i < STREAMS && result == 0; i++)
		result = streams[i].wanted ? ask(client, run_id, &streams[i], err) : 0;
	while (result == 0 && !all_over(streams)) {
		struct http_call *call = http_finished(client->http);

		if (!call) {
			result = http_wait(client->http, NULL, 0, CLIENT_WAIT_MS, err);
			continue;
		}

		struct stream *stream = stream_of(streams, call);

		result = settle(client, stream, err);
		if (result == 0 && !stream->over)
			result = ask(client, run_id, stream, err);
	}
	return result;
}

int client_logs(struct client *client, struct err *err)
{
	const struct request *request = client->request;
	bool one = request->only_stdout != request->only_stderr;
	struct stream streams[STREAMS] = {
		{.name = "stdout", .call = HTTP_CALL_INIT, .wanted = !one || request->only_stdout},
		{.name = "stderr", .call = HTTP_CALL_INIT, .wanted = !one || request->only_stderr},
	};
	char run_id[ID_SIZE];
	int result = client_find_run(client, run_id, err);

	output_init(&streams[0].output, STDOUT_FILENO);
	output_init(&streams[1].output, one ? STDOUT_FILENO : STDERR_FILENO);
	if (result == 0)
		result = follow(client, run_id, streams, err);
	for (size_t i = 0; i < STREAMS; i++) {
		http_stop(client->http, &streams[i].call);
		http_call_done(&streams[i].call);
		if (streams[i].wanted)
			output_finish(&streams[i].output);
	}
	return result;
}
