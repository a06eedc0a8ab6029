/* storage.h - the store in the light of its ledger: sweeping what nothing names, finding what is damaged, missing or stray. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "artifact/store.h"
#include "keeper/references.h"
#include "ledger/ledger.h"

enum {
	SWEEP_BATCH = 1000,          /* objects removed while others wait */
	SWEEP_WAIT_MS = 10 * 1000,   /* for the runs that hold the store */
};

struct sweep_options {
	int64_t max_bytes;           /* oldest first, until the store is no larger; -1: all that may go */
	int64_t older_ms;            /* only what was stored so long ago */
	bool dry_run;
};

struct sweep_result {
	int64_t objects, bytes;      /* in the store before */
	int64_t removed, removed_bytes;
};

/* Removes objects that no reference names. ERR_BUSY when runs do not let the store go for SWEEP_WAIT_MS; what was removed by then
 * is removed, and *ret counts it also on failure. */
int storage_sweep(struct ledger *ledger, struct store *store, const struct sweep_options *options, struct sweep_result *ret,
                  struct err *err);

enum storage_finding_kind {
	STORAGE_DAMAGED, /* an object has other bytes than its name says */
	STORAGE_MISSING, /* a reference names an object that is not there */
	STORAGE_STRAY,   /* something that is no object */
};

struct storage_finding {
	enum storage_finding_kind kind;
	const char *object;                  /* "sha256:…", or of a stray its name in the store */
	const struct reference *references;  /* who names it */
	size_t reference_count;
};

typedef void (*storage_finding_fn)(void *context, const struct storage_finding *finding);

struct storage_report {
	int64_t objects, bytes;
	int64_t unnamed, unnamed_bytes; /* that a sweep may remove */
	int64_t findings;
};

const char *storage_finding_name(enum storage_finding_kind kind);

/* Reads every object. Changes nothing. */
int storage_check(struct ledger *ledger, struct store *store, storage_finding_fn fn, void *context, struct storage_report *ret,
                  struct err *err);
