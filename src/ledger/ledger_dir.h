/* ledger_dir.h - the directory that is a ledger: made, found fit, opened. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Opens the directory at `path`; with `create` it is made first when absent (0700, its parents too).
 *
 * ERR_PERMISSION, naming the path, when it belongs to another user or another user can write it. ERR_UNSUPPORTED on a file system where
 * locks or a write-ahead log cannot be trusted (network file systems, overlay). ERR_NOT_FOUND. *ret_volatile, which may be NULL, says
 * that it is on tmpfs, where nothing outlives the machine's uptime: worth a warning. The descriptor is the caller's. */
int ledger_dir_open(const char *path, bool create, int *ret_dir, bool *ret_volatile, struct err *err);
