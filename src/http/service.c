/* service.c - /v1/health, /v1/readiness, /metrics: how the keeper is. */
#include "http/front.h"

static int ask_health(struct request *request, struct question *ret, struct err *err)
{
	(void)request;
	return question_plain("health", ret, err);
}

static void answer_health(struct request *request, struct answer *answer)
{
	respond_json(request, MHD_HTTP_OK, answer);
}

const struct route route_health_get = {
	.method = MHD_HTTP_METHOD_GET, .pattern = "/v1/health", .ask = ask_health, .answer = answer_health};

static int ask_readiness(struct request *request, struct question *ret, struct err *err)
{
	(void)request;
	return question_plain("readiness", ret, err);
}

static void answer_readiness(struct request *request, struct answer *answer)
{
	respond_json(request, answer_flag(answer, "ready") ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, answer);
}

const struct route route_readiness_get = {
	.method = MHD_HTTP_METHOD_GET, .pattern = "/v1/readiness", .ask = ask_readiness, .answer = answer_readiness};

static int ask_metrics(struct request *request, struct question *ret, struct err *err)
{
	(void)request;
	return question_plain("metrics", ret, err);
}

static void answer_metrics(struct request *request, struct answer *answer)
{
	respond_body(request, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", answer);
}

const struct route route_metrics_get = {
	.method = MHD_HTTP_METHOD_GET, .pattern = "/metrics", .ask = ask_metrics, .answer = answer_metrics};
