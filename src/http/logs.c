/* logs.c - /v1/runs/{run}/logs: what a run has written so far, byte for byte. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "http/front.h"

enum { NUMBER_SIZE = 24 };

static int ask_logs(struct request *request, struct question *ret, struct err *err)
{
	const char *stream = parameter_text(request, "stream");
	int64_t offset = 0, wait_ms = 0;
	int result = parameter_number(request, "offset", INT64_MAX, &offset, err);
	if (result == 0)
		result = parameter_number(request, "wait_ms", WIRE_WAIT_MAX_MS, &wait_ms, err);
	if (result == 0 && (!stream || (strcmp(stream, "stdout") != 0 && strcmp(stream, "stderr") != 0)))
		result = err_set(err, ERR_INVALID, "stream must be stdout or stderr");
	if (result == 0)
		result = question_about(request, "logs", ret, err);
	if (result)
		return result;
	json_object_set_new(ret->text, "stream", json_string(stream));
	json_object_set_new(ret->text, "offset", json_integer(offset));
	json_object_set_new(ret->text, "wait_ms", json_integer(wait_ms));
	return 0;
}

static void answer_logs(struct request *request, struct answer *answer)
{
	char next[NUMBER_SIZE];
	snprintf(next, sizeof(next), "%" PRId64, answer_number(answer, "next", 0));
	bool end = answer_flag(answer, "end");
	respond_body(request, MHD_HTTP_OK, "application/octet-stream", answer);
	respond_header(request, "Caisson-Offset", next);
	respond_header(request, "Caisson-End", end ? "true" : "false");
}

static const char *const logs_parameters[] = {"stream", "offset", "wait_ms", NULL};

const struct route route_logs_get = {.method = MHD_HTTP_METHOD_GET, .pattern = "/v1/runs/*/logs", .parameters = logs_parameters,
	.ask = ask_logs, .answer = answer_logs};
