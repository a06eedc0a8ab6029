/* artifacts.c - /v1/runs/{run}/artifacts and …/artifact: the files that a run has left. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "http/front.h"
#include "http/range.h"

enum { CONTENT_RANGE_SIZE = 80, ETAG_SIZE = DIGEST_TEXT_SIZE + 2 };

static int ask_artifacts(struct request *request, struct question *ret, struct err *err)
{
	return question_about(request, "artifacts", ret, err);
}

static void answer_artifacts(struct request *request, struct answer *answer)
{
	respond_json(request, MHD_HTTP_OK, answer);
}

const struct route route_artifacts_list = {
	.method = MHD_HTTP_METHOD_GET, .pattern = "/v1/runs/*/artifacts", .ask = ask_artifacts, .answer = answer_artifacts};

/* The name is looked up as it is among those of the receipt; it is never a path here, nor there. */
static int ask_artifact(struct request *request, struct question *ret, struct err *err)
{
	const char *path = parameter_text(request, "path");
	if (!path || !*path || strlen(path) > WIRE_PATH_MAX)
		return err_set(err, ERR_INVALID, "path must be the name of an artifact, of at most %d bytes", WIRE_PATH_MAX);
	ret->document = path;
	ret->document_length = strlen(path);
	return question_about(request, "artifact", ret, err);
}

/* A part is only asked of the same bytes: a name with another digest is another object. */
static enum range_kind wanted(const struct request *request, const char *etag, uint64_t size, struct range *ret)
{
	const char *condition = head_value(request, "If-Range");
	if (condition && strcmp(condition, etag) != 0)
		return RANGE_ALL;
	return range_parse(head_value(request, "Range"), size, ret);
}

static void respond_outside(struct request *request, uint64_t size)
{
	char range[CONTENT_RANGE_SIZE];
	snprintf(range, sizeof(range), "bytes */%" PRIu64, size);
	respond_error(request, MHD_HTTP_RANGE_NOT_SATISFIABLE, "invalid", "the range is outside the artifact", NULL);
	respond_header(request, MHD_HTTP_HEADER_CONTENT_RANGE, range);
}

static void respond_part(struct request *request, const struct range *range, uint64_t size, struct answer *answer)
{
	char text[CONTENT_RANGE_SIZE];
	snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, range->first, range->first + range->length - 1,
	         size);
	respond_fd(request, MHD_HTTP_PARTIAL_CONTENT, range->first, range->length, answer);
	respond_header(request, MHD_HTTP_HEADER_CONTENT_RANGE, text);
}

static void answer_artifact(struct request *request, struct answer *answer)
{
	char etag[ETAG_SIZE];
	const char *digest = json_string_value(json_object_get(answer->ok, "digest"));
	int64_t size = answer_number(answer, "bytes", -1);
	struct range range = {0};
	if (!digest || size < 0 || answer->fd < 0) {
		respond_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "protocol", "the keeper's answer makes no sense", NULL);
		return;
	}
	snprintf(etag, sizeof(etag), "\"%s\"", digest);
	switch (wanted(request, etag, (uint64_t)size, &range)) {
	case RANGE_ALL:
		respond_fd(request, MHD_HTTP_OK, 0, (uint64_t)size, answer);
		break;
	case RANGE_PART:
		respond_part(request, &range, (uint64_t)size, answer);
		break;
	case RANGE_OUTSIDE:
		respond_outside(request, (uint64_t)size);
		return;
	}
	respond_header(request, MHD_HTTP_HEADER_ETAG, etag);
	respond_header(request, MHD_HTTP_HEADER_ACCEPT_RANGES, "bytes");
	respond_header(request, MHD_HTTP_HEADER_CONTENT_DISPOSITION, "attachment");
}

static const char *const artifact_parameters[] = {"path", NULL};

const struct route route_artifact_get = {.method = MHD_HTTP_METHOD_GET, .pattern = "/v1/runs/*/artifact",
	.parameters = artifact_parameters, .ask = ask_artifact, .answer = answer_artifact};
