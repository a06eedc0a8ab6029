/* ledger_shim.c - a ledger that passes every call on, unless the test wants it otherwise. */
#include "ledger_shim.h"

#include <stdio.h>

static struct ledger_shim *shim(struct ledger *ledger)
{
	return (struct ledger_shim *)ledger;
}

static int count(struct ledger_shim *s, enum ledger_shim_op op, struct err *err)
{
	s->calls[op]++;
	if (s->fails_from[op] && s->calls[op] >= s->fails_from[op])
		return err_set(err, s->code, "shim: the ledger fails");
	return 0;
}

static const char *id(struct ledger *ledger)
{
	return shim(ledger)->inner->ops->id(shim(ledger)->inner);
}

static int register_owner(struct ledger *ledger, const struct ledger_owner *owner, struct err *err)
{
	return shim(ledger)->inner->ops->register_owner(shim(ledger)->inner, owner, err);
}

static int accept_run(struct ledger *ledger, const struct ledger_run *run, struct ledger_attempt *attempt,
                      const struct ledger_record *records, size_t record_count, bool durable, struct err *err)
{
	return shim(ledger)->inner->ops->accept(shim(ledger)->inner, run, attempt, records, record_count, durable, err);
}

static int append(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, const char *state,
                  const struct ledger_record *records, size_t record_count, bool durable, struct err *err)
{
	struct ledger_shim *s = shim(ledger);
	int rc = count(s, LEDGER_SHIM_APPEND, err);
	if (rc < 0)
		return rc;
	snprintf(s->state, sizeof(s->state), "%s", state);
	return s->inner->ops->append(s->inner, attempt_id, owner_id, generation, state, records, record_count, durable, err);
}

static int commit_launch_intent(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation,
                                const struct ledger_record *records, size_t record_count, struct err *err)
{
	struct ledger_shim *s = shim(ledger);
	if (s->before_intent)
		s->before_intent(s->inner, s->context);
	int rc = count(s, LEDGER_SHIM_INTENT, err);
	return rc < 0 ? rc
	              : s->inner->ops->commit_launch_intent(s->inner, attempt_id, owner_id, generation, records, record_count, err);
}

static int request_cancel(struct ledger *ledger, const char *run_id, bool *ret_sealed, struct err *err)
{
	struct ledger_shim *s = shim(ledger);
	int rc = count(s, LEDGER_SHIM_CANCEL, err);
	return rc < 0 ? rc : s->inner->ops->request_cancel(s->inner, run_id, ret_sealed, err);
}

static int cancel_requested(struct ledger *ledger, const char *run_id, bool *ret, struct err *err)
{
	return shim(ledger)->inner->ops->cancel_requested(shim(ledger)->inner, run_id, ret, err);
}

static int renew(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, struct err *err)
{
	struct ledger_shim *s = shim(ledger);
	int rc = count(s, LEDGER_SHIM_RENEW, err);
	return rc < 0 ? rc : s->inner->ops->renew(s->inner, attempt_id, owner_id, generation, err);
}

static int take_over(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t *ret_generation, struct err *err)
{
	struct ledger_shim *s = shim(ledger);
	int rc = count(s, LEDGER_SHIM_TAKE_OVER, err);
	return rc < 0 ? rc : s->inner->ops->take_over(s->inner, attempt_id, owner_id, ret_generation, err);
}

static int expire(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, int64_t renewals,
                  int64_t *ret_generation, struct err *err)
{
	struct ledger_shim *s = shim(ledger);
	return s->inner->ops->expire(s->inner, attempt_id, owner_id, generation, renewals, ret_generation, err);
}

static int abandon(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation,
                   const struct ledger_record *records, size_t record_count, struct err *err)
{
	struct ledger_shim *s = shim(ledger);
	int rc = count(s, LEDGER_SHIM_ABANDON, err);
	return rc < 0 ? rc : s->inner->ops->abandon(s->inner, attempt_id, owner_id, generation, records, record_count, err);
}

static int seal(struct ledger *ledger, const struct ledger_seal *what, struct err *err)
{
	struct ledger_shim *s = shim(ledger);
	if (s->before_seal)
		s->before_seal(s->inner, s->context);
	int rc = count(s, LEDGER_SHIM_SEAL, err);
	return rc < 0 ? rc : s->inner->ops->seal(s->inner, what, err);
}

static int unsealed(struct ledger *ledger, ledger_attempt_fn fn, void *context, struct err *err)
{
	return shim(ledger)->inner->ops->unsealed(shim(ledger)->inner, fn, context, err);
}

static int manifest(struct ledger *ledger, const char *run_id, char **ret_manifest, char **ret_plan, struct err *err)
{
	return shim(ledger)->inner->ops->manifest(shim(ledger)->inner, run_id, ret_manifest, ret_plan, err);
}

static int stream(struct ledger *ledger, const char *run_id, const char *name, struct ledger_stream *ret, void **ret_data,
                  bool *ret_in_store, struct err *err)
{
	return shim(ledger)->inner->ops->stream(shim(ledger)->inner, run_id, name, ret, ret_data, ret_in_store, err);
}

static int records_of(struct ledger *ledger, const char *attempt_id, ledger_record_fn fn, void *context, struct err *err)
{
	return shim(ledger)->inner->ops->records(shim(ledger)->inner, attempt_id, fn, context, err);
}

static void close_inner(struct ledger *ledger)
{
	shim(ledger)->inner->ops->close(shim(ledger)->inner);
}

static const struct ledger_ops ops = {
	.id = id,
	.register_owner = register_owner,
	.accept = accept_run,
	.append = append,
	.commit_launch_intent = commit_launch_intent,
	.request_cancel = request_cancel,
	.cancel_requested = cancel_requested,
	.renew = renew,
	.take_over = take_over,
	.expire = expire,
	.abandon = abandon,
	.seal = seal,
	.unsealed = unsealed,
	.manifest = manifest,
	.stream = stream,
	.records = records_of,
	.close = close_inner,
};

void ledger_shim_init(struct ledger_shim *s, struct ledger *inner)
{
	*s = (struct ledger_shim){.base.ops = &ops, .inner = inner, .code = ERR_IO};
}
