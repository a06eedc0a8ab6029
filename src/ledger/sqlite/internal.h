/* internal.h - the SQLite ledger's object, and what its files share. Private to this folder. */
#pragma once

#include <jansson.h>
#include <sys/types.h>

#include "ledger/sqlite/db.h"
#include "ledger/sqlite/sqlite_ledger.h"

struct sqlite_ledger {
	struct ledger base; /* first: the vtable's functions cast back */
	struct db db;
	struct sqlite_ledger_options options;
	int dir;            /* borrowed */
	pid_t pid;          /* of the process that opened it */
	int64_t schema;     /* version of what is in the file: of a read-only ledger it may be an older one */
	char ledger_id[ID_SIZE];
	int64_t created_at_ms;
	struct ledger_owner owner;
	int owner_fd;       /* -1: not registered */
	bool owner_recorded;
	bool owner_recorded_before; /* the batch that is under way */
	void (*touched)(void *context, const char *run_id);
	void *touched_context;
};

static inline struct sqlite_ledger *sqlite_ledger_of(struct ledger *ledger)
{
	return (struct sqlite_ledger *)ledger;
}

/* create.c: an empty file becomes a ledger, an older one is brought up to date; then its id and identity are checked. */
int ledger_prepare(struct sqlite_ledger *ledger, struct err *err);

/* chain.c. All but genesis within a transaction. */
int chain_genesis(const struct sqlite_ledger *ledger, struct digest *ret, struct err *err);
/* The attempt's last record. *ret_seq is 0 and *ret the digest of the attempt's id when there is none. */
int chain_head(struct sqlite_ledger *ledger, const char *attempt_id, int64_t *ret_seq, struct digest *ret, struct err *err);
/* Appends; seq of the records is ignored. *ret_head, which may be NULL: digest of the last one. */
int chain_append(struct sqlite_ledger *ledger, const char *attempt_id, const struct ledger_record *records, size_t count,
                 struct digest *ret_head, struct err *err);

/* write.c and queue.c */
struct fence {
	const char *attempt_id, *owner_id;
	int64_t generation;
};

/* Is this lease the one that holds? ERR_NOT_FOUND, ERR_FENCED, ERR_STATE when the attempt is sealed. Gives its run. */
int ledger_fence(struct sqlite_ledger *ledger, const struct fence *fence, char ret_run_id[static ID_SIZE], struct err *err);
/* Does the statement find a row by this id? */
int ledger_has(struct sqlite_ledger *ledger, enum db_statement which, const char *id, bool *ret, struct err *err);
/* Neither sealed nor abandoned attempts change any more. */
bool ledger_is_over(const char *state);
int ledger_set_state(struct sqlite_ledger *ledger, const char *attempt_id, const char *state, struct err *err);
/* The texts of the run have their digests. */
int ledger_check_run(const struct ledger_run *run, struct err *err);
int ledger_insert_run(struct sqlite_ledger *ledger, const struct ledger_run *run, const char *idempotency_key, struct err *err);
/* An attempt of our own, in the lowest free slot, with its lease and its first records. Gives slot and lease; number is set before. */
int ledger_begin_attempt(struct sqlite_ledger *ledger, struct ledger_attempt *attempt, const struct ledger_record *records,
                         size_t count, struct err *err);
/* The row comes with the first run that we own: an owner without one leaves nothing behind. owner_recorded is set after the commit. */
int ledger_record_owner(struct sqlite_ledger *ledger, const char *owner_id, struct err *err);
/* What is being written is about this run. */
void ledger_touch(const struct sqlite_ledger *ledger, const char *run_id);

int ledger_register_owner(struct ledger *ledger, const struct ledger_owner *owner, struct err *err);
int ledger_accept(struct ledger *ledger, const struct ledger_run *run, struct ledger_attempt *attempt,
                  const struct ledger_record *records, size_t count, bool durable, struct err *err);
int ledger_append(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, const char *state,
                  const struct ledger_record *records, size_t count, bool durable, struct err *err);
int ledger_commit_launch_intent(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation,
                                const struct ledger_record *records, size_t count, struct err *err);
int ledger_request_cancel(struct ledger *ledger, const char *run_id, bool *ret_sealed, struct err *err);
int ledger_submit(struct ledger *ledger, struct ledger_run *run, const char *idempotency_key, int64_t queue_max, bool *ret_existing,
                  struct err *err);
int ledger_claim(struct ledger *ledger, struct ledger_attempt *attempt, const struct ledger_record *records, size_t count,
                 struct err *err);
int ledger_abandon(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation,
                   const struct ledger_record *records, size_t count, struct err *err);
int ledger_queued(struct ledger *ledger, int64_t after, int64_t limit, ledger_queued_fn fn, void *context, struct err *err);

/* lease.c */
int ledger_renew(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, struct err *err);
int ledger_take_over(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t *ret_generation, struct err *err);
int ledger_expire(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, int64_t renewals,
                  int64_t *ret_generation, struct err *err);

/* seal.c */
int ledger_seal(struct ledger *ledger, const struct ledger_seal *seal, struct err *err);

/* rows.c: rows as JSON. */

/* The columns of the statement's present row as an object. Blobs are "sha256:…" of their bytes. with_text: text as it is; without, one of
 * more than ROWS_TEXT_MAX bytes is {"sha256": hex}. The caller's (json_decref). */
int rows_object(sqlite3_stmt *statement, bool with_text, json_t **ret, struct err *err);

/* The body of a seal's rows record: {"at": at_ms, "rows": {table: [row, …], …}}, canonical: every row of every table that says something
 * of this run, with its final values. The caller's (free). */
int rows_of_run(struct sqlite_ledger *ledger, const char *run_id, int64_t at_ms, char **ret, struct err *err);

int ledger_dump(struct ledger *ledger, int (*row)(void *context, const char *table, const char *json), void *context,
                struct err *err);

/* read.c */
int ledger_cancel_requested(struct ledger *ledger, const char *run_id, bool *ret, struct err *err);
int ledger_unsealed(struct ledger *ledger, ledger_attempt_fn fn, void *context, struct err *err);
int ledger_attempts(struct ledger *ledger, const char *run_id, ledger_attempt_fn fn, void *context, struct err *err);
int ledger_open_runs(struct ledger *ledger, ledger_run_fn fn, void *context, struct err *err);
int ledger_run_state(struct ledger *ledger, const char *run_id, struct ledger_run_state *ret, struct err *err);
int ledger_list(struct ledger *ledger, const struct ledger_list_query *query, ledger_list_fn fn, void *context, struct err *err);
int ledger_find_run(struct ledger *ledger, const char *name, char ret_run_id[static ID_SIZE], struct err *err);
int ledger_receipt(struct ledger *ledger, const char *run_id, char **ret_receipt, struct err *err);
int ledger_manifest(struct ledger *ledger, const char *run_id, char **ret_manifest, char **ret_plan, struct err *err);
int ledger_stream(struct ledger *ledger, const char *run_id, const char *name, struct ledger_stream *ret, void **ret_data,
                  bool *ret_in_store, struct err *err);
int ledger_artifacts(struct ledger *ledger, const char *run_id, ledger_artifact_fn fn, void *context, struct err *err);
int ledger_references(struct ledger *ledger, ledger_reference_fn fn, void *context, struct err *err);
int ledger_records(struct ledger *ledger, const char *attempt_id, ledger_record_fn fn, void *context, struct err *err);
