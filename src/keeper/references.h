/* references.h - every object of the store that a ledger names, and by what. */
#pragma once

#include <stddef.h>

#include "ledger/ledger.h"

enum { REFERENCE_KIND_SIZE = 16 };

/* kind: "artifact", "stream", or "input" of a run that is not sealed yet. */
struct reference {
	struct digest sha256;
	char run_id[ID_SIZE];
	char kind[REFERENCE_KIND_SIZE];
	char *name; /* path, stream, or target */
};

struct references {
	struct reference *list; /* sorted by digest */
	size_t count, capacity;
};

/* ERR_DAMAGED when a plan cannot be read: then nobody knows what it needs. Zero-initialised *ret; references_done in every case. */
int references_load(struct ledger *ledger, struct references *ret, struct err *err);
void references_done(struct references *references);
#define REFERENCES_AUTO __attribute__((cleanup(references_done)))

/* The first of *ret_count references to this object; NULL for none. */
const struct reference *references_find(const struct references *references, const struct digest *digest, size_t *ret_count);
