/* runs.c - /v1/runs: submit one, list them. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "http/front.h"

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

static int read_key(const struct request *request, const char **ret, struct err *err)
{
	const char *key = head_value(request, "Idempotency-Key");
	if (key && (!*key || strlen(key) > WIRE_KEY_MAX || !is_printable(key)))
		return err_set(err, ERR_INVALID, "Idempotency-Key must be 1 to %d printable ASCII characters", WIRE_KEY_MAX);
	*ret = key;
	return 0;
}

/* A manifest that does not fit into a message travels as a descriptor. */
static int put_in_memory(const struct buf *body, int *ret, struct err *err)
{
	FD_AUTO int fd = memfd_create("manifest", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "make room for a manifest");
	int failed = fd_write_all(fd, body->data, body->len);
	if (failed)
		return err_sys(err, -failed, "keep a manifest");
	*ret = fd_take(&fd);
	return 0;
}

static int ask_submit(struct request *request, struct question *ret, struct err *err)
{
	const char *key = NULL;
	int result = read_key(request, &key, err);
	if (result == 0 && request->body.len > WIRE_BODY_MAX)
		result = put_in_memory(&request->body, &request->sent, err);
	if (result)
		return result;
	ret->text = json_pack("{s:s, s:s*}", "op", "submit", "idempotency_key", key);
	ret->fd = request->sent;
	if (ret->fd < 0) {
		ret->document = request->body.data ? request->body.data : "";
		ret->document_length = request->body.len;
	}
	return 0;
}

static void answer_submit(struct request *request, struct answer *answer)
{
	respond_json(request, answer_flag(answer, "existing") ? MHD_HTTP_OK : MHD_HTTP_CREATED, answer);
}

const struct route route_runs_submit = {
	.method = MHD_HTTP_METHOD_POST, .pattern = "/v1/runs", .body = BODY_JSON, .ask = ask_submit, .answer = answer_submit};

static int ask_list(struct request *request, struct question *ret, struct err *err)
{
	enum { LIST_DEFAULT = 50 };
	int64_t limit = LIST_DEFAULT;
	int result = parameter_number(request, "limit", WIRE_LIST_MAX, &limit, err);
	if (result)
		return result;
	ret->text = json_pack("{s:s, s:I, s:s*, s:s*, s:s*}", "op", "list", "limit", (json_int_t)limit, "cursor",
	                      parameter_text(request, "cursor"), "owner", parameter_text(request, "owner"), "run", parameter_text(request, "run"));
	return ret->text ? 0 : err_set(err, ERR_INVALID, "the query is no UTF-8");
}

static void answer_list(struct request *request, struct answer *answer)
{
	respond_json(request, MHD_HTTP_OK, answer);
}

static const char *const list_parameters[] = {"limit", "cursor", "owner", "run", NULL};

const struct route route_runs_list = {.method = MHD_HTTP_METHOD_GET, .pattern = "/v1/runs", .parameters = list_parameters,
	.ask = ask_list, .answer = answer_list};
