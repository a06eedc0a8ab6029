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

/* Every table but key and seal, which come after the rows record and are bound by receipt and fingerprint. */
static const struct {
	const char *table;
	enum db_statement rows;
} tables_of_run[] = {
	{"attempt", DB_ROWS_ATTEMPT},
	{"cancellation", DB_ROWS_CANCELLATION},
	{"launch_intent", DB_ROWS_LAUNCH_INTENT},
	{"lease", DB_ROWS_LEASE},
	{"ledger", DB_ROWS_LEDGER},
	{"owner", DB_ROWS_OWNER},
	{"record", DB_ROWS_RECORD},
	{"run", DB_ROWS_RUN},
	{"stream", DB_ROWS_STREAM},
};

static int table_rows(struct sqlite_ledger *ledger, enum db_statement which, const char *run_id, json_t *rows, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *statement = NULL;
	int r = db_start(&ledger->db, which, DB_VALUES(db_text(run_id)), &statement, err);

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

int rows_of_run(struct sqlite_ledger *ledger, const char *run_id, int64_t at_ms, char **ret, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(ROWS_RECORD_BYTES_MAX);
	JSON_AUTO json_t *tables = json_object();
	JSON_AUTO json_t *body = json_pack("{s:I, s:O}", "at", (json_int_t)at_ms, "rows", tables);
	int r = body ? 0 : err_set(err, ERR_NO_MEMORY, "out of memory");

	for (size_t i = 0; r == 0 && i < sizeof tables_of_run / sizeof tables_of_run[0]; i++) {
		json_t *rows = json_array();

		if (json_object_set_new(tables, tables_of_run[i].table, rows) < 0)
			return err_set(err, ERR_NO_MEMORY, "out of memory");
		r = table_rows(ledger, tables_of_run[i].rows, run_id, rows, err);
	}
	if (r == 0)
		r = json_canonical(body, &text, err);
	if (r == 0)
		*ret = buf_take(&text);
	return r;
}
