/* verify.h - does a ledger still say what was sealed? Offline, from its rows alone; the store's own constraints are not trusted.
 *
 * Checked: each receipt's signature; the chain of each key's seals, from the genesis on; that a run's last record holds; and with it,
 * column by column, every row that the run has left; the chain of its records; keys against their fingerprints; streams and artifacts
 * against their digests; and that there is no row which nothing covers. What does not hold is named, as table.column where it can. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/digest.h"
#include "base/error.h"

enum {
	VERIFY_LINE_MAX = 512,
	VERIFY_TEXT_MAX = 128,          /* in a rows record a longer text is {"sha256": hex} */
	VERIFY_HEAD_BYTES_MAX = 65536,  /* of a head file */
};

/* Where the rows come from; the same as dump of ledger.h. Tables in any order, rows of a table in any order. */
struct verify_source {
	int (*dump)(void *context, int (*row)(void *row_context, const char *table, const char *json), void *row_context,
	            struct err *err);
	/* Is the store's object whole (store.h, store_check)? NULL: there is no store. */
	int (*object)(void *context, const struct digest *digest, struct err *err);
	void *context;
};

struct verify_options {
	const char *run_id; /* NULL: all */
	const char *trust;  /* fingerprint of the one key that may have sealed; NULL: any that the ledger names */
	const char *head;   /* text of a head file (head_write): what the ledger must still contain; NULL */
};

enum verify_line_kind {
	VERIFY_PROBLEM,     /* something does not hold */
	VERIFY_NOTE,        /* "not sealed yet" */
};

/* line: one line, printable, without the newline. */
typedef void (*verify_line_fn)(void *context, enum verify_line_kind kind, const char *line);

struct verify_report {
	int64_t sealed, unsealed; /* runs */
	int64_t rows;             /* read */
	int64_t problems;         /* 0: all of it holds */
};

/* 0 when the question could be answered: see ret->problems. ERR_NOT_FOUND: no such run. ERR_INVALID: a malformed head. Errors of
 * the source are passed on. */
int verify(const struct verify_source *source, const struct verify_options *options, verify_line_fn line, void *context,
           struct verify_report *ret, struct err *err);

/* Appends a head: one line "caisson.head/v1 LEDGER KEY SEQ DIGEST" for each key that has sealed, digest of its last seal. To be kept
 * where those who can write the ledger cannot. */
int head_write(const struct verify_source *source, struct buf *ret, struct err *err);
