/* queue.c - runs that wait: submitted, claimed, and queued again when an attempt is abandoned. */
#include <inttypes.h>
#include <string.h>

#include "ledger/sqlite/internal.h"

static int queue_length(struct sqlite_ledger *ledger, int64_t *ret, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, DB_QUEUE_LENGTH, NULL, 0, &row, err);

	if (r == 0)
		r = db_step(&ledger->db, row, err);
	if (r < 0)
		return r;
	*ret = sqlite3_column_int64(row, 0);
	return 0;
}

static int enqueue(struct sqlite_ledger *ledger, const char *run_id, struct err *err)
{
	return db_run(&ledger->db, DB_INSERT_QUEUE, DB_VALUES(db_text(run_id)), err);
}

static int insert_waiting(struct sqlite_ledger *ledger, const struct ledger_run *run, const char *idempotency_key, int64_t queue_max,
                          struct err *err)
{
	int64_t length = 0;
	int r = queue_length(ledger, &length, err);

	if (r == 0 && length >= queue_max)
		r = err_set(err, ERR_LIMIT, "queue_full: %" PRId64 " runs wait already", length);
	if (r == 0)
		r = ledger_insert_run(ledger, run, idempotency_key, err);
	return r < 0 ? r : enqueue(ledger, run->run_id, err);
}

/* Has this principal submitted under this key? Gives that run's id, or "". */
static int find_submitted(struct sqlite_ledger *ledger, const struct ledger_run *run, const char *idempotency_key,
                          char ret_run_id[static ID_SIZE], struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, DB_SUBMITTED, DB_VALUES(db_text(run->principal), db_text(idempotency_key),
	                                                      db_blob(run->manifest, strlen(run->manifest))), &row, err);

	if (r == 0)
		r = db_step(&ledger->db, row, err);
	if (r < 0)
		return r;
	ret_run_id[0] = '\0';
	if (r == 0)
		return 0;
	db_column_copy(row, 0, ret_run_id, ID_SIZE);
	if (!sqlite3_column_int(row, 1))
		return err_set(err, ERR_CONFLICT, "ledger: the idempotency key is that of %s, which has another manifest", ret_run_id);
	return 0;
}

static int check_submission(const struct ledger_run *run, const char *idempotency_key, struct err *err)
{
	size_t length = idempotency_key ? strlen(idempotency_key) : 1;

	if (run->attached)
		return err_set(err, ERR_INVALID, "ledger: an attached run is accepted with its attempt");
	if (length == 0 || length > LEDGER_IDEMPOTENCY_MAX)
		return err_set(err, ERR_INVALID, "an idempotency key has 1 to %d bytes", LEDGER_IDEMPOTENCY_MAX);
	return ledger_check_run(run, err);
}

int ledger_submit(struct ledger *base, struct ledger_run *run, const char *idempotency_key, int64_t queue_max, bool *ret_existing,
                  struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	char existing[ID_SIZE] = "";
	int r = check_submission(run, idempotency_key, err);

	if (r == 0)
		r = db_begin(&ledger->db, true, err);
	if (r < 0)
		return r;
	if (idempotency_key)
		r = find_submitted(ledger, run, idempotency_key, existing, err);
	if (r == 0 && !existing[0])
		r = insert_waiting(ledger, run, idempotency_key, queue_max, err);
	r = db_end(&ledger->db, r, err);
	if (r < 0)
		return r;
	if (existing[0])
		memcpy(run->run_id, existing, sizeof run->run_id);
	*ret_existing = existing[0] != '\0';
	return 0;
}

struct place {
	int64_t position;
	int attempts;
};

static int find_place(struct sqlite_ledger *ledger, const char *run_id, struct place *ret, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, DB_QUEUE_PLACE, DB_VALUES(db_text(run_id)), &row, err);

	if (r == 0)
		r = db_step(&ledger->db, row, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, ERR_NOT_FOUND, "ledger: no run %s", run_id);
	if (sqlite3_column_type(row, 0) == SQLITE_NULL)
		return err_set(err, ERR_STATE, "ledger: run %s is not queued", run_id);
	*ret = (struct place){.position = sqlite3_column_int64(row, 0), .attempts = sqlite3_column_int(row, 1)};
	return 0;
}

int ledger_claim(struct ledger *base, struct ledger_attempt *attempt, const struct ledger_record *records, size_t count,
                 struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	struct ledger_attempt begun = *attempt;
	struct place place = {.position = 0};
	int r = db_begin(&ledger->db, false, err);

	if (r < 0)
		return r;
	r = find_place(ledger, attempt->run_id, &place, err);
	begun.number = place.attempts + 1;
	begun.attached = begun.intent = false;
	if (r == 0)
		r = ledger_begin_attempt(ledger, &begun, records, count, err);
	if (r == 0)
		r = db_run(&ledger->db, DB_DELETE_QUEUE, DB_VALUES(db_int(place.position)), err);
	if (r == 0)
		ledger_touch(ledger, attempt->run_id);
	r = db_end(&ledger->db, r, err);
	if (r < 0)
		return r;
	ledger->owner_recorded = true;
	*attempt = begun;
	return 0;
}

static int may_abandon(struct sqlite_ledger *ledger, const char *attempt_id, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, DB_MAY_ABANDON, DB_VALUES(db_text(attempt_id)), &row, err);

	if (r == 0)
		r = db_step(&ledger->db, row, err);
	if (r < 0)
		return r;
	if (sqlite3_column_int(row, 2) != 0)
		return err_set(err, ERR_CONFLICT, "ledger: attempt %s has its launch intent", attempt_id);
	if (sqlite3_column_int(row, 0) != 0)
		return err_set(err, ERR_STATE, "ledger: attempt %s is of an attached run", attempt_id);
	if (sqlite3_column_int(row, 1) >= LEDGER_ATTEMPTS_MAX)
		return err_set(err, ERR_LIMIT, "ledger: attempt %s is the last one that its run may have", attempt_id);
	return 0;
}

int ledger_abandon(struct ledger *base, const char *attempt_id, const char *owner_id, int64_t generation,
                   const struct ledger_record *records, size_t count, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	const struct fence fence = {.attempt_id = attempt_id, .owner_id = owner_id, .generation = generation};
	char run_id[ID_SIZE];
	int r;

	if (count == 0 || strcmp(records[count - 1].kind, "abandoned") != 0)
		return err_set(err, ERR_INVALID, "ledger: the last record of an abandoned attempt says so");
	r = db_begin(&ledger->db, false, err);
	if (r < 0)
		return r;
	r = ledger_fence(ledger, &fence, run_id, err);
	if (r == 0)
		r = may_abandon(ledger, attempt_id, err);
	if (r == 0)
		r = chain_append(ledger, attempt_id, records, count, NULL, err);
	if (r == 0)
		r = ledger_set_state(ledger, attempt_id, "abandoned", err);
	if (r == 0)
		r = enqueue(ledger, run_id, err);
	return db_end(&ledger->db, r, err);
}

int ledger_queued(struct ledger *base, int64_t after, int64_t limit, ledger_queued_fn fn, void *context, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, DB_QUEUED, DB_VALUES(db_int(after), db_int(limit)), &row, err);

	while (r == 0 && (r = db_step(&ledger->db, row, err)) == 1) {
		struct ledger_queued queued = {.position = sqlite3_column_int64(row, 0), .attempts = sqlite3_column_int(row, 4),
		                               .cancelled = sqlite3_column_int(row, 5) != 0,
		                               .created_at_ms = sqlite3_column_int64(row, 6)};

		db_column_copy(row, 1, queued.run_id, sizeof queued.run_id);
		db_column_copy(row, 2, queued.principal, sizeof queued.principal);
		db_column_copy(row, 3, queued.profile, sizeof queued.profile);
		r = fn(context, &queued);
	}
	return r;
}
