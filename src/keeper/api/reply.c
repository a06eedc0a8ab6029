/* reply.c - answers, and what of an error a client is told. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "keeper/api/api_internal.h"

enum { REPLY_TEXT_MAX = 8 * 1024, LINE_MAX = ERR_TEXT_MAX + 128 };

void reply_done(struct reply *reply)
{
	json_decref(reply->ok);
	buf_done(&reply->body);
	fd_close(&reply->fd);
	*reply = (struct reply){.fd = -1};
}

int reply_json(struct call *call, json_t *body, struct err *err)
{
	JSON_AUTO json_t *owned = body;
	if (!owned)
		return err_set(err, ERR_NO_MEMORY, "out of memory for an answer");
	int result = json_canonical(owned, &call->reply.body, err);
	return result ? result : buf_puts(&call->reply.body, "\n", err);
}

/* What fits into no message travels as a file in memory. */
static int put_body_in_memory(struct reply *reply, struct err *err)
{
	FD_AUTO int fd = memfd_create("answer", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "make room for an answer");
	int failed = fd_write_all(fd, reply->body.data, reply->body.len);
	if (failed)
		return err_sys(err, -failed, "make room for an answer");
	reply->fd = fd_take(&fd);
	reply->offset = 0;
	reply->bytes = (int64_t)reply->body.len;
	return 0;
}

static int send_text(struct connection *connection, json_t *answer, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(REPLY_TEXT_MAX);
	const struct reply *reply = &connection->call.reply;
	struct channel channel = {.fd = connection->channel};
	int result = json_canonical(answer, &text, err);
	if (result)
		return result;
	struct channel_message message = {.text = text.data, .length = text.len, .fds = {reply->fd}, .fd_count = reply->fd >= 0};
	if (reply->fd < 0 && reply->body.len > 0) {
		message.document = reply->body.data;
		message.document_length = reply->body.len;
	}
	return channel_send(&channel, &message, err);
}

static int send_ok(struct connection *connection, struct err *err)
{
	struct reply *reply = &connection->call.reply;
	int result = reply->fd < 0 && reply->body.len > WIRE_BODY_MAX ? put_body_in_memory(reply, err) : 0;
	if (result)
		return result;
	JSON_AUTO json_t *answer = json_pack("{s:O}", "ok", reply->ok);
	JSON_AUTO json_t *empty = answer ? NULL : json_pack("{s:{}}", "ok");
	json_t *ok = json_object_get(answer ? answer : empty, "ok");
	if (reply->fd >= 0 && (json_object_set_new(ok, "bytes", json_integer(reply->bytes)) < 0 ||
	                       json_object_set_new(ok, "offset", json_integer(reply->offset)) < 0))
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	return send_text(connection, answer ? answer : empty, err);
}

/* Errors that speak of the request. The texts of all others may name what is the host's. */
static bool is_public(const struct call *call, int code)
{
	static const int codes[] = {ERR_INVALID,       ERR_LIMIT, ERR_NOT_FOUND, ERR_EXISTS, ERR_UNSUPPORTED,
	                            ERR_UNENFORCEABLE, ERR_STATE, ERR_CONFLICT,  ERR_BUSY};
	if (code == ERR_PERMISSION)
		return call->refused;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i] == code)
			return true;
	return false;
}

static void log_error(const struct connection *connection, const struct err *error)
{
	const struct api_core *core = connection->call.api->options.core;
	char line[LINE_MAX];
	snprintf(line, sizeof(line), "%s for %s: %s: %s", connection->call.operation->name, connection->peer.principal,
	         err_code_name(error->code), error->text);
	core->log(core->context, line);
}

/* "$.limits.wall_ms: must be …" names its place; "queue_full: …" is the ledger's way to say that. */
static json_t *public_error(const struct err *error)
{
	const char *code = err_code_name(error->code), *message = error->text;
	char path[JSON_PATH_MAX];
	size_t length = strcspn(message, ": ");
	bool placed = *message == '$' && message[length] == ':' && length < sizeof(path);
	snprintf(path, sizeof(path), "%.*s", (int)length, message);
	if (error->code == ERR_LIMIT && strncmp(message, WIRE_QUEUE_FULL ":", sizeof(WIRE_QUEUE_FULL)) == 0)
		code = WIRE_QUEUE_FULL;
	return json_pack("{s:s, s:s, s:s*}", "error", code, "message", message, "path", placed ? path : NULL);
}

static int send_error(struct connection *connection, const struct err *error, struct err *err)
{
	static const char hidden[] = "the keeper could not do this; its log says why";
	const char *code = err_code_name(error->code == ERR_PERMISSION ? ERR_IO : error->code);
	bool tells = is_public(&connection->call, error->code);
	if (!tells)
		log_error(connection, error);
	reply_done(&connection->call.reply);
	JSON_AUTO json_t *answer = tells ? public_error(error)
	                                 : json_pack("{s:s, s:s}", "error", code, "message", hidden);
	if (!answer) /* a text that is no UTF-8 */
		answer = json_pack("{s:s, s:s}", "error", code, "message", hidden);
	return answer ? send_text(connection, answer, err) : err_set(err, ERR_NO_MEMORY, "out of memory");
}

int reply_send(struct connection *connection, int result, const struct err *error, struct err *err)
{
	struct err failure = ERR_INIT;
	if (result == 0) {
		result = send_ok(connection, &failure);
		if (result == 0 || result == ERR_LOST)
			return result;
		error = &failure;
	}
	if (error->code != result) { /* a callback ended it with its number alone */
		err_set(&failure, result, "no more is known");
		error = &failure;
	}
	return send_error(connection, error, err);
}
