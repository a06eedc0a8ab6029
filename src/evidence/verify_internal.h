/* verify_internal.h - what the files of verification share. */
#pragma once

#include "evidence/image.h"

/* One seal, and what is known of it. */
struct sealed {
	struct image_row *row;
	json_t *receipt;        /* NULL: it is no JSON */
	bool holds;             /* the signature does */
	const char *run, *attempt, *key; /* by the receipt if it holds, else by the row; never NULL */
	int64_t seq;
	struct digest digest;   /* of the receipt's text */
	json_t *rows;           /* body of the rows record; NULL: not found */
	bool records_differ, streams_differ, artifacts_differ, run_differs;
};

/* A row that a seal covers and that is not there as it was. */
struct absent {
	struct sealed *sealed;
	const char *table;
	json_t *columns; /* borrowed from sealed->rows */
};

struct verifier {
	const struct verify_source *source;
	const struct verify_options *options;
	verify_line_fn line;
	void *context;
	struct verify_report report;
	struct image image;
	struct sealed *seals; /* by key and seq */
	size_t seal_count;
	struct absent *absent;
	size_t absent_count, absent_capacity;
	bool ledger_differs;
};

/* run: what it is about; NULL: the ledger as a whole. Nothing is said of other runs than the one that is asked for. */
void verify_problem(struct verifier *verifier, const char *run, const char *format, ...) __attribute__((format(printf, 3, 4)));
void verify_note(struct verifier *verifier, const char *run, const char *format, ...) __attribute__((format(printf, 3, 4)));

void verify_done(struct verifier *verifier);

/* verify_seal.c */
int verify_load_seals(struct verifier *verifier, struct err *err);
void verify_check_seals(struct verifier *verifier);
int verify_check_chains(struct verifier *verifier, struct err *err);

/* verify_unsealed.c: which rows no seal covers yet. */
int verify_mark_unsealed(struct verifier *verifier, struct err *err);

/* verify_rows.c */
int verify_cover_rows(struct verifier *verifier, struct err *err);
void verify_check_strays(struct verifier *verifier);

/* verify_record.c: finds a seal's rows record (sealed->rows), or says what is wrong with it; checks the chain of its attempt. */
void verify_find_rows(struct verifier *verifier, struct sealed *sealed);
void verify_check_records(struct verifier *verifier, const struct sealed *sealed);

/* head.c */
int verify_check_head(struct verifier *verifier, struct err *err);
