/* run.c - /v1/runs/{run}: how it stands, waiting for its end, and cancelling it. */
#include "http/front.h"

static int ask_get(struct request *request, struct question *ret, struct err *err)
{
	int64_t wait_ms = 0;
	int result = parameter_number(request, "wait_ms", WIRE_WAIT_MAX_MS, &wait_ms, err);
	if (result == 0)
		result = question_about(request, "run", ret, err);
	if (result == 0)
		json_object_set_new(ret->text, "wait_ms", json_integer(wait_ms));
	return result;
}

static void answer_get(struct request *request, struct answer *answer)
{
	respond_json(request, MHD_HTTP_OK, answer);
}

static const char *const get_parameters[] = {"wait_ms", NULL};

const struct route route_run_get = {.method = MHD_HTTP_METHOD_GET, .pattern = "/v1/runs/*", .parameters = get_parameters,
	.ask = ask_get, .answer = answer_get};

static int ask_cancel(struct request *request, struct question *ret, struct err *err)
{
	int result = request_empty_object(request, err);
	return result ? result : question_about(request, "cancel", ret, err);
}

static void answer_cancel(struct request *request, struct answer *answer)
{
	if (answer_flag(answer, "sealed"))
		respond_error(request, MHD_HTTP_CONFLICT, "state", "the run is sealed: a cancellation changes nothing any more",
		              NULL);
	else
		respond_json(request, MHD_HTTP_ACCEPTED, answer);
}

const struct route route_run_cancel = {.method = MHD_HTTP_METHOD_POST, .pattern = "/v1/runs/*/cancel", .body = BODY_JSON,
	.ask = ask_cancel, .answer = answer_cancel};
