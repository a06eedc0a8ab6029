/* dump.c - every row of every table, for verification. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "ledger/schema/schema.h"
#include "ledger/sqlite/internal.h"

enum {
	DUMP_ROW_BYTES_MAX = 64 * 1024 * 1024, /* one row as JSON */
	DUMP_TABLES_MAX = 64,
	DUMP_SQL_SIZE = 512,
};

struct table_names {
	char *list[DUMP_TABLES_MAX];
	size_t count;
};

struct dump_sink {
	int (*row)(void *context, const char *table, const char *json);
	void *context;
};

static void names_done(struct table_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i]);
}

static const char tables_sql[] =
	"SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";

static int read_names(struct db *db, struct table_names *ret, struct err *err)
{
	sqlite3_stmt *statement = NULL;
	int r = db_prepare(db, tables_sql, &statement, err);

	if (r < 0)
		return r;
	while ((r = db_step(db, statement, err)) == 1) {
		if (ret->count == DUMP_TABLES_MAX)
			r = err_set(err, ERR_DAMAGED, "ledger: more than %d tables", DUMP_TABLES_MAX);
		else
			r = db_column_dup(statement, 0, &ret->list[ret->count], err);
		if (r < 0)
			break;
		ret->count++;
	}
	sqlite3_finalize(statement);
	return r;
}

/* A column's type decides how its value reads, so the tables must be ours before a row of theirs means anything. Compared with a
 * ledger that is made in memory, now. */
static int compare_tables(struct db *db, struct db *model, struct err *err)
{
	sqlite3_stmt *expected = NULL, *found = NULL;
	int r = db_prepare(model, tables_sql, &expected, err);

	if (r == 0)
		r = db_prepare(db, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", &found, err);
	while (r == 0 && (r = db_step(model, expected, err)) == 1) {
		sqlite3_reset(found);
		sqlite3_bind_text(found, 1, db_column_text(expected, 0), -1, SQLITE_TRANSIENT);
		r = db_step(db, found, err);
		if (r >= 0 && (r == 0 || strcmp(db_column_text(found, 0), db_column_text(expected, 1)) != 0))
			r = err_set(err, ERR_DAMAGED, "ledger: table %s is not the one that Caisson makes",
			            db_column_text(expected, 0));
		else if (r > 0)
			r = 0;
	}
	sqlite3_finalize(expected);
	sqlite3_finalize(found);
	return r;
}

static int check_tables(struct db *db, int64_t schema, struct err *err)
{
	struct db model = {.handle = NULL};
	int r = 0;

	if (sqlite3_open(":memory:", &model.handle) != SQLITE_OK)
		r = err_set(err, ERR_NO_MEMORY, "out of memory");
	for (int64_t n = 0; r == 0 && n < schema; n++)
		r = db_script(&model, ledger_schema[n], err);
	if (r == 0)
		r = compare_tables(db, &model, err);
	sqlite3_close(model.handle);
	return r;
}

static int dump_row(sqlite3_stmt *statement, const char *table, const struct dump_sink *sink, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(DUMP_ROW_BYTES_MAX);
	JSON_AUTO json_t *row = NULL;
	int r = rows_object(statement, true, &row, err);

	if (r == 0)
		r = json_canonical(row, &text, err);
	return r < 0 ? r : sink->row(sink->context, table, text.data);
}

static int dump_table(struct db *db, const char *table, const struct dump_sink *sink, struct err *err)
{
	char sql[DUMP_SQL_SIZE];
	sqlite3_stmt *statement = NULL;
	int r;

	if (strpbrk(table, "\"\\") || snprintf(sql, sizeof sql, "SELECT * FROM \"%s\" ORDER BY 1", table) >= (int)sizeof sql)
		return err_set(err, ERR_DAMAGED, "ledger: a table with an odd name");
	r = db_prepare(db, sql, &statement, err);
	while (r == 0 && (r = db_step(db, statement, err)) == 1)
		r = dump_row(statement, table, sink, err);
	sqlite3_finalize(statement);
	return r;
}

static int dump_tables(struct db *db, const struct dump_sink *sink, struct err *err)
{
	struct table_names names = {.count = 0};
	int r = read_names(db, &names, err);

	for (size_t i = 0; r == 0 && i < names.count; i++)
		r = dump_table(db, names.list[i], sink, err);
	names_done(&names);
	return r;
}

int ledger_dump(struct ledger *base, int (*row)(void *context, const char *table, const char *json), void *context, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	const struct dump_sink sink = {.row = row, .context = context};
	int r = db_begin_read(&ledger->db, err);

	if (r < 0)
		return r;
	r = check_tables(&ledger->db, ledger->schema, err);
	if (r == 0)
		r = dump_tables(&ledger->db, &sink, err);
	return db_end_read(&ledger->db, r, err);
}
