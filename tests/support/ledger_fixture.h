/* ledger_fixture.h - a ledger in a directory of its own, and runs in it, for tests. Everything asserts. */
#pragma once

#include <stdbool.h>

#include "evidence/key.h"
#include "ledger/ledger.h"
#include "ledger/shared.h"

enum { FIXTURE_PATH_SIZE = 128, FIXTURE_QUEUE_MAX = 5 };

struct ledger_fixture {
	char path[FIXTURE_PATH_SIZE];
	int dir;
	struct ledger *ledger;
	struct key *key;
	struct ledger_owner owner;
};

/* A new directory under /tmp, an empty ledger in it, and an owner registered. */
void fixture_make(struct ledger_fixture *fixture);
/* A further connection to the same ledger, as another keeper: with its own owner, or read-only without one. */
void fixture_open(struct ledger_fixture *fixture, const char *path, bool read_only);
/* From now on every thread may use it; changed may be NULL. Reads have a connection of their own, as in a keeper, or go between the commits. */
void fixture_share(struct ledger_fixture *fixture, bool with_reader, ledger_changed_fn changed, void *context);
/* Closes without removing. */
void fixture_close(struct ledger_fixture *fixture);
/* Closes, and removes the directory. */
void fixture_remove(struct ledger_fixture *fixture);

/* Removes a directory with all that is in it. */
void fixture_remove_tree(const char *path);
/* A new file with the same bytes. */
void fixture_copy_file(const char *from, const char *to);

/* Fills what accept takes, with fresh ids. */
void fixture_new_attempt(const struct ledger_fixture *fixture, struct ledger_attempt *ret);
int fixture_try_accept(struct ledger_fixture *fixture, struct ledger_attempt *attempt, bool durable, struct err *err);
void fixture_accept(struct ledger_fixture *fixture, struct ledger_attempt *ret);
/* Submits a run of this principal; its id is the attempt's. NULL key: none. */
int fixture_try_submit(struct ledger_fixture *fixture, const char *principal, const char *key, char ret_run_id[static ID_SIZE],
                       bool *ret_existing, struct err *err);
void fixture_submit(struct ledger_fixture *fixture, const char *key, char ret_run_id[static ID_SIZE]);
/* The next attempt of a queued run, with fresh ids. */
int fixture_try_claim(struct ledger_fixture *fixture, const char *run_id, struct ledger_attempt *ret, struct err *err);
void fixture_claim(struct ledger_fixture *fixture, const char *run_id, struct ledger_attempt *ret);
int fixture_abandon(struct ledger_fixture *fixture, const struct ledger_attempt *attempt, struct err *err);
/* Appends one record of this kind, sets the state unless NULL. */
int fixture_append(struct ledger_fixture *fixture, const struct ledger_attempt *attempt, const char *kind, const char *state,
                   struct err *err);
int fixture_intent(struct ledger_fixture *fixture, const struct ledger_attempt *attempt, struct err *err);
/* Seals with a receipt of the verdict `succeeded`, a stdout of `text` and an empty stderr. A text of more than LEDGER_STREAM_ROW_MAX
 * bytes is left to a store. */
int fixture_seal(struct ledger_fixture *fixture, const struct ledger_attempt *attempt, const char *text, struct err *err);
/* A whole life: accept, records, intent, seal. */
void fixture_run(struct ledger_fixture *fixture, struct ledger_attempt *ret);
