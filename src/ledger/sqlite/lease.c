/* lease.c - the lease: renewed by its owner, taken over from one that is dead or stopped. */
#include <inttypes.h>
#include <string.h>

#include "ledger/sqlite/internal.h"
#include "ledger/sqlite/owner.h"

int ledger_renew(struct ledger *base, const char *attempt_id, const char *owner_id, int64_t generation, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	const struct fence fence = {.attempt_id = attempt_id, .owner_id = owner_id, .generation = generation};
	char run_id[ID_SIZE];
	int r = db_begin(&ledger->db, false, err);

	if (r < 0)
		return r;
	r = ledger_fence(ledger, &fence, run_id, err);
	if (r == 0)
		r = db_run(&ledger->db, DB_RENEW, DB_VALUES(db_text(attempt_id), db_int(generation)), err);
	return db_end(&ledger->db, r, err);
}

struct held_lease {
	char run_id[ID_SIZE], owner_id[ID_SIZE];
	int64_t generation, renewals, ttl_ms;
};

/* The lease that holds, of an attempt that is not over. Within the transaction: of two who take over, the second finds the first one's. */
static int present_lease(struct sqlite_ledger *ledger, const char *attempt_id, struct held_lease *ret, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, DB_FENCE, DB_VALUES(db_text(attempt_id)), &row, err);

	if (r == 0)
		r = db_step(&ledger->db, row, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, ERR_NOT_FOUND, "ledger: no attempt %s", attempt_id);
	if (ledger_is_over(db_column_text(row, 0)))
		return err_set(err, ERR_BUSY, "ledger: attempt %s is %s", attempt_id, db_column_text(row, 0));
	*ret = (struct held_lease){.generation = sqlite3_column_int64(row, 3), .ttl_ms = sqlite3_column_int64(row, 4),
	                           .renewals = sqlite3_column_int64(row, 5)};
	db_column_copy(row, 1, ret->run_id, sizeof ret->run_id);
	db_column_copy(row, 2, ret->owner_id, sizeof ret->owner_id);
	return 0;
}

static int insert_next(struct sqlite_ledger *ledger, const char *attempt_id, const char *owner_id, const struct held_lease *lease,
                       struct err *err)
{
	int r = ledger_record_owner(ledger, owner_id, err);

	if (r < 0)
		return r;
	ledger_touch(ledger, lease->run_id);
	return db_run(&ledger->db, DB_INSERT_LEASE,
	              DB_VALUES(db_text(attempt_id), db_int(lease->generation + 1), db_text(owner_id), db_int(lease->ttl_ms)), err);
}

/* May it be taken? */
typedef int (*lease_check_fn)(const struct sqlite_ledger *ledger, const char *attempt_id, const struct held_lease *lease,
                              const struct held_lease *seen, struct err *err);

static int check_dead(const struct sqlite_ledger *ledger, const char *attempt_id, const struct held_lease *lease,
                      const struct held_lease *seen, struct err *err)
{
	bool alive = true;
	int r = owner_is_alive(ledger->dir, lease->owner_id, &alive, err);

	(void)seen;
	if (r == 0 && alive)
		return err_set(err, ERR_BUSY, "ledger: attempt %s is driven by %s, which lives", attempt_id, lease->owner_id);
	return r;
}

static int check_unchanged(const struct sqlite_ledger *ledger, const char *attempt_id, const struct held_lease *lease,
                           const struct held_lease *seen, struct err *err)
{
	(void)ledger;
	if (lease->generation != seen->generation || lease->renewals != seen->renewals)
		return err_set(err, ERR_BUSY, "ledger: the lease of %s has moved on to generation %" PRId64 ", renewal %" PRId64,
		               attempt_id, lease->generation, lease->renewals);
	return 0;
}

struct taking {
	const char *attempt_id, *owner_id;
	lease_check_fn check;
	struct held_lease seen;
};

static int take(struct sqlite_ledger *ledger, const struct taking *taking, int64_t *ret_generation, struct err *err)
{
	struct held_lease lease = {.generation = 0};
	int r = db_begin(&ledger->db, true, err);

	if (r < 0)
		return r;
	r = present_lease(ledger, taking->attempt_id, &lease, err);
	if (r == 0)
		r = taking->check(ledger, taking->attempt_id, &lease, &taking->seen, err);
	if (r == 0)
		r = insert_next(ledger, taking->attempt_id, taking->owner_id, &lease, err);
	r = db_end(&ledger->db, r, err);
	if (r < 0)
		return r;
	ledger->owner_recorded = true;
	*ret_generation = lease.generation + 1;
	return 0;
}

int ledger_take_over(struct ledger *base, const char *attempt_id, const char *owner_id, int64_t *ret_generation, struct err *err)
{
	const struct taking taking = {.attempt_id = attempt_id, .owner_id = owner_id, .check = check_dead};

	return take(sqlite_ledger_of(base), &taking, ret_generation, err);
}

int ledger_expire(struct ledger *base, const char *attempt_id, const char *owner_id, int64_t generation, int64_t renewals,
                  int64_t *ret_generation, struct err *err)
{
	const struct taking taking = {.attempt_id = attempt_id, .owner_id = owner_id, .check = check_unchanged,
	                              .seen = {.generation = generation, .renewals = renewals}};

	return take(sqlite_ledger_of(base), &taking, ret_generation, err);
}
