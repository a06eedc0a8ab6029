/* shared_writes.c - the calls that write, each packed for the ledger's thread and unpacked again.
 *
 * What a call fills goes into its own structure first: only when it is committed is it the caller's. */
#include <string.h>

#include "ledger/shared_internal.h"

struct accepting {
	struct shared_call call;
	const struct ledger_run *run;
	struct ledger_attempt attempt;
	const struct ledger_record *records;
	size_t count;
	bool durable;
};

static int run_accept(struct ledger *inner, struct shared_call *call, struct err *err)
{
	struct accepting *it = (struct accepting *)call;

	return inner->ops->accept(inner, it->run, &it->attempt, it->records, it->count, it->durable, err);
}

int shared_accept(struct ledger *ledger, const struct ledger_run *run, struct ledger_attempt *attempt,
                  const struct ledger_record *records, size_t count, bool durable, struct err *err)
{
	struct accepting it = {.call = {.run = run_accept, .writes = true, .durable = durable}, .run = run, .attempt = *attempt,
	                       .records = records, .count = count, .durable = durable};
	int r = shared_ask(ledger, &it.call, err);

	if (r == 0)
		*attempt = it.attempt;
	return r;
}

struct submitting {
	struct shared_call call;
	struct ledger_run run;
	const char *idempotency_key;
	int64_t queue_max;
	bool existing;
};

static int run_submit(struct ledger *inner, struct shared_call *call, struct err *err)
{
	struct submitting *it = (struct submitting *)call;

	return inner->ops->submit(inner, &it->run, it->idempotency_key, it->queue_max, &it->existing, err);
}

int shared_submit(struct ledger *ledger, struct ledger_run *run, const char *idempotency_key, int64_t queue_max, bool *ret_existing,
                  struct err *err)
{
	struct submitting it = {.call = {.run = run_submit, .writes = true, .durable = true}, .run = *run,
	                        .idempotency_key = idempotency_key, .queue_max = queue_max};
	int r = shared_ask(ledger, &it.call, err);

	if (r < 0)
		return r;
	memcpy(run->run_id, it.run.run_id, sizeof run->run_id);
	*ret_existing = it.existing;
	return 0;
}

static int run_claim(struct ledger *inner, struct shared_call *call, struct err *err)
{
	struct accepting *it = (struct accepting *)call;

	return inner->ops->claim(inner, &it->attempt, it->records, it->count, err);
}

int shared_claim(struct ledger *ledger, struct ledger_attempt *attempt, const struct ledger_record *records, size_t count,
                 struct err *err)
{
	struct accepting it = {.call = {.run = run_claim, .writes = true}, .attempt = *attempt, .records = records, .count = count};
	int r = shared_ask(ledger, &it.call, err);

	if (r == 0)
		*attempt = it.attempt;
	return r;
}

/* What a holder of a lease writes. */
struct writing {
	struct shared_call call;
	const char *attempt_id, *owner_id, *state;
	int64_t generation;
	const struct ledger_record *records;
	size_t count;
	bool durable;
};

static int run_append(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct writing *it = (struct writing *)call;

	return inner->ops->append(inner, it->attempt_id, it->owner_id, it->generation, it->state, it->records, it->count, it->durable,
	                          err);
}

int shared_append(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, const char *state,
                  const struct ledger_record *records, size_t count, bool durable, struct err *err)
{
	struct writing it = {.call = {.run = run_append, .writes = true, .durable = durable}, .attempt_id = attempt_id,
	                     .owner_id = owner_id, .state = state, .generation = generation, .records = records, .count = count,
	                     .durable = durable};

	return shared_ask(ledger, &it.call, err);
}

static int run_commit_launch_intent(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct writing *it = (struct writing *)call;

	return inner->ops->commit_launch_intent(inner, it->attempt_id, it->owner_id, it->generation, it->records, it->count, err);
}

int shared_commit_launch_intent(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation,
                                const struct ledger_record *records, size_t count, struct err *err)
{
	struct writing it = {.call = {.run = run_commit_launch_intent, .writes = true, .durable = true}, .attempt_id = attempt_id,
	                     .owner_id = owner_id, .generation = generation, .records = records, .count = count};

	return shared_ask(ledger, &it.call, err);
}

static int run_abandon(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct writing *it = (struct writing *)call;

	return inner->ops->abandon(inner, it->attempt_id, it->owner_id, it->generation, it->records, it->count, err);
}

int shared_abandon(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation,
                   const struct ledger_record *records, size_t count, struct err *err)
{
	struct writing it = {.call = {.run = run_abandon, .writes = true}, .attempt_id = attempt_id, .owner_id = owner_id,
	                     .generation = generation, .records = records, .count = count};

	return shared_ask(ledger, &it.call, err);
}

static int run_renew(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct writing *it = (struct writing *)call;

	return inner->ops->renew(inner, it->attempt_id, it->owner_id, it->generation, err);
}

int shared_renew(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, struct err *err)
{
	struct writing it = {.call = {.run = run_renew, .writes = true, .silent = true}, .attempt_id = attempt_id,
	                     .owner_id = owner_id, .generation = generation};

	return shared_ask(ledger, &it.call, err);
}

struct cancelling {
	struct shared_call call;
	const char *run_id;
	bool sealed;
};

static int run_request_cancel(struct ledger *inner, struct shared_call *call, struct err *err)
{
	struct cancelling *it = (struct cancelling *)call;

	return inner->ops->request_cancel(inner, it->run_id, &it->sealed, err);
}

int shared_request_cancel(struct ledger *ledger, const char *run_id, bool *ret_sealed, struct err *err)
{
	struct cancelling it = {.call = {.run = run_request_cancel, .writes = true, .durable = true}, .run_id = run_id};
	int r = shared_ask(ledger, &it.call, err);

	if (r == 0)
		*ret_sealed = it.sealed;
	return r;
}

struct taking {
	struct shared_call call;
	const char *attempt_id, *owner_id;
	int64_t seen_generation, seen_renewals, generation;
};

static int run_take_over(struct ledger *inner, struct shared_call *call, struct err *err)
{
	struct taking *it = (struct taking *)call;

	return inner->ops->take_over(inner, it->attempt_id, it->owner_id, &it->generation, err);
}

static int run_expire(struct ledger *inner, struct shared_call *call, struct err *err)
{
	struct taking *it = (struct taking *)call;

	return inner->ops->expire(inner, it->attempt_id, it->owner_id, it->seen_generation, it->seen_renewals, &it->generation, err);
}

static int take(struct ledger *ledger, struct taking *taking, int64_t *ret_generation, struct err *err)
{
	int r = shared_ask(ledger, &taking->call, err);

	if (r == 0)
		*ret_generation = taking->generation;
	return r;
}

int shared_take_over(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t *ret_generation, struct err *err)
{
	struct taking it = {.call = {.run = run_take_over, .writes = true, .durable = true}, .attempt_id = attempt_id,
	                    .owner_id = owner_id};

	return take(ledger, &it, ret_generation, err);
}

int shared_expire(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, int64_t renewals,
                  int64_t *ret_generation, struct err *err)
{
	struct taking it = {.call = {.run = run_expire, .writes = true, .durable = true}, .attempt_id = attempt_id,
	                    .owner_id = owner_id, .seen_generation = generation, .seen_renewals = renewals};

	return take(ledger, &it, ret_generation, err);
}

struct sealing {
	struct shared_call call;
	const struct ledger_seal *seal;
};

static int run_seal(struct ledger *inner, struct shared_call *call, struct err *err)
{
	return inner->ops->seal(inner, ((struct sealing *)call)->seal, err);
}

int shared_seal(struct ledger *ledger, const struct ledger_seal *seal, struct err *err)
{
	struct sealing it = {.call = {.run = run_seal, .writes = true, .durable = true}, .seal = seal};

	return shared_ask(ledger, &it.call, err);
}
