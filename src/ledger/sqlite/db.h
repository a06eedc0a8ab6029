/* db.h - one SQLite connection: statements made when first used, transactions, and errors as ours. Private to this folder. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

enum {
	DB_BUSY_MS = 10000,
	DB_CLOSE_CHECKPOINT_PAGES = 96, /* a WAL longer than this is written back at close: the next opening reads all of it */
	DB_WAIT_CHECKPOINT_PAGES = 40,  /* where there is time: less than two runs leave, so that a close finds it short */
	DB_COMMIT_CHECKPOINT_PAGES = 1000,
	DB_APPLICATION_ID = 0x43616973, /* "Cais" */
};

/* Every statement that is prepared more than once; its text is in statements.c. */
enum db_statement {
	DB_BEGIN,
	DB_BEGIN_READ,
	DB_COMMIT,
	DB_ROLLBACK,
	DB_SAVEPOINT,
	DB_RELEASE,
	DB_ROLLBACK_TO,
	DB_INSERT_OWNER,
	DB_INSERT_RUN,
	DB_INSERT_ATTEMPT,
	DB_INSERT_LEASE,
	DB_INSERT_RECORD,
	DB_INSERT_STREAM,
	DB_INSERT_ARTIFACT,
	DB_INSERT_INTENT,
	DB_INSERT_CANCELLATION,
	DB_INSERT_KEY,
	DB_INSERT_SEAL,
	DB_INSERT_QUEUE,
	DB_DELETE_QUEUE,
	DB_SET_STATE,
	DB_RENEW,
	DB_FENCE,
	DB_LAST_RECORD,
	DB_LAST_SEAL,
	DB_TAKEN_SLOTS,
	DB_HAS_KEY,
	DB_HAS_INTENT,
	DB_HAS_CANCELLATION,
	DB_RUN_SEALED,
	DB_SUBMITTED,
	DB_QUEUE_LENGTH,
	DB_QUEUE_PLACE,
	DB_QUEUED,
	DB_MAY_ABANDON,
	DB_UNSEALED,
	DB_ATTEMPTS,
	DB_OPEN_RUNS,
	DB_RUN_STATE,
	DB_LIST,
	DB_LIST_OF,
	DB_LIST_BEGINNING,
	DB_LATEST_RUN,
	DB_FIND_RUN,
	DB_RECEIPT,
	DB_MANIFEST,
	DB_STREAM,
	DB_ARTIFACTS,
	DB_REFERENCES,
	DB_RECORDS,
	DB_ROWS_ARTIFACT,
	DB_ROWS_ATTEMPT,
	DB_ROWS_CANCELLATION,
	DB_ROWS_LAUNCH_INTENT,
	DB_ROWS_LEASE,
	DB_ROWS_LEDGER,
	DB_ROWS_OWNER,
	DB_ROWS_RECORD,
	DB_ROWS_RUN,
	DB_ROWS_STREAM,
	DB_STATEMENT_COUNT
};

extern const char *const db_statement_text[DB_STATEMENT_COUNT];

struct db {
	sqlite3 *handle;
	sqlite3_stmt *cache[DB_STATEMENT_COUNT];
	int synchronous; /* as last set; -1: unknown */
	int wal_pages;   /* after the last commit */
	bool batch;      /* transactions are savepoints of one that is under way */
	bool batch_durable;
	int batch_code;  /* why SQLite gave all of it up; 0: it did not */
};

/* A value to bind. Text and bytes are borrowed until the statement is done with. */
struct db_value {
	enum { DB_INT, DB_TEXT, DB_BLOB, DB_DIGEST } type;
	int64_t number;
	const void *bytes; /* NULL: SQL's NULL */
	size_t count;
};

static inline struct db_value db_int(int64_t number)
{
	return (struct db_value){.type = DB_INT, .number = number};
}

static inline struct db_value db_text(const char *text)
{
	return (struct db_value){.type = DB_TEXT, .bytes = text};
}

static inline struct db_value db_blob(const void *bytes, size_t count)
{
	return (struct db_value){.type = DB_BLOB, .bytes = bytes, .count = count};
}

static inline struct db_value db_digest(const struct digest *digest)
{
	return (struct db_value){.type = DB_DIGEST, .bytes = digest};
}

#define DB_VALUES(...) (const struct db_value[]){__VA_ARGS__}, sizeof((const struct db_value[]){__VA_ARGS__}) / sizeof(struct db_value)

/* Puts the fault point ledger.write into SQLite (fault_io.c); nothing in a production build. */
void db_fault_writes(void);

/* Opens the file. read_only: it must exist. */
int db_open(struct db *db, const char *path, bool read_only, struct err *err);
/* Writes a long WAL back, unless read_only. */
void db_trim(struct db *db, bool read_only);
/* Trims it first. */
void db_close(struct db *db, bool read_only);

/* An error of SQLite's result `rc`, named after what was tried. Returns our code. */
int db_error(struct db *db, int rc, struct err *err, const char *what);

/* Runs SQL that is used once and gives no rows. */
int db_script(struct db *db, const char *sql, struct err *err);
/* The first column of the first row of SQL that is used once. */
int db_number(struct db *db, const char *sql, int64_t *ret, struct err *err);
int db_prepare(struct db *db, const char *sql, sqlite3_stmt **ret, struct err *err);

/* A statement with its values bound, ready to step. Reset it (db_done) before anything else uses it. */
/* Prepares a statement ahead of its first use. */
int db_ready(struct db *db, enum db_statement which, struct err *err);
/* Writes back a WAL that the next opening would read for long. Best effort. */
void db_write_back(struct db *db);

int db_start(struct db *db, enum db_statement which, const struct db_value *values, size_t count, sqlite3_stmt **ret, struct err *err);
/* 1: there is a row; 0: no more; or an error. */
int db_step(struct db *db, sqlite3_stmt *statement, struct err *err);
void db_done(sqlite3_stmt **statement);
#define DB_DONE_AUTO __attribute__((cleanup(db_done)))

/* A statement that gives no rows. */
int db_run(struct db *db, enum db_statement which, const struct db_value *values, size_t count, struct err *err);

/* BEGIN IMMEDIATE. durable: the commit survives a power cut. */
int db_begin(struct db *db, bool durable, struct err *err);
/* Commits when `result` is 0, else rolls back. Returns the result of the whole. */
int db_end(struct db *db, int result, struct err *err);

/* One transaction around several, each of which then is a savepoint. */
int db_batch_begin(struct db *db, bool durable, struct err *err);
int db_batch_end(struct db *db, struct err *err);

/* One snapshot for several reads. */
int db_begin_read(struct db *db, struct err *err);
int db_end_read(struct db *db, int result, struct err *err);

/* Columns. Text is never NULL; it is borrowed until the statement moves on. */
const char *db_column_text(sqlite3_stmt *statement, int column);
/* ERR_DAMAGED when it is no digest. */
int db_column_digest(sqlite3_stmt *statement, int column, struct digest *ret, struct err *err);
/* Copies an identifier or another short text, cut to size. */
void db_column_copy(sqlite3_stmt *statement, int column, char *ret, size_t size);
/* A copy with NUL behind it; NULL for SQL's NULL. The caller's (free). */
int db_column_dup(sqlite3_stmt *statement, int column, char **ret, struct err *err);
