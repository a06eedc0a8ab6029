/* objects.c - /v1/objects: an input's bytes, before the manifest that names them. They go straight into a file of the keeper's. */
#include "http/front.h"

static int ask_put(struct request *request, struct question *ret, struct err *err)
{
	(void)request;
	return question_plain("object_seal", ret, err);
}

static void answer_put(struct request *request, struct answer *answer)
{
	respond_json(request, MHD_HTTP_CREATED, answer);
}

const struct route route_object_put = {
	.method = MHD_HTTP_METHOD_PUT, .pattern = "/v1/objects", .body = BODY_SPOOL, .ask = ask_put, .answer = answer_put};
