/* sqlite_ledger.h - a ledger in one directory on one machine, in SQLite (WAL).
 *
 *   DIR/ledger.db   the rows (and its -wal and -shm)
 *   DIR/identity    which file ledger.db is: a copy of it is noticed
 *   DIR/owners/ID   one file for each living keeper, locked (flock) by it
 *
 * One object is used by one thread. It belongs to the process that opened it: a forked child must not touch it (close does nothing there).
 * The database file must never be opened and closed by another part of this process: that would drop SQLite's locks.
 *
 * The callbacks of list, records and dump may not call the ledger; those of unsealed may. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "ledger/ledger.h"

struct sqlite_ledger_options {
	bool read_only; /* for verification: also of a copy; nothing is created, changed or removed */

	/* evidence/record.h's record_digest, handed in because a store may not include evidence. Required. */
	int (*record_digest)(const char *attempt_id, int64_t seq, int64_t at_ms, const char *kind, const char *body,
	                     const struct digest *previous, struct digest *ret, struct err *err);
};

/* Once, before the first opening, by a program in which one thread alone uses ledgers: SQLite then takes no locks of its own around each
 * allocation and keeps no statistics of them. */
void sqlite_ledger_single_thread(void);

/* dir: the ledger's directory (ledger_dir_open), borrowed until the ledger is closed.
 *
 * Without read_only an absent ledger is made, an older one brought up to date; any number of processes may do so at once. ERR_NOT_FOUND
 * (read_only), ERR_TOO_NEW: written by a newer version. ERR_FOREIGN: another program's database, or a copy of a ledger. ERR_DAMAGED,
 * ERR_PERMISSION, ERR_BUSY after 10 s, ERR_NO_SPACE. Nothing is ever deleted or repaired. */
int sqlite_ledger_open(int dir, const struct sqlite_ledger_options *options, struct ledger **ret, struct err *err);
