/* source_tree.h - a directory on its way to the keeper: its listing first, then the files that the keeper's store has not, then the
 * listing again. */
#pragma once

#include "base/digest.h"
#include "base/error.h"
#include "client/http.h"

struct source_tree;

/* Reads all of it; dir is a descriptor that can be read, and is taken over. ERR_INVALID names what may not be in an input. */
int source_tree_open(int dir, struct source_tree **ret, struct err *err);
void source_tree_free(struct source_tree *tree);

/* What the keeper has to call it in the end. */
const struct digest *source_tree_digest(const struct source_tree *tree);

/* The next call, or the last one again. ERR_IO. */
int source_tree_call(const struct source_tree *tree, struct http_call *ret, struct err *err);

/* Its answer: 1 when there is another call to make, 0 when the keeper has the directory. ERR_CONFLICT names a file that changed
 * meanwhile. */
int source_tree_hear(struct source_tree *tree, const struct http_call *call, struct err *err);
