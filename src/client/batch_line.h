/* batch_line.h - one line of a batch: a manifest, or {"key": …, "manifest": …}. Pure. */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "client/key.h"
#include "client/reply.h"
#include "manifest/manifest.h"

enum { BATCH_LINE_MAX = MANIFEST_MAX_BYTES + 4096 };

struct batch_line {
	int64_t number;         /* from 1 */
	char key[KEY_MAX + 1];  /* its own, or made of the batch's key and the number: the same whenever the line is sent again */
	json_t *manifest;       /* valid; NULL when there is a refusal */
	struct refusal refusal; /* err.code 0: none. The text names the line, and path the place in it */
};

/* batch_key must be a key that leaves room for a number (BATCH_KEY_MAX). batch_line_done in every case. */
enum { BATCH_KEY_MAX = KEY_MAX - 24 };
void batch_line_parse(const char *text, size_t length, int64_t number, const char *batch_key, struct batch_line *ret);

/* A line that is longer than BATCH_LINE_MAX. */
void batch_line_too_long(int64_t number, const char *batch_key, struct batch_line *ret);
void batch_line_done(struct batch_line *line);
