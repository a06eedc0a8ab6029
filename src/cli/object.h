/* object.h - an object of the store for a reader: never a byte of a damaged one. */
#pragma once

#include "artifact/list.h"
#include "artifact/store.h"
#include "cli/wiring.h"
#include "print/output.h"

/* Checks the whole object first, then writes it. store may be NULL: ERR_NOT_FOUND. output_finish is the caller's. */
int object_write(struct store *store, const struct digest *digest, struct output *output, struct err *err);

/* The artifacts of a sealed run, as the ledger's table has them, for artifact_list_done. ERR_STATE when it is not sealed,
 * ERR_DAMAGED when a path is none. */
int object_list(struct wiring *wiring, const char *run_id, struct artifact_list *ret, struct err *err);
