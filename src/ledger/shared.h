/* shared.h - one ledger for many threads: a thread of its own does what they ask, and commits together what waits together.
 *
 * A durable call waits for the disk. While one commit is under way others arrive; they are the next batch, and share its fsync. Nothing
 * waits for company: a call alone is done at once. Of what waits, those that write without waiting for the disk are done first, in a commit
 * of their own; then the durable ones.
 *
 * Calls that only read wait for nothing of this: each is done at once in its caller's thread, one after another, by a connection of their own,
 * and sees all that was committed before it began. */
#pragma once

#include <stdint.h>

#include "ledger/ledger.h"

/* Something that is written about this run is committed now. Called by the ledger's thread: it may neither call the ledger nor block. */
typedef void (*ledger_changed_fn)(void *context, const char *run_id);

/* Takes `inner` over, and `reader`, the same ledger opened once more to be read, which may be NULL: then `inner` reads, between two commits. On
 * failure both stay the caller's. SQLite must not have been told that one thread alone uses it. The result may be used by any thread, in the order that each call promises for
 * itself: what fails in a batch fails alone; a commit that fails fails all of its batch, and the ledger goes on.
 *
 * As ledger.h, with these differences. Out parameters and receipts are valid when the call has returned 0, but a seal's build is called, in
 * the ledger's thread, before its commit can fail. The callbacks of unsealed, attempts and queued may call the ledger; ERR_STATE is the answer to a call
 * from any other. There is no warm, batch or watch.
 * close does what is waiting, then ends the thread; no call may come after or during it. changed may be NULL. */
int ledger_share(struct ledger *inner, struct ledger *reader, ledger_changed_fn changed, void *context, struct ledger **ret,
                 struct err *err);

/* Since the beginning, of a ledger that ledger_share made. Safe from any thread, the ledger's own too. */
struct ledger_share_counts {
	int64_t writes;  /* calls that write, successful or not */
	int64_t commits; /* tried for them */
	int64_t durable; /* of these, such as wait for the disk */
	int64_t waiting; /* calls that wait to be begun now */
};
void ledger_share_count(struct ledger *shared, struct ledger_share_counts *ret);
