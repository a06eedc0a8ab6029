/* db.c - one SQLite connection: statements made when first used, transactions, and errors as ours. */
#include "ledger/sqlite/db.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

enum { TRIM_SQL_SIZE = 96 };

static int code_of(int rc, int system_errno)
{
	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		return ERR_NO_MEMORY;
	case SQLITE_FULL:
		return ERR_NO_SPACE;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return ERR_BUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return ERR_DAMAGED;
	case SQLITE_CONSTRAINT:
		return ERR_CONFLICT;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return ERR_PERMISSION;
	case SQLITE_TOOBIG:
		return ERR_LIMIT;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		if (system_errno == ENOSPC || system_errno == EDQUOT)
			return ERR_NO_SPACE;
		return system_errno == EACCES || system_errno == EROFS || system_errno == EPERM ? ERR_PERMISSION : ERR_IO;
	default:
		return ERR_INTERNAL;
	}
}

int db_error(struct db *db, int rc, struct err *err, const char *what)
{
	const char *text = db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(rc);

	return err_set(err, code_of(rc, db->handle ? sqlite3_system_errno(db->handle) : 0), "ledger: %s: %s", what, text);
}

static int count_wal_pages(void *context, sqlite3 *handle, const char *name, int pages)
{
	struct db *db = context;

	(void)name;
	db->wal_pages = pages;
	if (pages >= DB_COMMIT_CHECKPOINT_PAGES)
		sqlite3_wal_checkpoint_v2(handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	return SQLITE_OK;
}

int db_open(struct db *db, const char *path, bool read_only, struct err *err)
{
	int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, on = 1;
	int rc;

	*db = (struct db){.synchronous = -1};
	db_fault_writes();
	rc = sqlite3_open_v2(path, &db->handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE, NULL);
	if (rc != SQLITE_OK) {
		int r = db_error(db, rc, err, "cannot open");
		sqlite3_close(db->handle);
		db->handle = NULL;
		return r;
	}
	sqlite3_busy_timeout(db->handle, DB_BUSY_MS);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	/* Closing writes nothing back and keeps the WAL: that is done when it pays, by db_close. */
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
	sqlite3_wal_hook(db->handle, count_wal_pages, db);
	return 0;
}

/* Writes the WAL back and begins it anew. That it was written back is known only to the shared memory, which the next process makes
 * anew, from all of the WAL; so one more commit is made, of nothing, which begins at the WAL's start and leaves the rest behind it
 * invalid. The file keeps its size: a commit that needs no new blocks is synced faster. Best effort: nothing depends on it. */
static void trim_wal(struct db *db)
{
	char again[TRIM_SQL_SIZE];

	snprintf(again, sizeof again, "PRAGMA synchronous = NORMAL; PRAGMA application_id = %d", DB_APPLICATION_ID);
	sqlite3_busy_timeout(db->handle, 0);
	if (sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) == SQLITE_OK)
		sqlite3_exec(db->handle, again, NULL, NULL, NULL);
}

void db_trim(struct db *db, bool read_only)
{
	if (db->handle && !read_only && db->wal_pages > DB_CLOSE_CHECKPOINT_PAGES)
		trim_wal(db);
}

void db_close(struct db *db, bool read_only)
{
	for (size_t i = 0; i < DB_STATEMENT_COUNT; i++)
		sqlite3_finalize(db->cache[i]);
	db_trim(db, read_only);
	sqlite3_close(db->handle);
	*db = (struct db){.handle = NULL};
}

int db_script(struct db *db, const char *sql, struct err *err)
{
	int rc = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : db_error(db, rc, err, "cannot change");
}

int db_prepare(struct db *db, const char *sql, sqlite3_stmt **ret, struct err *err)
{
	int rc = sqlite3_prepare_v2(db->handle, sql, -1, ret, NULL);

	return rc == SQLITE_OK ? 0 : db_error(db, rc, err, "cannot read");
}

int db_number(struct db *db, const char *sql, int64_t *ret, struct err *err)
{
	sqlite3_stmt *statement = NULL;
	int r = db_prepare(db, sql, &statement, err);

	if (r < 0)
		return r;
	r = db_step(db, statement, err);
	if (r == 1)
		*ret = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	if (r == 0)
		return err_set(err, ERR_DAMAGED, "ledger: no answer to %s", sql);
	return r < 0 ? r : 0;
}

static int bind(sqlite3_stmt *statement, int index, const struct db_value *value)
{
	char text[DIGEST_TEXT_SIZE];

	switch (value->type) {
	case DB_INT:
		return sqlite3_bind_int64(statement, index, value->number);
	case DB_TEXT:
		return sqlite3_bind_text(statement, index, value->bytes, -1, SQLITE_STATIC);
	case DB_BLOB:
		return sqlite3_bind_blob64(statement, index, value->bytes, value->count, SQLITE_STATIC);
	case DB_DIGEST:
		return sqlite3_bind_text(statement, index, digest_text(value->bytes, text), -1, SQLITE_TRANSIENT);
	}
	return SQLITE_MISUSE;
}

int db_ready(struct db *db, enum db_statement which, struct err *err)
{
	sqlite3_stmt **cached = &db->cache[which];

	if (*cached)
		return 0;
	int rc = sqlite3_prepare_v3(db->handle, db_statement_text[which], -1, SQLITE_PREPARE_PERSISTENT, cached, NULL);
	return rc == SQLITE_OK ? 0 : db_error(db, rc, err, "cannot prepare");
}

/* The next commit begins the WAL anew: nothing more is needed than that everything in it is in the database. */
void db_write_back(struct db *db)
{
	if (db->wal_pages > DB_WAIT_CHECKPOINT_PAGES)
		sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

int db_start(struct db *db, enum db_statement which, const struct db_value *values, size_t count, sqlite3_stmt **ret,
             struct err *err)
{
	sqlite3_stmt **cached = &db->cache[which];
	int r = db_ready(db, which, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		int rc = bind(*cached, (int)i + 1, &values[i]);
		if (rc != SQLITE_OK)
			return db_error(db, rc, err, "cannot bind");
	}
	*ret = *cached;
	return 0;
}

int db_step(struct db *db, sqlite3_stmt *statement, struct err *err)
{
	int rc = sqlite3_step(statement);

	if (rc == SQLITE_ROW)
		return 1;
	return rc == SQLITE_DONE ? 0 : db_error(db, rc, err, "refused");
}

void db_done(sqlite3_stmt **statement)
{
	if (!*statement)
		return;
	sqlite3_reset(*statement);
	sqlite3_clear_bindings(*statement);
	*statement = NULL;
}

int db_run(struct db *db, enum db_statement which, const struct db_value *values, size_t count, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *statement = NULL;
	int r = db_start(db, which, values, count, &statement, err);

	if (r == 0)
		r = db_step(db, statement, err);
	return r < 0 ? r : 0;
}

/* Cannot change inside a transaction; costs a parse, so only when it does change. */
static int set_synchronous(struct db *db, bool durable, struct err *err)
{
	int wanted = durable ? 2 : 1;
	int r;

	if (db->synchronous == wanted)
		return 0;
	r = db_script(db, durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", err);
	if (r == 0)
		db->synchronous = wanted;
	return r;
}

static int begin(struct db *db, bool durable, struct err *err)
{
	int r = set_synchronous(db, durable, err);

	return r < 0 ? r : db_run(db, DB_BEGIN, NULL, 0, err);
}

static int batch_lost(const struct db *db, struct err *err)
{
	return err_set(err, db->batch_code, "ledger: the transactions of a batch failed together");
}

static int begin_in_batch(struct db *db, bool durable, struct err *err)
{
	if (db->batch_code < 0)
		return batch_lost(db, err);
	if (durable && !db->batch_durable)
		return err_set(err, ERR_STATE, "ledger: a durable transaction in a batch that is not");
	return db_run(db, DB_SAVEPOINT, NULL, 0, err);
}

int db_begin(struct db *db, bool durable, struct err *err)
{
	return db->batch ? begin_in_batch(db, durable, err) : begin(db, durable, err);
}

static int end_in_batch(struct db *db, int result, struct err *err)
{
	if (result == 0)
		result = db_run(db, DB_RELEASE, NULL, 0, err);
	if (result == 0)
		return 0;
	/* On a full disk for instance SQLite has rolled all of it back, by itself. */
	if (sqlite3_get_autocommit(db->handle) || db_run(db, DB_ROLLBACK_TO, NULL, 0, NULL) < 0 ||
	    db_run(db, DB_RELEASE, NULL, 0, NULL) < 0)
		db->batch_code = result;
	return result;
}

static int end(struct db *db, int result, struct err *err)
{
	if (result == 0)
		result = FAULT_ERR("ledger_commit", err);
	if (result == 0)
		result = db_run(db, DB_COMMIT, NULL, 0, err);
	/* SQLite itself may have rolled back, on a full disk for instance. */
	if (result < 0 && !sqlite3_get_autocommit(db->handle))
		(void)db_run(db, DB_ROLLBACK, NULL, 0, NULL);
	if (result == 0)
		(void)FAULT("ledger_committed");
	return result;
}

int db_end(struct db *db, int result, struct err *err)
{
	return db->batch ? end_in_batch(db, result, err) : end(db, result, err);
}

int db_batch_begin(struct db *db, bool durable, struct err *err)
{
	int r = db->batch ? err_set(err, ERR_STATE, "ledger: a batch within a batch") : begin(db, durable, err);

	if (r < 0)
		return r;
	db->batch = true;
	db->batch_durable = durable;
	db->batch_code = 0;
	return 0;
}

int db_batch_end(struct db *db, struct err *err)
{
	if (!db->batch)
		return err_set(err, ERR_STATE, "ledger: no batch to end");
	db->batch = false;
	return end(db, db->batch_code < 0 ? batch_lost(db, err) : 0, err);
}

int db_begin_read(struct db *db, struct err *err)
{
	return db_run(db, DB_BEGIN_READ, NULL, 0, err);
}

int db_end_read(struct db *db, int result, struct err *err)
{
	int r = db_run(db, DB_COMMIT, NULL, 0, result < 0 ? NULL : err);

	return result < 0 ? result : r;
}

const char *db_column_text(sqlite3_stmt *statement, int column)
{
	const unsigned char *text = sqlite3_column_text(statement, column);

	return text ? (const char *)text : "";
}

int db_column_digest(sqlite3_stmt *statement, int column, struct digest *ret, struct err *err)
{
	if (digest_parse(db_column_text(statement, column), ret, NULL) < 0)
		return err_set(err, ERR_DAMAGED, "ledger: %s is no digest", sqlite3_column_name(statement, column));
	return 0;
}

void db_column_copy(sqlite3_stmt *statement, int column, char *ret, size_t size)
{
	const char *text = db_column_text(statement, column);
	size_t length = strnlen(text, size - 1);

	memcpy(ret, text, length);
	ret[length] = '\0';
}

int db_column_dup(sqlite3_stmt *statement, int column, char **ret, struct err *err)
{
	const void *bytes = sqlite3_column_blob(statement, column);
	size_t count = (size_t)sqlite3_column_bytes(statement, column);
	char *copy;

	if (sqlite3_column_type(statement, column) == SQLITE_NULL) {
		*ret = NULL;
		return 0;
	}
	copy = malloc(count + 1);
	if (!copy)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	if (count > 0)
		memcpy(copy, bytes, count);
	copy[count] = '\0';
	*ret = copy;
	return 0;
}
