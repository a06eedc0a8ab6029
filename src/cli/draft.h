/* draft.h - a manifest in the making: what options say, as the JSON document that manifest_parse then validates.
 *
 * So there is one path of validation, and a run by options can be repeated from its recorded manifest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"

struct draft {
	json_t *document; /* NULL until the first member */
};

void draft_done(struct draft *draft);

/* Puts value (taken over, also on failure; NULL is ERR_NO_MEMORY) at a dotted path such as "limits.wall_ms". */
int draft_set(struct draft *draft, const char *path, json_t *value, struct err *err);
/* As draft_set, at the end of the array at path. */
int draft_append(struct draft *draft, const char *path, json_t *value, struct err *err);
/* Text that must be UTF-8, because a manifest is. */
int draft_set_text(struct draft *draft, const char *path, const char *text, struct err *err);

/* "K=V" becomes member K of the object at path. */
int draft_set_pair(struct draft *draft, const char *path, const char *pair, struct err *err);

/* "SRC:DEST", split at the last colon. Mode 0555 when the owner may execute SRC, else 0444. ERR_NOT_FOUND and the like when SRC
 * is not there. */
int draft_add_input(struct draft *draft, const char *pair, struct err *err);

/* The command: argv with its NULL. */
int draft_set_command(struct draft *draft, char *const *argv, struct err *err);

/* The document with its version, as text. */
int draft_text(struct draft *draft, struct buf *ret, struct err *err);
