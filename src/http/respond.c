/* respond.c - makes responses: structured errors, and bodies from the keeper. */
#include <string.h>

#include "http/front.h"

enum { ERROR_BODY_MAX = 16 * 1024 };

static const struct {
	const char *code;
	unsigned status;
} statuses[] = {
	{"invalid", MHD_HTTP_BAD_REQUEST},
	{"permission", MHD_HTTP_FORBIDDEN},
	{"not_found", MHD_HTTP_NOT_FOUND},
	{"exists", MHD_HTTP_CONFLICT},
	{"state", MHD_HTTP_CONFLICT},
	{"conflict", MHD_HTTP_CONFLICT},
	{"limit", MHD_HTTP_UNPROCESSABLE_CONTENT},
	{"unsupported", MHD_HTTP_UNPROCESSABLE_CONTENT},
	{"unenforceable", MHD_HTTP_UNPROCESSABLE_CONTENT},
	{WIRE_QUEUE_FULL, MHD_HTTP_TOO_MANY_REQUESTS},
	{"busy", MHD_HTTP_SERVICE_UNAVAILABLE},
	{"timeout", MHD_HTTP_SERVICE_UNAVAILABLE},
	{"lost", MHD_HTTP_SERVICE_UNAVAILABLE},
	{"no_memory", MHD_HTTP_SERVICE_UNAVAILABLE},
	{"no_space", MHD_HTTP_INSUFFICIENT_STORAGE},
};

static unsigned status_of(const char *code)
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (strcmp(statuses[i].code, code) == 0)
			return statuses[i].status;
	return MHD_HTTP_INTERNAL_SERVER_ERROR;
}

void respond_header(struct request *request, const char *name, const char *value)
{
	if (request->response)
		MHD_add_response_header(request->response, name, value);
}

/* Takes the place of what was there. */
static void set_response(struct request *request, unsigned status, const char *type, uint64_t bytes, struct MHD_Response *response)
{
	if (request->response)
		MHD_destroy_response(request->response);
	request->response = response;
	request->status = status;
	request->answer_bytes = bytes;
	respond_header(request, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	respond_header(request, "X-Content-Type-Options", "nosniff");
	respond_header(request, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	respond_header(request, "Content-Security-Policy", "default-src 'none'; sandbox");
}

static void respond_copy(struct request *request, unsigned status, const char *type, const char *body, size_t length)
{
	set_response(request, status, type, length,
	             MHD_create_response_from_buffer(length, (void *)(uintptr_t)body, MHD_RESPMEM_MUST_COPY));
}

void respond_error(struct request *request, unsigned status, const char *code, const char *message, const char *path)
{
	BUF_AUTO struct buf text = BUF_INIT(ERROR_BODY_MAX);
	JSON_AUTO json_t *body = json_pack("{s:{s:s, s:s, s:s*}}", "error", "code", code, "message", message, "path", path);
	if (!body || json_canonical(body, &text, NULL) || buf_puts(&text, "\n", NULL))
		return;
	respond_copy(request, status, "application/json", text.data, text.len);
	if (status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE)
		respond_header(request, MHD_HTTP_HEADER_RETRY_AFTER, "1");
}

void respond_err(struct request *request, const struct err *err)
{
	const char *code = err_code_name(err->code);
	respond_error(request, status_of(code), code, err->text, NULL);
}

void respond_refusal(struct request *request, const json_t *reply)
{
	const char *code = json_string_value(json_object_get(reply, "error"));
	const char *message = json_string_value(json_object_get(reply, "message"));
	if (code && message)
		respond_error(request, status_of(code), code, message, json_string_value(json_object_get(reply, "path")));
	else
		respond_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "protocol", "the keeper's answer makes no sense", NULL);
}

struct part {
	uint64_t offset, length;
};

static void respond_part_of(struct request *request, unsigned status, const char *type, const struct part *part,
                            struct answer *answer)
{
	struct MHD_Response *response = MHD_create_response_from_fd_at_offset64(part->length, answer->fd, part->offset);
	if (response) /* which closes it */
		answer->fd = -1;
	set_response(request, status, type, part->length, response);
}

void respond_body(struct request *request, unsigned status, const char *type, struct answer *answer)
{
	if (answer->fd < 0) {
		respond_copy(request, status, type, answer->body ? answer->body : "", answer->body_length);
		return;
	}
	int64_t bytes = answer_number(answer, "bytes", -1), offset = answer_number(answer, "offset", 0);
	if (bytes < 0 || offset < 0)
		respond_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "protocol", "the keeper's answer makes no sense", NULL);
	else
		respond_part_of(request, status, type, &(struct part){.offset = (uint64_t)offset, .length = (uint64_t)bytes},
		                answer);
}

void respond_fd(struct request *request, unsigned status, uint64_t offset, uint64_t length, struct answer *answer)
{
	respond_part_of(request, status, "application/octet-stream", &(struct part){.offset = offset, .length = length}, answer);
}

void respond_json(struct request *request, unsigned status, struct answer *answer)
{
	respond_body(request, status, "application/json", answer);
}

void respond_stream(struct request *request, const char *type, MHD_ContentReaderCallback reader, void *context,
                    MHD_ContentReaderFreeCallback release)
{
	enum { BLOCK_BYTES = 4096 };
	struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, reader, context, release);
	if (!response)
		release(context);
	set_response(request, MHD_HTTP_OK, type, 0, response);
}

int64_t answer_number(const struct answer *answer, const char *name, int64_t otherwise)
{
	const json_t *value = json_object_get(answer->ok, name);
	return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

bool answer_flag(const struct answer *answer, const char *name)
{
	return json_is_true(json_object_get(answer->ok, name));
}
