/* reply.c - reads replies. */
#include "client/reply.h"

#include <stdio.h>
#include <string.h>

bool reply_good(const struct http_call *call)
{
	return call->result == 0 && call->status >= 200 && call->status < 300;
}

static int code_of_status(long status)
{
	static const struct {
		long status;
		int code;
	} codes[] = {
		{400, ERR_INVALID}, {401, ERR_PERMISSION}, {403, ERR_PERMISSION}, {404, ERR_NOT_FOUND}, {409, ERR_CONFLICT},
		{413, ERR_LIMIT},   {422, ERR_INVALID},    {429, ERR_BUSY},       {503, ERR_BUSY},      {507, ERR_NO_SPACE},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].status == status)
			return codes[i].code;
	return ERR_INTERNAL;
}

static void copy_text(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

/* The path with which a text begins, its ": " not included; 0 for none. */
static size_t path_length(const char *text)
{
	const char *colon = strncmp(text, "$", 1) == 0 ? strstr(text, ": ") : NULL;

	return colon ? (size_t)(colon - text) : 0;
}

void refusal_of_error(const struct err *err, struct refusal *ret)
{
	size_t length = path_length(err->text);

	*ret = (struct refusal){.err = *err};
	copy_text(ret->code, sizeof(ret->code), err_code_name(err->code));
	if (length < sizeof(ret->path))
		memcpy(ret->path, err->text, length);
}

static void read_error(const json_t *error, struct refusal *ret)
{
	const char *code = json_string_value(json_object_get(error, "code"));
	const char *message = json_string_value(json_object_get(error, "message"));
	const char *path = json_string_value(json_object_get(error, "path"));

	if (code)
		copy_text(ret->code, sizeof(ret->code), code);
	if (path)
		copy_text(ret->path, sizeof(ret->path), path);
	if (message)
		err_set(&ret->err, ret->err.code, "%s", message);
	if (path && path_length(ret->err.text) != strlen(path))
		err_context(&ret->err, ret->err.code, "%s", path);
}

void refusal_of_call(const struct http_call *call, struct refusal *ret)
{
	JSON_AUTO json_t *document = NULL;
	struct err err = ERR_INIT;

	if (call->result) {
		refusal_of_error(&call->err, ret);
		return;
	}
	err_set(&err, code_of_status(call->status), "the keeper answers with HTTP status %ld", call->status);
	refusal_of_error(&err, ret);
	if (call->reply.len && json_parse(call->reply.data, call->reply.len, &document, NULL) == 0)
		read_error(json_object_get(document, "error"), ret);
}

int reply_document(const struct http_call *call, json_t **ret, struct err *err)
{
	struct refusal refusal;

	if (reply_good(call)) {
		int result = json_parse(call->reply.data ? call->reply.data : "", call->reply.len, ret, err);

		return result ? err_context(err, ERR_PROTOCOL, "the keeper's answer is not JSON") : 0;
	}
	refusal_of_call(call, &refusal);
	if (err)
		*err = refusal.err;
	return refusal.err.code;
}

int reply_stored(const json_t *document, const struct digest *sent, struct err *err)
{
	const char *stored = json_string_value(json_object_get(document, "digest"));
	char text[DIGEST_TEXT_SIZE];

	if (!stored || strcmp(stored, digest_text(sent, text)) != 0)
		return err_set(err, ERR_DAMAGED, "the keeper has stored something else than was sent");
	return 0;
}
