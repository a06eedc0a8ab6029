/* mkfs.h - formats the image of a scratch space with the host's mkfs.ext4 (e2fsprogs). */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum { MKFS_BLOCK_BYTES = 4096, MKFS_TIMEOUT_MS = 60 * 1000 };

/* Where the program is, or NULL. */
const char *mkfs_path(void);

/* Over the whole of the file. ERR_UNENFORCEABLE, with the program's own last line, when it does not do it. */
int mkfs_ext4(int image, int64_t inodes, struct err *err);
