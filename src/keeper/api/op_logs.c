/* op_logs.c - what a run wrote: from its spool while it is driven here, from ledger and store once it is sealed. */
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "keeper/api/api_internal.h"

struct request {
	const char *stream;
	int64_t offset;
	bool over;
};

static int read_request(struct call *call, struct request *ret, struct err *err)
{
	*ret = (struct request){.offset = 0};
	int result = argument_text(call, "stream", LEDGER_KIND_MAX, &ret->stream, err);
	if (result == 0)
		result = argument_number(call, "offset", INT64_MAX, &ret->offset, err);
	if (result == 0)
		result = argument_waits(call, &ret->over, err);
	if (result == 0 && (!ret->stream || (strcmp(ret->stream, "stdout") != 0 && strcmp(ret->stream, "stderr") != 0)))
		result = err_set(err, ERR_INVALID, "stream must be stdout or stderr");
	return result;
}

static int answer(struct call *call, int64_t next, bool end)
{
	call->reply.ok = json_pack("{s:I, s:b}", "next", (json_int_t)next, "end", (int)end);
	return 0;
}

/* Whole, so that it can be checked before any of it is handed out. */
static int answer_row(struct call *call, const struct request *request, const struct ledger_stream *stream, const void *data,
                      struct err *err)
{
	struct digest digest;
	digest_of(data, (size_t)stream->kept_bytes, &digest);
	if (!digest_equal(&digest, &stream->sha256))
		return err_set(err, ERR_DAMAGED, "%s of %s does not match its digest", request->stream, call->run_id);
	int64_t offset = request->offset < stream->kept_bytes ? request->offset : stream->kept_bytes;
	int result = buf_append(&call->reply.body, (const char *)data + offset, (size_t)(stream->kept_bytes - offset), err);
	return result ? result : answer(call, stream->kept_bytes, true);
}

static int answer_object(struct call *call, const struct request *request, const struct digest *digest, struct err *err)
{
	struct store *store = NULL;
	int64_t size = 0;
	int result = store_open(store_dir_fd(call->api->options.store), &store, err);
	if (result == 0)
		result = store_get_checked(store, digest, &call->reply.fd, &size, err);
	store_free(store);
	if (result)
		return err_context(err, ERR_DAMAGED, "%s of %s", request->stream, call->run_id);
	call->reply.offset = request->offset < size ? request->offset : size;
	call->reply.bytes = size - call->reply.offset;
	return answer(call, size, true);
}

static int answer_sealed(struct call *call, const struct request *request, struct err *err)
{
	struct ledger *ledger = call->api->options.ledger;
	struct ledger_stream stream;
	void *data = NULL;
	bool in_store = false;
	int result = ledger->ops->stream(ledger, call->run_id, request->stream, &stream, &data, &in_store, err);
	if (result == ERR_NOT_FOUND) /* nothing ran */
		return answer(call, 0, true);
	if (result == 0)
		result = in_store ? answer_object(call, request, &stream.sha256, err)
		                  : answer_row(call, request, &stream, data, err);
	free(data);
	return result;
}

struct sink {
	struct buf *body;
	struct err *err;
};

enum { SINK_FULL = 1 };

static int take_bytes(void *context, const void *bytes, size_t count)
{
	struct sink *sink = context;
	size_t room = WIRE_BODY_MAX - sink->body->len;
	int result = buf_append(sink->body, bytes, count < room ? count : room, sink->err);
	return result ? result : sink->body->len == WIRE_BODY_MAX ? SINK_FULL : 0;
}

static int answer_live(struct call *call, const struct request *request, struct err *err)
{
	struct sink sink = {.body = &call->reply.body, .err = err};
	struct capture_state state = {0};
	call->again_ms = API_FOLLOW_MS;
	capture_get_state(call->capture, &state);
	if (state.kept_bytes <= request->offset)
		return request->over ? answer(call, request->offset, false) : CALL_PARK;
	int result = capture_read(call->capture, request->offset, take_bytes, &sink, err);
	return result < 0 ? result : answer(call, request->offset + (int64_t)call->reply.body.len, false);
}

/* A look by time is a look at the spool alone: nothing was recorded since the last one. */
static bool only_looks(const struct call *call)
{
	return call->capture && !call->woken;
}

static int handle_logs(struct call *call, struct err *err)
{
	const struct api_core *core = call->api->options.core;
	struct ledger_run_state state = {.sealed = false};
	struct request request;
	int result = only_looks(call) ? 0 : access_run(call, &state, err);
	if (result == 0)
		result = read_request(call, &request, err);
	if (result)
		return result;
	if (state.sealed)
		return answer_sealed(call, &request, err);
	if (!call->capture)
		core->stream(core->context, call->run_id, strcmp(request.stream, "stderr") == 0, &call->capture, NULL);
	if (call->capture)
		return answer_live(call, &request, err);
	return request.over ? answer(call, request.offset, false) : CALL_PARK;
}

static const char *const logs_keys[] = {"run", "stream", "offset", "wait_ms", NULL};

const struct operation operation_logs = {.name = "logs", .keys = logs_keys, .handle = handle_logs};
