/* request.c - one request on its way: head, body, question, answer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/fd.h"
#include "http/front.h"

static struct request *request_new(struct client *client)
{
	struct request *request = calloc(1, sizeof(*request));
	if (request)
		*request = (struct request){
			.client = client,
			.body = BUF_INIT(WIRE_MANIFEST_MAX),
			.spool = -1,
			.sent = -1,
			.body_from_ns = clock_mono_ns(),
		};
	return request;
}

static void request_free(struct request *request)
{
	if (request->client->request == request)
		request->client->request = NULL;
	request->client->front->body_bytes -= request->body.len;
	for (size_t i = 0; i < request->parameter_count; i++)
		free(request->parameters[i].value);
	if (request->response)
		MHD_destroy_response(request->response);
	buf_done(&request->body);
	fd_close(&request->spool);
	fd_close(&request->sent);
	free(request);
}

static uint64_t body_max(const struct request *request)
{
	if (request->route->body_max > 0)
		return request->route->body_max;
	switch (request->route->body) {
	case BODY_NONE:
		return 0;
	case BODY_JSON:
		return WIRE_MANIFEST_MAX;
	case BODY_SPOOL:
		return WIRE_OBJECT_MAX;
	}
	return 0;
}

static bool is_json(const char *type)
{
	static const char name[] = "application/json";
	if (!type || strncasecmp(type, name, sizeof(name) - 1) != 0)
		return false;
	type += sizeof(name) - 1;
	return *type == '\0' || strcasecmp(type, "; charset=utf-8") == 0 || strcasecmp(type, ";charset=utf-8") == 0;
}

/* What can be said of a body before it is here. */
static int check_body(struct request *request)
{
	const char *length = head_value(request, "Content-Length");
	bool chunked = head_value(request, "Transfer-Encoding") != NULL;
	errno = 0;
	unsigned long long bytes = length ? strtoull(length, NULL, 10) : 0;
	if (request->route->body == BODY_NONE && (chunked || bytes > 0)) {
		respond_error(request, MHD_HTTP_BAD_REQUEST, "invalid", "this request has no body", NULL);
		return ERR_INVALID;
	}
	if (request->route->body == BODY_JSON && !is_json(head_value(request, "Content-Type"))) {
		respond_error(request, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "invalid", "Content-Type must be application/json", NULL);
		return ERR_INVALID;
	}
	if (request->route->body == BODY_SPOOL && !length && !chunked) {
		respond_error(request, MHD_HTTP_LENGTH_REQUIRED, "invalid", "a body is needed", NULL);
		return ERR_INVALID;
	}
	if (errno || bytes > body_max(request)) {
		respond_error(request, MHD_HTTP_CONTENT_TOO_LARGE, "limit", "the body is too large", NULL);
		return ERR_LIMIT;
	}
	return 0;
}

/* Hands the response over. MHD_NO, the end of the connection, when there is none. */
static enum MHD_Result queue(struct request *request)
{
	struct client *client = request->client;
	if (!request->response || client->gone)
		return MHD_NO;
	request->step = REQUEST_ANSWERED;
	if (request->stream)
		client->deadline_ns = 0; /* only that it must not stall */
	else
		client_deadline(client, clock_mono_ns(), FRONT_WRITE_MS, request->answer_bytes);
	enum MHD_Result queued = MHD_queue_response(client->connection, request->status, request->response);
	MHD_destroy_response(request->response);
	request->response = NULL;
	return queued;
}

static void ask(struct request *request, enum request_step step, struct question *question, struct err *err)
{
	int result = client_ask(request->client, request, question, err);
	request->step = result ? REQUEST_ANSWERED : step;
	if (result)
		respond_err(request, err);
}

static enum MHD_Result begin(struct request *request, const char *url, const char *method, const char *version)
{
	struct err err = ERR_INIT;
	int result = head_check(request, url, version);
	if (result == 0)
		result = route_find(request, method, url);
	if (result == 0)
		result = check_body(request);
	/* So early a response also ends the connection: what follows could be a body, or pass for a request. */
	if (result)
		return queue(request);
	client_deadline(request->client, request->body_from_ns, FRONT_BODY_MS, 0);
	request->step = REQUEST_BODY;
	if (request->route->body == BODY_SPOOL) {
		struct question question = {.text = json_pack("{s:s}", "op", "object_begin"), .fd = -1};
		ask(request, REQUEST_SPOOL, &question, &err);
		return request->response ? queue(request) : MHD_YES;
	}
	return MHD_YES;
}

static int keep(struct request *request, const char *bytes, size_t count, struct err *err)
{
	struct front *front = request->client->front;
	if (request->route->body == BODY_SPOOL) {
		int failed = fd_write_all(request->spool, bytes, count);
		return failed ? err_sys(err, -failed, "the body cannot be kept") : 0;
	}
	if (front->body_bytes + count > FRONT_BODIES_MAX)
		return err_set(err, ERR_BUSY, "too many bodies at a time");
	int result = buf_append(&request->body, bytes, count, err);
	if (result == 0)
		front->body_bytes += count;
	return result;
}

static enum MHD_Result take(struct request *request, const char *bytes, size_t *count)
{
	struct err err = ERR_INIT;
	request->body_bytes += *count;
	client_deadline(request->client, request->body_from_ns, FRONT_BODY_MS, request->body_bytes);
	if (!request->discards && request->body_bytes > body_max(request)) {
		respond_error(request, MHD_HTTP_CONTENT_TOO_LARGE, "limit", "the body is too large", NULL);
		request->discards = true;
	}
	if (!request->discards && keep(request, bytes, *count, &err)) {
		respond_err(request, &err);
		request->discards = true;
	}
	if (request->discards) {
		request->discarded += *count;
		if (request->discarded > FRONT_DISCARD_MAX)
			return MHD_NO;
	}
	*count = 0;
	return MHD_YES;
}

/* The request is complete. */
static enum MHD_Result finish(struct request *request)
{
	struct question question = {.fd = -1};
	struct err err = ERR_INIT;
	if (request->discards)
		return queue(request);
	if (request->route->ask(request, &question, &err) == 0) {
		ask(request, REQUEST_ASKED, &question, &err);
	} else {
		json_decref(question.text);
		respond_err(request, &err);
	}
	fd_close(&request->sent);
	return request->response ? queue(request) : MHD_YES;
}

enum MHD_Result request_handle(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                               const char *version, const char *upload, size_t *upload_size, void **request_context)
{
	struct request *request = *request_context;
	(void)context;
	if (!request) {
		request = request_new(MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
		*request_context = request;
		return request ? begin(request, url, method, version) : MHD_NO;
	}
	switch (request->step) {
	case REQUEST_SPOOL:
		if (request->spool < 0)
			return queue(request);
		request->step = REQUEST_BODY;
		request->body_from_ns = clock_mono_ns();
		client_deadline(request->client, request->body_from_ns, FRONT_BODY_MS, 0);
		return MHD_YES;
	case REQUEST_BODY:
		return *upload_size ? take(request, upload, upload_size) : finish(request);
	case REQUEST_ASKED:
		return MHD_YES;
	case REQUEST_ANSWERED:
		return queue(request);
	}
	return MHD_NO;
}

void request_completed(void *context, struct MHD_Connection *connection, void **request_context,
                       enum MHD_RequestTerminationCode code)
{
	struct request *request = *request_context;
	(void)context, (void)connection, (void)code;
	*request_context = NULL;
	if (!request)
		return;
	client_deadline(request->client, clock_mono_ns(), FRONT_IDLE_MS, 0);
	request_free(request);
}

static void hear_answer(struct request *request, struct answer *answer)
{
	if (request->step == REQUEST_SPOOL) {
		request->spool = answer->fd;
		answer->fd = -1;
		if (request->spool < 0)
			respond_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "protocol", "the keeper's answer makes no sense",
			              NULL);
	} else if (request->stream) {
		stream_hear(request->stream, answer);
	} else {
		request->step = REQUEST_ANSWERED;
		request->route->answer(request, answer);
	}
}

static void hear_refusal(struct request *request, const json_t *reply)
{
	if (request->stream)
		stream_fail(request->stream);
	else
		respond_refusal(request, reply);
	if (request->step == REQUEST_ASKED)
		request->step = REQUEST_ANSWERED;
}

void request_answer(struct request *request, struct channel_message *message)
{
	JSON_AUTO json_t *reply = NULL;
	if (message)
		json_parse(message->text, message->length, &reply, NULL);
	const json_t *ok = json_object_get(reply, "ok");
	if (!message) {
		JSON_AUTO json_t *lost =
			json_pack("{s:s, s:s}", "error", "lost", "message", "the keeper has closed this connection");
		hear_refusal(request, lost);
	} else if (!ok) {
		hear_refusal(request, reply);
	} else {
		struct answer answer = {.ok = ok, .body = message->document, .body_length = message->document_length, .fd = -1};
		if (message->fd_count > 0)
			answer.fd = fd_take(&message->fds[0]);
		hear_answer(request, &answer);
		fd_close(&answer.fd);
	}
}

int question_about(struct request *request, const char *op, struct question *ret, struct err *err)
{
	ret->text = json_pack("{s:s, s:s}", "op", op, "run", request->subject);
	return ret->text ? 0 : err_set(err, ERR_NO_MEMORY, "out of memory");
}

int question_plain(const char *op, struct question *ret, struct err *err)
{
	ret->text = json_pack("{s:s}", "op", op);
	return ret->text ? 0 : err_set(err, ERR_NO_MEMORY, "out of memory");
}

int request_empty_object(struct request *request, struct err *err)
{
	JSON_AUTO json_t *body = NULL;
	if (request->body.len == 0)
		return 0;
	int result = json_parse(request->body.data, request->body.len, &body, err);
	if (result == 0 && (!json_is_object(body) || json_object_size(body) > 0))
		result = err_set(err, ERR_INVALID, "the body must be empty, or {}");
	return result;
}
