/* rows.c - rows as JSON: for the rows record that a seal ends with, and for verification, which compares the two. */
#include <string.h>

#include "base/json.h"
#include "ledger/sqlite/internal.h"

enum {
	ROWS_TEXT_MAX = 128, /* a longer text goes into the rows record as its digest */
	ROWS_RECORD_BYTES_MAX = 4 * 1024 * 1024,
};

static json_t *digest_of_bytes(const void *bytes, size_t count)
{
	char text[DIGEST_TEXT_SIZE];
	struct digest digest;

	digest_of(count > 0 ? bytes : "", count, &digest);
	return json_string(digest_text(&digest, text));
}

/* An object, so that it is equal to no text, whatever the text says. */
static json_t *digest_as(const char *key, const void *bytes, size_t count)
{
	char text[DIGEST_HEX_SIZE];
	struct digest digest;

	digest_of(count > 0 ? bytes : "", count, &digest);
	return json_pack("{s:s}", key, digest_hex(&digest, text));
}

static json_t *text_value(const char *text, size_t count, bool with_text)
{
	json_t *value = NULL;

	if (!with_text && count > ROWS_TEXT_MAX)
		return digest_as("sha256", text, count);
	if (!memchr(text, '\0', count))
		value = json_stringn(text, count);
	/* What we wrote is UTF-8 without NUL; what somebody else has put there must still have a shape that differs. */
	return value ? value : digest_as("no_text", text, count);
}

static json_t *column_value(sqlite3_stmt *statement, int column, bool with_text)
{
	size_t count;

	switch (sqlite3_column_type(statement, column)) {
	case SQLITE_NULL:
		return json_null();
	case SQLITE_INTEGER:
		return json_integer(sqlite3_column_int64(statement, column));
	case SQLITE_BLOB:
		count = (size_t)sqlite3_column_bytes(statement, column);
		return digest_of_bytes(sqlite3_column_blob(statement, column), count);
	default: {
		const char *text = db_column_text(statement, column);
		return text_value(text, (size_t)sqlite3_column_bytes(statement, column), with_text);
	}
	}
}

int rows_object(sqlite3_stmt *statement, bool with_text, json_t **ret, struct err *err)
{
	JSON_AUTO json_t *row = json_object();

	for (int column = 0; column < sqlite3_column_count(statement); column++)
		if (json_object_set_new(row, sqlite3_column_name(statement, column),
		                        column_value(statement, column, with_text)) < 0)
			return err_set(err, ERR_NO_MEMORY, "out of memory");
	*ret = json_incref(row);
	return 0;
}

/* Appends the rows that the statement finds by this id. */
static int add_rows(struct sqlite_ledger *ledger, json_t *rows, enum db_statement which, const char *id, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *statement = NULL;
	int r = db_start(&ledger->db, which, DB_VALUES(db_text(id)), &statement, err);

	if (r < 0)
		return r;
	while ((r = db_step(&ledger->db, statement, err)) == 1) {
		json_t *row = NULL;

		r = rows_object(statement, false, &row, err);
		if (r < 0)
			return r;
		if (json_array_append_new(rows, row) < 0)
			return err_set(err, ERR_NO_MEMORY, "out of memory");
	}
	return r;
}

static const char *text_of(const json_t *rows, size_t index, const char *column)
{
	const char *text = json_string_value(json_object_get(json_array_get(rows, index), column));

	return text ? text : "";
}

static bool has_owner(const json_t *owners, const char *owner_id)
{
	for (size_t i = 0; i < json_array_size(owners); i++)
		if (strcmp(text_of(owners, i, "owner_id"), owner_id) == 0)
			return true;
	return false;
}

/* The array of a table's rows, made at its first use; borrowed. */
static json_t *array_of(json_t *tables, const char *table)
{
	if (!json_object_get(tables, table))
		json_object_set_new(tables, table, json_array());
	return json_object_get(tables, table);
}

static int add_attempt(struct sqlite_ledger *ledger, json_t *tables, const char *attempt_id, struct err *err)
{
	json_t *leases = array_of(tables, "lease"), *owners = array_of(tables, "owner");
	size_t first = json_array_size(leases);
	int r = add_rows(ledger, leases, DB_ROWS_LEASE, attempt_id, err);

	for (size_t i = first; r == 0 && i < json_array_size(leases); i++)
		if (!has_owner(owners, text_of(leases, i, "owner_id")))
			r = add_rows(ledger, owners, DB_ROWS_OWNER, text_of(leases, i, "owner_id"), err);
	if (r == 0)
		r = add_rows(ledger, array_of(tables, "record"), DB_ROWS_RECORD, attempt_id, err);
	if (r == 0)
		r = add_rows(ledger, array_of(tables, "stream"), DB_ROWS_STREAM, attempt_id, err);
	if (r == 0)
		r = add_rows(ledger, array_of(tables, "artifact"), DB_ROWS_ARTIFACT, attempt_id, err);
	return r;
}

/* Every table but key and seal, which come after the rows record and are bound by receipt and fingerprint. */
static int add_run(struct sqlite_ledger *ledger, json_t *tables, const char *run_id, struct err *err)
{
	json_t *attempts = array_of(tables, "attempt");
	int r = add_rows(ledger, attempts, DB_ROWS_ATTEMPT, run_id, err);

	for (size_t i = 0; r == 0 && i < json_array_size(attempts); i++)
		r = add_attempt(ledger, tables, text_of(attempts, i, "attempt_id"), err);
	if (r == 0)
		r = add_rows(ledger, array_of(tables, "run"), DB_ROWS_RUN, run_id, err);
	if (r == 0)
		r = add_rows(ledger, array_of(tables, "launch_intent"), DB_ROWS_LAUNCH_INTENT, run_id, err);
	if (r == 0)
		r = add_rows(ledger, array_of(tables, "cancellation"), DB_ROWS_CANCELLATION, run_id, err);
	if (r == 0)
		r = add_rows(ledger, array_of(tables, "ledger"), DB_ROWS_LEDGER, ledger->ledger_id, err);
	return r;
}

int rows_of_run(struct sqlite_ledger *ledger, const char *run_id, int64_t at_ms, char **ret, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(ROWS_RECORD_BYTES_MAX);
	JSON_AUTO json_t *tables = json_object();
	JSON_AUTO json_t *body = json_pack("{s:I, s:O}", "at", (json_int_t)at_ms, "rows", tables);
	int r = body ? add_run(ledger, tables, run_id, err) : err_set(err, ERR_NO_MEMORY, "out of memory");

	if (r == 0)
		r = json_canonical(body, &text, err);
	if (r == 0)
		*ret = buf_take(&text);
	return r;
}
