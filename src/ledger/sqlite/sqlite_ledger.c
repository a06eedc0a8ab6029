/* sqlite_ledger.c - a ledger in SQLite: the vtable, opening and closing. */
#include "ledger/sqlite/sqlite_ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "ledger/sqlite/internal.h"
#include "ledger/sqlite/owner.h"

enum { PROC_PATH_SIZE = 40 /* "/proc/self/fd/" and a number */ };

static const char *ledger_id(struct ledger *ledger)
{
	return sqlite_ledger_of(ledger)->ledger_id;
}

void sqlite_ledger_single_thread(void)
{
	sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/* What an intent and a seal use, in that order. */
static void ledger_warm(struct ledger *base)
{
	static const enum db_statement coming[] = {
		DB_FENCE, DB_HAS_INTENT, DB_HAS_CANCELLATION, DB_INSERT_INTENT, DB_SET_STATE, DB_INSERT_RECORD, DB_LAST_RECORD, DB_INSERT_STREAM,
		DB_ROWS_LEDGER, DB_ROWS_OWNER, DB_ROWS_RUN, DB_ROWS_ATTEMPT, DB_ROWS_LEASE, DB_ROWS_LAUNCH_INTENT, DB_ROWS_CANCELLATION,
		DB_ROWS_STREAM, DB_ROWS_ARTIFACT, DB_LAST_SEAL, DB_HAS_KEY, DB_INSERT_SEAL,
	};
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);

	for (size_t i = 0; i < sizeof coming / sizeof coming[0]; i++)
		if (db_ready(&ledger->db, coming[i], NULL) < 0)
			return;
	db_write_back(&ledger->db);
}

static int ledger_batch_begin(struct ledger *base, bool durable, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);

	ledger->owner_recorded_before = ledger->owner_recorded;
	return db_batch_begin(&ledger->db, durable, err);
}

static int ledger_batch_end(struct ledger *base, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	int r = db_batch_end(&ledger->db, err);

	if (r < 0)
		ledger->owner_recorded = ledger->owner_recorded_before;
	return r;
}

static void ledger_watch(struct ledger *base, void (*touched)(void *context, const char *run_id), void *context)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);

	ledger->touched = touched;
	ledger->touched_context = context;
}

static void ledger_close(struct ledger *base)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);

	if (!ledger || getpid() != ledger->pid)
		return;
	db_close(&ledger->db, ledger->options.read_only);
	owner_release(ledger->dir, ledger->owner.owner_id, &ledger->owner_fd);
	free(ledger);
}

static void ledger_leave(struct ledger *base)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);

	db_trim(&ledger->db, ledger->options.read_only);
	owner_release(ledger->dir, ledger->owner.owner_id, &ledger->owner_fd);
}

static const struct ledger_ops ops = {
	.id = ledger_id,
	.register_owner = ledger_register_owner,
	.accept = ledger_accept,
	.submit = ledger_submit,
	.claim = ledger_claim,
	.abandon = ledger_abandon,
	.queued = ledger_queued,
	.append = ledger_append,
	.commit_launch_intent = ledger_commit_launch_intent,
	.request_cancel = ledger_request_cancel,
	.cancel_requested = ledger_cancel_requested,
	.renew = ledger_renew,
	.take_over = ledger_take_over,
	.expire = ledger_expire,
	.seal = ledger_seal,
	.dump = ledger_dump,
	.unsealed = ledger_unsealed,
	.attempts = ledger_attempts,
	.open_runs = ledger_open_runs,
	.run_state = ledger_run_state,
	.list = ledger_list,
	.find_run = ledger_find_run,
	.receipt = ledger_receipt,
	.manifest = ledger_manifest,
	.stream = ledger_stream,
	.artifacts = ledger_artifacts,
	.references = ledger_references,
	.records = ledger_records,
	.warm = ledger_warm,
	.batch_begin = ledger_batch_begin,
	.batch_end = ledger_batch_end,
	.watch = ledger_watch,
	.leave = ledger_leave,
	.close = ledger_close,
};

/* SQLite opens by path, and names its -wal and -shm by it; we checked a descriptor. So: the path that the descriptor has now,
 * without any link in it. Nobody but us can change what is in the directory. */
static int database_path(int dir, char ret[static PATH_MAX], struct err *err)
{
	static const char name[] = "/ledger.db";
	char link[PROC_PATH_SIZE];
	ssize_t length;

	snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
	length = readlink(link, ret, PATH_MAX - sizeof name);
	if (length < 0)
		return err_sys(err, errno, "ledger: cannot find the directory's path");
	if (length == PATH_MAX - sizeof name)
		return err_set(err, ERR_LIMIT, "ledger: the directory's path is too long");
	snprintf(ret + length, sizeof name, "%s", name);
	return 0;
}

/* SQLite would make the file readable for all, as far as the umask allows; its -wal and -shm take after it. */
static int make_private(int dir, struct err *err)
{
	FD_AUTO int fd = openat(dir, "ledger.db", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd >= 0 || errno == EEXIST ? 0 : err_sys(err, errno, "ledger: cannot make ledger.db");
}

/* No other name, no other owner, no other writer: what was checked of the directory holds for the file. */
static int check_file(int dir, bool make, struct err *err)
{
	struct stat st;

	if (fstatat(dir, "ledger.db", &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return make ? make_private(dir, err) : err_set(err, ERR_NOT_FOUND, "there is no ledger here");
		return err_sys(err, errno, "ledger: cannot look at ledger.db");
	}
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return err_set(err, ERR_PERMISSION, "ledger: ledger.db is no regular file of its own");
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_set(err, ERR_PERMISSION, "ledger: ledger.db belongs to another user or can be written by one");
	return 0;
}

static int open_database(struct sqlite_ledger *ledger, struct err *err)
{
	char path[PATH_MAX];
	int r = check_file(ledger->dir, !ledger->options.read_only, err);

	if (r == 0)
		r = database_path(ledger->dir, path, err);
	if (r == 0)
		r = db_open(&ledger->db, path, ledger->options.read_only, err);
	return r < 0 ? r : ledger_prepare(ledger, err);
}

int sqlite_ledger_open(int dir, const struct sqlite_ledger_options *options, struct ledger **ret, struct err *err)
{
	struct sqlite_ledger *ledger = malloc(sizeof *ledger);
	int r;

	if (!ledger)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	*ledger = (struct sqlite_ledger){
		.base.ops = &ops, .options = *options, .dir = dir, .pid = getpid(), .owner_fd = -1, .db.synchronous = -1};
	r = open_database(ledger, err);
	if (r < 0) {
		ledger_close(&ledger->base);
		return r;
	}
	*ret = &ledger->base;
	return 0;
}
