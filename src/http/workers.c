/* workers.c - /v1/workers: who drives runs, and recovering a slot that was quarantined. */
#include <stdlib.h>
#include <string.h>

#include "http/front.h"

static int ask_workers(struct request *request, struct question *ret, struct err *err)
{
	(void)request;
	return question_plain("workers", ret, err);
}

static void answer_json(struct request *request, struct answer *answer)
{
	respond_json(request, MHD_HTTP_OK, answer);
}

const struct route route_workers_list = {
	.method = MHD_HTTP_METHOD_GET, .pattern = "/v1/workers", .ask = ask_workers, .answer = answer_json};

static int ask_recover(struct request *request, struct question *ret, struct err *err)
{
	enum { SLOT_DIGITS_MAX = 6 };
	int result = request_empty_object(request, err);
	if (result)
		return result;
	if (strspn(request->subject, "0123456789") != strlen(request->subject) || strlen(request->subject) > SLOT_DIGITS_MAX)
		return err_set(err, ERR_NOT_FOUND, "there is no such slot");
	ret->text = json_pack("{s:s, s:I}", "op", "recover", "slot", (json_int_t)strtol(request->subject, NULL, 10));
	return ret->text ? 0 : err_set(err, ERR_NO_MEMORY, "out of memory");
}

const struct route route_worker_recover = {.method = MHD_HTTP_METHOD_POST, .pattern = "/v1/workers/*/recover", .body = BODY_JSON,
	.ask = ask_recover, .answer = answer_json};
