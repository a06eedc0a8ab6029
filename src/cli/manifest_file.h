/* manifest_file.h - reads a manifest from a file or from standard input. */
#pragma once

#include "base/error.h"
#include "manifest/manifest.h"

/* path: "-" for standard input. At most MANIFEST_MAX_BYTES. The text of an error begins with the path. */
int manifest_file_load(const char *path, struct manifest **ret, struct err *err);
