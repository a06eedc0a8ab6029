/* image.c - a ledger's rows in memory, found by what they say. */
#include "evidence/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_BYTES_MAX = 64 * 1024 * 1024, FIRST_CAPACITY = 256 };

/* What orders the rows of a table, and tells them apart for a reader: the first of these that a row has. */
static const char *const id_columns[] = {"attempt_id", "run_id", "owner_id", "key", "ledger_id", NULL};

const char *image_text(const struct image_row *row, const char *column)
{
	return json_string_value(json_object_get(row->json, column));
}

int64_t image_number(const struct image_row *row, const char *column)
{
	return json_integer_value(json_object_get(row->json, column));
}

static const char *id_of(const struct image_row *row)
{
	for (const char *const *column = id_columns; *column; column++) {
		const char *id = image_text(row, *column);
		if (id)
			return id;
	}
	return "";
}

/* The form that a value has in a rows record: a new reference. NULL stays NULL. */
static json_t *as_sealed(json_t *value)
{
	char hex[DIGEST_HEX_SIZE];
	struct digest digest;

	if (!json_is_string(value) || json_string_length(value) <= VERIFY_TEXT_MAX)
		return json_incref(value);
	digest_of(json_string_value(value), json_string_length(value), &digest);
	return json_pack("{s:s}", "sha256", digest_hex(&digest, hex));
}

static bool is_nothing(const json_t *value)
{
	return !value || json_is_null(value);
}

bool image_column_equal(const json_t *sealed, const json_t *found)
{
	if (is_nothing(sealed) || is_nothing(found))
		return is_nothing(sealed) && is_nothing(found);
	JSON_AUTO json_t *form = as_sealed((json_t *)found);

	return json_equal(sealed, form);
}

int image_digest(const char *table, const json_t *columns, struct digest *ret, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(ROW_BYTES_MAX);
	JSON_AUTO json_t *sealed = json_object();
	const char *column;
	json_t *value;
	int r;

	json_object_foreach ((json_t *)columns, column, value) {
		if (!json_is_null(value) && json_object_set_new(sealed, column, as_sealed(value)) < 0)
			return err_set(err, ERR_NO_MEMORY, "out of memory");
	}
	r = buf_printf(&text, err, "%s ", table);
	if (r == 0)
		r = json_canonical(sealed, &text, err);
	if (r == 0)
		digest_of(text.data, text.len, ret);
	return r;
}

struct loading {
	struct image *image;
	size_t capacity;
	struct err *err;
};

static int grow(struct loading *loading)
{
	struct image *image = loading->image;
	size_t capacity = loading->capacity ? 2 * loading->capacity : FIRST_CAPACITY;
	struct image_row *rows;

	if (image->count < loading->capacity)
		return 0;
	if (capacity > IMAGE_ROWS_MAX)
		return err_set(loading->err, ERR_LIMIT, "more than %d rows", IMAGE_ROWS_MAX);
	rows = realloc(image->rows, capacity * sizeof *rows);
	if (!rows)
		return err_set(loading->err, ERR_NO_MEMORY, "out of memory");
	image->rows = rows;
	loading->capacity = capacity;
	return 0;
}

static int take_row(void *context, const char *table, const char *text)
{
	struct loading *loading = context;
	struct image_row row = {.covered = false};
	int r = grow(loading);

	if (r < 0)
		return r;
	if (strlen(table) >= sizeof row.table)
		return err_set(loading->err, ERR_DAMAGED, "a table's name is too long");
	snprintf(row.table, sizeof row.table, "%s", table);
	r = json_parse(text, strlen(text), &row.json, loading->err);
	if (r < 0)
		return err_context(loading->err, r, "a row of table %s", table);
	r = image_digest(table, row.json, &row.digest, loading->err);
	if (r < 0) {
		json_decref(row.json);
		return r;
	}
	loading->image->rows[loading->image->count++] = row;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct image_row *x = a, *y = b;
	int order = strcmp(x->table, y->table);
	int64_t m, n;

	if (order == 0)
		order = strcmp(id_of(x), id_of(y));
	m = image_number(x, "seq");
	n = image_number(y, "seq");
	return order ? order : (m > n) - (m < n);
}

static int by_digest(const void *a, const void *b)
{
	const struct image_row *const *x = a, *const *y = b;

	return memcmp((*x)->digest.bytes, (*y)->digest.bytes, DIGEST_BYTES);
}

int image_load(const struct verify_source *source, struct image *ret, struct err *err)
{
	struct image image = {.count = 0};
	struct loading loading = {.image = &image, .err = err};
	int r = source->dump(source->context, take_row, &loading, err);

	if (r == 0) {
		image.by_digest = calloc(image.count + 1, sizeof *image.by_digest);
		r = image.by_digest ? 0 : err_set(err, ERR_NO_MEMORY, "out of memory");
	}
	if (r < 0) {
		image_done(&image);
		return r;
	}
	if (image.count > 0)
		qsort(image.rows, image.count, sizeof *image.rows, by_place);
	for (size_t i = 0; i < image.count; i++)
		image.by_digest[i] = &image.rows[i];
	qsort(image.by_digest, image.count, sizeof *image.by_digest, by_digest);
	*ret = image;
	return 0;
}

void image_done(struct image *image)
{
	for (size_t i = 0; i < image->count; i++)
		json_decref(image->rows[i].json);
	free(image->rows);
	free(image->by_digest);
}

static int compare_place(const struct image_row *row, const char *table, const char *id)
{
	int order = strcmp(row->table, table);

	return order || !id ? order : strcmp(id_of(row), id);
}

/* The first row that is not before (or, with `behind`, that is behind) the place. */
static size_t bound(const struct image *image, const char *table, const char *id, bool behind)
{
	size_t low = 0, high = image->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare_place(&image->rows[middle], table, id);

		if (order < 0 || (behind && order == 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct image_range image_find(const struct image *image, const char *table, const char *id)
{
	size_t first = bound(image, table, id, false);

	return (struct image_range){.first = image->rows + first, .count = bound(image, table, id, true) - first};
}

struct image_row *image_with_digest(const struct image *image, const struct digest *digest)
{
	struct image_row wanted = {.digest = *digest}, *key = &wanted;
	struct image_row **found = bsearch(&key, image->by_digest, image->count, sizeof *image->by_digest, by_digest);

	return found ? *found : NULL;
}

const char *image_label(const json_t *columns, char text[static IMAGE_LABEL_SIZE])
{
	static const char *const telling[] = {"ledger_id", "key",        "run_id", "attempt_id", "owner_id",
	                                      "seal_seq",  "generation", "seq",    "name",       NULL};
	size_t length = 0;

	text[0] = '\0';
	for (const char *const *column = telling; *column && length < IMAGE_LABEL_SIZE - 1; column++) {
		const json_t *value = json_object_get(columns, *column);
		size_t left = IMAGE_LABEL_SIZE - length;
		int written = 0;

		if (json_is_string(value))
			written = snprintf(text + length, left, "%s%.40s", length ? " " : "", json_string_value(value));
		else if (json_is_integer(value))
			written = snprintf(text + length, left, "%s%s %" PRId64, length ? " " : "", *column,
			                   (int64_t)json_integer_value(value));
		length += written < (int)left ? (size_t)written : left - 1;
	}
	return text;
}
