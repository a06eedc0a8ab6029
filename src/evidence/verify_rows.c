/* verify_rows.c - compares every row with what its run's seal says of it, column by column. */
#include <stdlib.h>
#include <string.h>

#include "evidence/verify_internal.h"

enum { FIRST_CAPACITY = 16, VALUE_SIZE = 80 };

static int add_absent(struct verifier *verifier, const struct absent *absent, struct err *err)
{
	if (verifier->absent_count == verifier->absent_capacity) {
		size_t capacity = verifier->absent_capacity ? 2 * verifier->absent_capacity : FIRST_CAPACITY;
		struct absent *list = realloc(verifier->absent, capacity * sizeof *list);

		if (!list)
			return err_set(err, ERR_NO_MEMORY, "out of memory");
		verifier->absent = list;
		verifier->absent_capacity = capacity;
	}
	verifier->absent[verifier->absent_count++] = *absent;
	return 0;
}

static int cover_row(struct verifier *verifier, const struct absent *wanted, struct err *err)
{
	struct image_row *found;
	struct digest digest;
	int r = image_digest(wanted->table, wanted->columns, &digest, err);

	if (r < 0)
		return r;
	found = image_with_digest(&verifier->image, &digest);
	if (!found)
		return add_absent(verifier, wanted, err);
	found->covered = true;
	return 0;
}

static int cover_run(struct verifier *verifier, struct sealed *sealed, struct err *err)
{
	const char *table;
	json_t *rows;
	int r = 0;

	json_object_foreach (json_object_get(sealed->rows, "rows"), table, rows)
		for (size_t i = 0; r == 0 && i < json_array_size(rows); i++) {
			const struct absent wanted = {.sealed = sealed, .table = table, .columns = json_array_get(rows, i)};
			r = cover_row(verifier, &wanted, err);
		}
	return r;
}

static size_t count_differing(const json_t *sealed, const json_t *found)
{
	const char *column;
	json_t *value;
	size_t count = 0;

	json_object_foreach ((json_t *)sealed, column, value)
		if (!image_column_equal(value, json_object_get(found, column)))
			count++;
	return count;
}

/* The row that this one has probably become: of those under no seal the most alike, if it is alike in half of its columns. */
static struct image_row *find_changed(const struct verifier *verifier, const struct absent *absent)
{
	struct image_range rows = image_find(&verifier->image, absent->table, NULL);
	size_t least = json_object_size(absent->columns) / 2 + 1;
	struct image_row *found = NULL;

	for (size_t i = 0; i < rows.count; i++) {
		struct image_row *row = &rows.first[i];
		size_t differing;

		if (row->covered || row->unsealed)
			continue;
		differing = count_differing(absent->columns, row->json);
		if (differing < least) {
			least = differing;
			found = row;
		}
	}
	return found;
}

static const char *shown(const json_t *value, char text[static VALUE_SIZE])
{
	BUF_AUTO struct buf canonical = BUF_INIT(4 * VERIFY_TEXT_MAX);
	size_t length;

	if (!value || json_canonical(value, &canonical, NULL) < 0 || canonical.len >= VALUE_SIZE)
		return value ? "a long text" : "nothing";
	length = canonical.len;
	memcpy(text, canonical.data, length + 1);
	return text;
}

static void mark_differing(struct verifier *verifier, const struct absent *absent)
{
	if (strcmp(absent->table, "record") == 0)
		absent->sealed->records_differ = true;
	if (strcmp(absent->table, "stream") == 0)
		absent->sealed->streams_differ = true;
	if (strcmp(absent->table, "artifact") == 0)
		absent->sealed->artifacts_differ = true;
	if (strcmp(absent->table, "run") == 0)
		absent->sealed->run_differs = true;
	if (strcmp(absent->table, "ledger") == 0)
		verifier->ledger_differs = true;
}

static void report_absent(struct verifier *verifier, const struct absent *absent)
{
	struct image_row *found = find_changed(verifier, absent);
	char label[IMAGE_LABEL_SIZE], now[VALUE_SIZE], then[VALUE_SIZE];
	const char *column;
	json_t *value;

	mark_differing(verifier, absent);
	image_label(absent->columns, label);
	if (!found) {
		verify_problem(verifier, absent->sealed->run, "%s: the row of %s is missing", absent->table, label);
		return;
	}
	found->paired = true;
	json_object_foreach (absent->columns, column, value) {
		const json_t *is = json_object_get(found->json, column);

		if (!image_column_equal(value, is))
			verify_problem(verifier, absent->sealed->run, "%s.%s: of %s is %s, but was sealed as %s", absent->table,
			               column, label, shown(is, now), shown(value, then));
	}
	json_object_foreach (found->json, column, value) /* columns that did not exist when it was sealed */
		if (!json_object_get(absent->columns, column) && !json_is_null(value))
			verify_problem(verifier, absent->sealed->run, "%s.%s: of %s is %s, but was sealed without it", absent->table,
			               column, label, shown(value, now));
}

int verify_cover_rows(struct verifier *verifier, struct err *err)
{
	for (size_t i = 0; i < verifier->seal_count; i++) {
		struct sealed *sealed = &verifier->seals[i];
		int r;

		verify_find_rows(verifier, sealed);
		r = cover_run(verifier, sealed, err);
		if (r < 0)
			return r;
	}
	/* Only now is it known which rows no seal wants as they are. */
	for (size_t i = 0; i < verifier->absent_count; i++)
		report_absent(verifier, &verifier->absent[i]);
	return 0;
}

/* Which run would it be of? */
static const char *run_of(const struct verifier *verifier, const struct image_row *row)
{
	const char *run = image_text(row, "run_id"), *attempt = image_text(row, "attempt_id");
	struct image_range attempts;

	if (run || !attempt)
		return run;
	attempts = image_find(&verifier->image, "attempt", attempt);
	return attempts.count > 0 ? image_text(attempts.first, "run_id") : NULL;
}

/* When a run's rows record is not found, its rows are covered by nothing, but that has been said. */
static bool is_of_run_without_rows(const struct verifier *verifier, const struct image_row *row)
{
	const char *run = run_of(verifier, row), *attempt = image_text(row, "attempt_id"), *owner = image_text(row, "owner_id");

	for (size_t i = 0; i < verifier->seal_count; i++) {
		const struct sealed *sealed = &verifier->seals[i];

		if (sealed->rows)
			continue;
		if ((run && strcmp(run, sealed->run) == 0) || (attempt && strcmp(attempt, sealed->attempt) == 0) || owner)
			return true;
	}
	return false;
}

void verify_check_strays(struct verifier *verifier)
{
	for (size_t i = 0; i < verifier->image.count; i++) {
		const struct image_row *row = &verifier->image.rows[i];
		char label[IMAGE_LABEL_SIZE];

		if (row->covered || row->paired || row->unsealed || is_of_run_without_rows(verifier, row))
			continue;
		verify_problem(verifier, run_of(verifier, row), "%s: the row of %s is under no seal", row->table,
		               image_label(row->json, label));
	}
}
