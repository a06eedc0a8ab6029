/* skeleton.h - the small root file system that everything else is mounted on. All by directory descriptor, never following a link. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Device nodes of every guest: paths without a leading slash. */
enum { SKELETON_DEVICES = 5 };
const char *skeleton_device(size_t index);

/* Directories, /dev with its links and, if asked for, its nodes, and, for the host's view, the guest's own /etc. */
int skeleton_make(int root, bool with_etc, bool with_nodes, struct err *err);

/* A mount point (directory or empty file) at `path`, its parents made as needed. What is there already and fits is kept. */
int skeleton_place(int root, const char *path, bool directory, struct err *err);

/* A symbolic link; one that is there already with the same text is kept. */
int skeleton_link(int root, const char *path, const char *target, struct err *err);

/* Names directly in a root file system that may be shown to a guest: everything but what the boundary provides itself. NULL-terminated,
 * freed with skeleton_free_list. At most 64. */
int skeleton_list_root(int root, char ***ret, struct err *err);
void skeleton_free_list(char **names);
