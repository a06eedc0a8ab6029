/* name.h - the path of an artifact: which byte strings are one, and how one is spelled in JSON.
 *
 * A path is relative to the output place; its parts are any bytes that the kernel allows. Spelling: valid UTF-8 without control
 * characters and without a backslash is itself; otherwise every byte that is not printable ASCII, and '\\', is \xHH in lower case.
 * So a text with a backslash is escaped, one without is not, and each path has exactly one spelling. Pure. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"

enum { ARTIFACT_PATH_MAX = 4095 }; /* bytes, NUL not counted */

/* No empty part, no "." or "..", no leading or trailing slash, at most ARTIFACT_PATH_MAX bytes. */
bool artifact_path_valid(const char *path);

/* Sets a member to the path's spelling. Takes any text, also one that is no valid path. ERR_NO_MEMORY. */
int artifact_set_path(json_t *object, const char *key, const char *path, struct err *err);

/* What a text spells, for the caller to free. ERR_INVALID when it is nothing's spelling; for artifact_parse_path, when that is no
 * valid path. */
int artifact_parse_text(const char *text, char **ret, struct err *err);
int artifact_parse_path(const char *text, char **ret, struct err *err);
