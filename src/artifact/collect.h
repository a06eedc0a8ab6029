/* collect.h - takes what a guest left in its output place into the store: all of it by the rules, or nothing.
 *
 * To be called when every process that could write there is dead and verified to be. Nothing relies on that for safety: the place
 * is only looked at through its descriptor, never through a link or a mount, no object is opened before it is known to be a
 * regular file, and what changes between the first look and the end of the copy is a rejection. See docs/adr/0009. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "artifact/list.h"
#include "artifact/store.h"
#include "base/error.h"
#include "manifest/plan.h"

enum {
	COLLECT_ENTRIES_MAX = 4096, /* names of every kind, in all directories together */
	COLLECT_DEPTH_MAX = 64,     /* parts of a path */
};

/* Borrowed. max_bytes counts apparent sizes, and a file under two names twice. */
struct collect_rules {
	int64_t max_files, max_file_bytes, max_bytes;
	const char *const *required; /* paths that must be there as files, and not empty */
	size_t required_count;
};

/* The rules of a plan; valid as long as it is. */
struct collect_rules collect_rules_of(const struct plan *plan);

/* dir: descriptor of the output place. With any rejection *ret has only rejections, and what was copied before stays in the store
 * without a name in any receipt. Objects are durable when it returns. A negative code is our failure, never the guest's:
 * ERR_NO_SPACE, ERR_IO, … */
int artifact_collect(int dir, const struct collect_rules *rules, struct store *store, struct artifact_list *ret, struct err *err);
