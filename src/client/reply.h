/* reply.h - what a keeper answered: a document, or why not. Pure. */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "client/http.h"

enum { REFUSAL_CODE_SIZE = 64 };

/* An answer that is no success. */
struct refusal {
	char code[REFUSAL_CODE_SIZE]; /* the keeper's word, such as "queue_full"; else that of the err_code */
	char path[JSON_PATH_MAX];     /* in the manifest; empty when it is not about a place in it */
	struct err err;
};

/* Of an error that came up on this side. A text that begins with a JSON path ("$.…: ") gives its path. */
void refusal_of_error(const struct err *err, struct refusal *ret);

/* Of a call that is over, and whose result is not 0 or whose status is not good. */
void refusal_of_call(const struct http_call *call, struct refusal *ret);

/* Did the keeper say yes? */
bool reply_good(const struct http_call *call);

/* The document of a good reply. ERR_PROTOCOL when it is none; else the refusal's code and text. *ret is the caller's. */
int reply_document(const struct http_call *call, json_t **ret, struct err *err);

/* Does a document say that exactly this was stored? ERR_DAMAGED. */
int reply_stored(const json_t *document, const struct digest *sent, struct err *err);
