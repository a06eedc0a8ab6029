/* image.h - a ledger's rows in memory, found by what they say. Private to verification. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "evidence/verify.h"

enum {
	IMAGE_TABLE_SIZE = 32,
	IMAGE_ROWS_MAX = 16 * 1024 * 1024,
	IMAGE_LABEL_SIZE = 160,
};

struct image_row {
	char table[IMAGE_TABLE_SIZE];
	json_t *json;         /* its columns */
	/* Of table and columns, long texts by their digest: equal to that of the same row in a rows record. A column that is NULL and one
	 * that did not exist yet are the same: that is what a later schema adds to the rows of an earlier one. */
	struct digest digest;
	bool covered;         /* under a seal, as it is */
	bool paired;          /* under a seal, but changed: reported */
	bool unsealed;        /* of a run that is not sealed yet */
};

struct image {
	struct image_row *rows;         /* by table, then id, then seq */
	struct image_row **by_digest;
	size_t count;
};

int image_load(const struct verify_source *source, struct image *ret, struct err *err);
void image_done(struct image *image);

/* A column. NULL or 0 when it is absent or of another type. */
const char *image_text(const struct image_row *row, const char *column);
int64_t image_number(const struct image_row *row, const char *column);

/* The rows of a table; with an id, those that begin with it: attempt_id, or else run_id, owner_id, key, ledger_id. */
struct image_range {
	struct image_row *first;
	size_t count;
};
struct image_range image_find(const struct image *image, const char *table, const char *id);

/* Digest of a row of a rows record, and the row that has it; NULL when there is none. */
int image_digest(const char *table, const json_t *columns, struct digest *ret, struct err *err);
struct image_row *image_with_digest(const struct image *image, const struct digest *digest);

/* Says which row it is, by the columns that tell. Returns text. */
const char *image_label(const json_t *columns, char text[static IMAGE_LABEL_SIZE]);

/* Does a column of a row equal that of a rows record, where a long text is given by its digest? */
bool image_column_equal(const json_t *sealed, const json_t *found);
