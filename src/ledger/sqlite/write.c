/* write.c - accept, append, launch intent and cancellation: each one transaction, each fenced. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "ledger/sqlite/internal.h"
#include "ledger/sqlite/owner.h"

int ledger_register_owner(struct ledger *base, const struct ledger_owner *owner, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	int r;

	if (ledger->owner_fd >= 0)
		return err_set(err, ERR_STATE, "ledger: this process has an owner already");
	r = owner_hold(ledger->dir, owner->owner_id, &ledger->owner_fd, err);
	if (r == 0)
		ledger->owner = *owner;
	return r;
}

int ledger_record_owner(struct sqlite_ledger *ledger, const char *owner_id, struct err *err)
{
	const struct ledger_owner *owner = &ledger->owner;

	if (ledger->owner_fd < 0 || strcmp(owner->owner_id, owner_id) != 0)
		return err_set(err, ERR_STATE, "ledger: %s is not the owner that this process registered", owner_id);
	if (ledger->owner_recorded)
		return 0;
	return db_run(&ledger->db, DB_INSERT_OWNER, DB_VALUES(db_text(owner_id), db_digest(&owner->epoch), db_text(owner->boot_id),
	                                                      db_int(owner->started_at_ms)), err);
}

static int free_slot(struct sqlite_ledger *ledger, const char *profile, int *ret, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *taken = NULL;
	int slot = 0;
	int r = db_start(&ledger->db, DB_TAKEN_SLOTS, DB_VALUES(db_text(profile)), &taken, err);

	if (r < 0)
		return r;
	while ((r = db_step(&ledger->db, taken, err)) == 1 && sqlite3_column_int64(taken, 0) == slot)
		slot++;
	if (r < 0)
		return r;
	if (slot >= LEDGER_SLOTS_MAX)
		return err_set(err, ERR_BUSY, "ledger: all %d slots of profile %s are taken", LEDGER_SLOTS_MAX, profile);
	*ret = slot;
	return 0;
}

void ledger_touch(const struct sqlite_ledger *ledger, const char *run_id)
{
	if (ledger->touched)
		ledger->touched(ledger->touched_context, run_id);
}

int ledger_insert_run(struct sqlite_ledger *ledger, const struct ledger_run *run, const char *idempotency_key, struct err *err)
{
	ledger_touch(ledger, run->run_id);
	return db_run(&ledger->db, DB_INSERT_RUN,
	              DB_VALUES(db_text(run->run_id), db_text(run->principal), db_int(run->attached),
	                        db_blob(run->manifest, strlen(run->manifest)),
	                        db_blob(run->plan, run->plan ? strlen(run->plan) : 0), db_int(run->created_at_ms),
	                        db_text(run->labels ? run->labels : "{}"), db_text(idempotency_key)), err);
}

static int insert_attempt(struct sqlite_ledger *ledger, const struct ledger_attempt *attempt, int slot, struct err *err)
{
	int r = db_run(&ledger->db, DB_INSERT_ATTEMPT,
	               DB_VALUES(db_text(attempt->attempt_id), db_text(attempt->run_id), db_int(attempt->number),
	                         db_text(attempt->boundary_id), db_text(attempt->profile), db_int(slot),
	                         db_text(attempt->state)), err);

	if (r < 0)
		return r;
	return db_run(&ledger->db, DB_INSERT_LEASE, DB_VALUES(db_text(attempt->attempt_id), db_int(1), db_text(attempt->owner_id),
	                                                      db_int(attempt->ttl_ms)), err);
}

int ledger_begin_attempt(struct sqlite_ledger *ledger, struct ledger_attempt *attempt, const struct ledger_record *records,
                         size_t count, struct err *err)
{
	int slot = 0;
	int r = ledger_record_owner(ledger, attempt->owner_id, err);

	if (r == 0)
		r = free_slot(ledger, attempt->profile, &slot, err);
	if (r == 0)
		r = insert_attempt(ledger, attempt, slot, err);
	if (r == 0)
		r = chain_append(ledger, attempt->attempt_id, records, count, NULL, err);
	if (r < 0)
		return r;
	attempt->slot = slot;
	attempt->generation = 1;
	attempt->renewals = 0;
	return 0;
}

/* The digests come with the texts only to be compared: what is stored is the text. */
int ledger_check_run(const struct ledger_run *run, struct err *err)
{
	struct digest digest;

	digest_of(run->manifest, strlen(run->manifest), &digest);
	if (!digest_equal(&digest, &run->manifest_digest))
		return err_set(err, ERR_INVALID, "ledger: the manifest does not have its digest");
	if (!run->plan)
		return 0;
	digest_of(run->plan, strlen(run->plan), &digest);
	if (!digest_equal(&digest, &run->plan_digest))
		return err_set(err, ERR_INVALID, "ledger: the plan does not have its digest");
	return 0;
}

int ledger_accept(struct ledger *base, const struct ledger_run *run, struct ledger_attempt *attempt,
                  const struct ledger_record *records, size_t count, bool durable, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	struct ledger_attempt begun = *attempt;
	int r = ledger_check_run(run, err);

	if (r == 0 && strcmp(run->run_id, attempt->run_id) != 0)
		r = err_set(err, ERR_INVALID, "ledger: the attempt is another run's");
	if (r == 0)
		r = db_begin(&ledger->db, durable, err);
	if (r < 0)
		return r;
	r = ledger_insert_run(ledger, run, NULL, err);
	if (r == 0)
		r = ledger_begin_attempt(ledger, &begun, records, count, err);
	r = db_end(&ledger->db, r, err);
	if (r < 0)
		return r;
	ledger->owner_recorded = true;
	*attempt = begun;
	return 0;
}

bool ledger_is_over(const char *state)
{
	return strcmp(state, "sealed") == 0 || strcmp(state, "abandoned") == 0;
}

int ledger_fence(struct sqlite_ledger *ledger, const struct fence *fence, char ret_run_id[static ID_SIZE], struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, DB_FENCE, DB_VALUES(db_text(fence->attempt_id)), &row, err);

	if (r == 0)
		r = db_step(&ledger->db, row, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, ERR_NOT_FOUND, "ledger: no attempt %s", fence->attempt_id);
	if (strcmp(db_column_text(row, 2), fence->owner_id) != 0 || sqlite3_column_int64(row, 3) != fence->generation)
		return err_set(err, ERR_FENCED, "ledger: the lease of %s is %s's, generation %lld; not %s's, generation %" PRId64,
		               fence->attempt_id, db_column_text(row, 2), sqlite3_column_int64(row, 3), fence->owner_id,
		               fence->generation);
	if (ledger_is_over(db_column_text(row, 0)))
		return err_set(err, ERR_STATE, "ledger: attempt %s is %s", fence->attempt_id, db_column_text(row, 0));
	db_column_copy(row, 1, ret_run_id, ID_SIZE);
	ledger_touch(ledger, ret_run_id);
	return 0;
}

int ledger_set_state(struct sqlite_ledger *ledger, const char *attempt_id, const char *state, struct err *err)
{
	return db_run(&ledger->db, DB_SET_STATE, DB_VALUES(db_text(attempt_id), db_text(state)), err);
}

int ledger_append(struct ledger *base, const char *attempt_id, const char *owner_id, int64_t generation, const char *state,
                  const struct ledger_record *records, size_t count, bool durable, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	const struct fence fence = {.attempt_id = attempt_id, .owner_id = owner_id, .generation = generation};
	char run_id[ID_SIZE];
	int r = db_begin(&ledger->db, durable, err);

	if (r < 0)
		return r;
	r = ledger_fence(ledger, &fence, run_id, err);
	if (r == 0)
		r = chain_append(ledger, attempt_id, records, count, NULL, err);
	if (r == 0 && state)
		r = ledger_set_state(ledger, attempt_id, state, err);
	return db_end(&ledger->db, r, err);
}

int ledger_has(struct sqlite_ledger *ledger, enum db_statement which, const char *id, bool *ret, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, which, DB_VALUES(db_text(id)), &row, err);

	if (r == 0)
		r = db_step(&ledger->db, row, err);
	if (r < 0)
		return r;
	*ret = r == 1;
	return 0;
}

static int may_launch(struct sqlite_ledger *ledger, const char *run_id, struct err *err)
{
	bool intent = false, cancelled = false;
	int r = ledger_has(ledger, DB_HAS_INTENT, run_id, &intent, err);

	if (r == 0)
		r = ledger_has(ledger, DB_HAS_CANCELLATION, run_id, &cancelled, err);
	if (r < 0)
		return r;
	if (intent)
		return err_set(err, ERR_CONFLICT, "ledger: run %s has its launch intent", run_id);
	if (cancelled)
		return err_set(err, ERR_STATE, "ledger: run %s is cancelled", run_id);
	return 0;
}

int ledger_commit_launch_intent(struct ledger *base, const char *attempt_id, const char *owner_id, int64_t generation,
                                const struct ledger_record *records, size_t count, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	const struct fence fence = {.attempt_id = attempt_id, .owner_id = owner_id, .generation = generation};
	char run_id[ID_SIZE];
	int r = db_begin(&ledger->db, true, err);

	if (r < 0)
		return r;
	r = ledger_fence(ledger, &fence, run_id, err);
	if (r == 0)
		r = may_launch(ledger, run_id, err);
	if (r == 0)
		r = db_run(&ledger->db, DB_INSERT_INTENT,
		           DB_VALUES(db_text(run_id), db_text(attempt_id), db_int(generation), db_int(clock_wall_ms())), err);
	if (r == 0)
		r = chain_append(ledger, attempt_id, records, count, NULL, err);
	return db_end(&ledger->db, r, err);
}

static int is_sealed(struct sqlite_ledger *ledger, const char *run_id, bool *ret, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, DB_RUN_SEALED, DB_VALUES(db_text(run_id)), &row, err);

	if (r == 0)
		r = db_step(&ledger->db, row, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, ERR_NOT_FOUND, "ledger: no run %s", run_id);
	*ret = sqlite3_column_int(row, 0) != 0;
	return 0;
}

int ledger_request_cancel(struct ledger *base, const char *run_id, bool *ret_sealed, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	bool sealed = false, cancelled = false;
	int r = db_begin(&ledger->db, true, err);

	if (r < 0)
		return r;
	r = is_sealed(ledger, run_id, &sealed, err);
	if (r == 0)
		r = ledger_has(ledger, DB_HAS_CANCELLATION, run_id, &cancelled, err);
	if (r == 0 && !sealed && !cancelled)
		r = db_run(&ledger->db, DB_INSERT_CANCELLATION, DB_VALUES(db_text(run_id), db_int(clock_wall_ms())), err);
	if (r == 0)
		ledger_touch(ledger, run_id);
	r = db_end(&ledger->db, r, err);
	if (r == 0)
		*ret_sealed = sealed;
	return r;
}

int ledger_cancel_requested(struct ledger *base, const char *run_id, bool *ret, struct err *err)
{
	return ledger_has(sqlite_ledger_of(base), DB_HAS_CANCELLATION, run_id, ret, err);
}
