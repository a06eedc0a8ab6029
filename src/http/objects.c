/* objects.c - /v1/objects and /v1/trees: an input's bytes, or a directory's listing, before the manifest that names them. They go straight
 * into a file of the keeper's. */
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

static int ask_tree(struct request *request, struct question *ret, struct err *err)
{
	(void)request;
	return question_plain("tree_seal", ret, err);
}

/* What it lacks is an answer, and no refusal: the client sends that, and asks again. */
static void answer_tree(struct request *request, struct answer *answer)
{
	respond_json(request, answer_flag(answer, "stored") ? MHD_HTTP_CREATED : MHD_HTTP_OK, answer);
}

const struct route route_tree_put = {
	.method = MHD_HTTP_METHOD_PUT, .pattern = "/v1/trees", .body = BODY_SPOOL, .body_max = WIRE_LISTING_MAX, .ask = ask_tree,
	.answer = answer_tree};
