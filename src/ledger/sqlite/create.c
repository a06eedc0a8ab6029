/* create.c - an empty file becomes a ledger, an older one is brought up to date, a copied one is refused.
 *
 * One process at a time does this, under an flock on the directory itself; the rest wait, and find it done. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "ledger/schema/schema.h"
#include "ledger/sqlite/internal.h"

enum {
	IDENTITY_SIZE = 128,
	PRAGMA_SIZE = 64,
};

static const char identity_name[] = "identity";

/* What the file is: inode and time of birth, which no copy has in common with it. The device number is left out: it may change with
 * every boot. A file system that knows no time of birth says 0. */
static int describe(const struct sqlite_ledger *ledger, char ret[static IDENTITY_SIZE], struct err *err)
{
	struct statx stx;

	if (statx(ledger->dir, "ledger.db", AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &stx) < 0)
		return err_sys(err, errno, "ledger: cannot look at ledger.db");
	snprintf(ret, IDENTITY_SIZE, "caisson.identity/v1 %s %llu %lld.%09u", ledger->ledger_id, (unsigned long long)stx.stx_ino,
	         (stx.stx_mask & STATX_BTIME) ? (long long)stx.stx_btime.tv_sec : 0LL,
	         (stx.stx_mask & STATX_BTIME) ? stx.stx_btime.tv_nsec : 0U);
	return 0;
}

/* Whole or not at all, and durable before the first row of this ledger is. */
static int write_identity(const struct sqlite_ledger *ledger, struct err *err)
{
	static const char temporary[] = "identity.new";
	FD_AUTO int fd = -1;
	char text[IDENTITY_SIZE];
	int r = describe(ledger, text, err);

	if (r < 0)
		return r;
	fd = fd_open_beneath(ledger->dir, temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return err_sys(err, -fd, "ledger: cannot make %s", temporary);
	r = fd_write_all(fd, text, strlen(text));
	if (r < 0)
		return err_sys(err, -r, "ledger: cannot write %s", temporary);
	if (fsync(fd) < 0 || renameat(ledger->dir, temporary, ledger->dir, identity_name) < 0 || fsync(ledger->dir) < 0)
		return err_sys(err, errno, "ledger: cannot write %s", identity_name);
	return 0;
}

static int check_identity(const struct sqlite_ledger *ledger, struct err *err)
{
	char expected[IDENTITY_SIZE], found[IDENTITY_SIZE];
	ssize_t length;
	int r = describe(ledger, expected, err);

	if (r < 0)
		return r;
	length = fd_read_text(ledger->dir, identity_name, found, sizeof found);
	if (length < 0 && length != -ENOENT)
		return err_sys(err, (int)-length, "ledger: cannot read %s", identity_name);
	if (length >= 0 && strcmp(found, expected) == 0)
		return 0;
	return err_set(err, ERR_FOREIGN, "ledger was copied: %s says \"%s\", but ledger.db is \"%s\" (a copy can be verified, not "
	               "written)", identity_name, length < 0 ? "" : found, expected);
}

static int load_genesis(struct sqlite_ledger *ledger, struct err *err)
{
	sqlite3_stmt *statement = NULL;
	int r = db_prepare(&ledger->db, "SELECT ledger_id, created_at FROM ledger", &statement, err);

	if (r < 0)
		return r;
	r = db_step(&ledger->db, statement, err);
	if (r == 1) {
		db_column_copy(statement, 0, ledger->ledger_id, sizeof ledger->ledger_id);
		ledger->created_at_ms = sqlite3_column_int64(statement, 1);
	}
	sqlite3_finalize(statement);
	if (r == 0 && !ledger->options.read_only) /* verification has to see what is left */
		return err_set(err, ERR_DAMAGED, "ledger: it has no genesis");
	return r < 0 ? r : 0;
}

/* Within the transaction of the first migration. */
static int write_genesis(struct sqlite_ledger *ledger, struct err *err)
{
	sqlite3_stmt *statement = NULL;
	int r = db_prepare(&ledger->db, "INSERT INTO ledger VALUES (?, ?)", &statement, err);

	if (r < 0)
		return r;
	id_new("led", ledger->ledger_id);
	sqlite3_bind_text(statement, 1, ledger->ledger_id, -1, SQLITE_STATIC);
	sqlite3_bind_int64(statement, 2, clock_wall_ms());
	r = db_step(&ledger->db, statement, err);
	sqlite3_finalize(statement);
	return r < 0 ? r : write_identity(ledger, err);
}

/* All of it in one transaction, the version with it. The identity of an older one is checked before: a copy is not changed. */
static int migrate(struct sqlite_ledger *ledger, struct err *err)
{
	char pragma[PRAGMA_SIZE];
	int r = ledger->schema > 0 ? check_identity(ledger, err) : 0;

	if (r == 0)
		r = db_begin(&ledger->db, true, err);
	if (r < 0)
		return r;
	for (int64_t n = ledger->schema; r == 0 && n < ledger_schema_version; n++) {
		r = db_script(&ledger->db, ledger_schema[n], err);
		if (r == 0)
			r = FAULT_ERR("ledger.migrating", err);
	}
	if (r == 0 && ledger->schema == 0)
		r = write_genesis(ledger, err);
	snprintf(pragma, sizeof pragma, "PRAGMA user_version = %d; PRAGMA application_id = %d", ledger_schema_version,
	         DB_APPLICATION_ID);
	if (r == 0)
		r = db_script(&ledger->db, pragma, err);
	return db_end(&ledger->db, r, err);
}

/* The version of the ledger; 0 for a file that is still empty. Within a transaction, or a creator comes between two answers. */
static int read_version(struct db *db, int64_t *ret, struct err *err)
{
	int64_t application = 0, version = 0, tables = 0;
	int r = db_number(db, "PRAGMA user_version", &version, err);

	if (r == 0)
		r = db_number(db, "PRAGMA application_id", &application, err);
	if (r == 0 && application != DB_APPLICATION_ID)
		r = db_number(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
	if (r < 0)
		return r;
	if (application != DB_APPLICATION_ID && (application != 0 || version != 0 || tables != 0))
		return err_set(err, ERR_FOREIGN, "ledger: ledger.db is another program's database");
	if (version > ledger_schema_version)
		return err_set(err, ERR_TOO_NEW, "ledger: written by a newer Caisson (schema %" PRId64 ", this one knows %d)",
		               version, ledger_schema_version);
	*ret = version;
	return 0;
}

/* The busy handler is not asked at the switch to WAL; but whoever looks at an empty file meanwhile is done in no time. */
static int switch_to_wal(struct db *db, struct err *err)
{
	int64_t deadline_ns = clock_mono_ns() + DB_BUSY_MS * NS_PER_MS;
	int r;

	do {
		r = db_script(db, "PRAGMA journal_mode = WAL", err);
		if (r == ERR_BUSY)
			usleep(1000);
	} while (r == ERR_BUSY && clock_mono_ns() < deadline_ns);
	return r;
}

/* Its version, and unless it is empty its id. */
static int inspect(struct sqlite_ledger *ledger, struct err *err)
{
	int r = db_begin_read(&ledger->db, err);

	if (r < 0)
		return r;
	r = read_version(&ledger->db, &ledger->schema, err);
	if (r == 0 && ledger->schema > 0)
		r = load_genesis(ledger, err);
	return db_end_read(&ledger->db, r, err);
}

static int create_or_migrate(struct sqlite_ledger *ledger, struct err *err)
{
	FD_AUTO int lock = openat(ledger->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (lock < 0)
		return err_sys(err, errno, "ledger: cannot lock the directory");
	while (flock(lock, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(err, errno, "ledger: cannot lock the directory");
	r = inspect(ledger, err);
	if (r < 0 || ledger->schema == ledger_schema_version)
		return r;
	if (ledger->schema == 0)
		r = switch_to_wal(&ledger->db, err);
	if (r == 0)
		r = migrate(ledger, err);
	return r < 0 ? r : inspect(ledger, err);
}

int ledger_prepare(struct sqlite_ledger *ledger, struct err *err)
{
	int r = inspect(ledger, err);

	if (r < 0)
		return r;
	if (ledger->options.read_only)
		return ledger->schema > 0 ? 0 : err_set(err, ERR_NOT_FOUND, "ledger: not made yet");
	if (ledger->schema < ledger_schema_version)
		r = create_or_migrate(ledger, err);
	return r < 0 ? r : check_identity(ledger, err);
}
