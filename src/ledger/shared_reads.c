/* shared_reads.c - the calls that only read, each packed for whoever does it; and the vtable. */
#include <stdlib.h>
#include <string.h>

#include "ledger/shared_internal.h"

enum { FIRST_CAPACITY = 16 };

struct register_owner_call {
	struct shared_call call;
	const struct ledger_owner *owner;
};

static int run_register_owner(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct register_owner_call *it = (struct register_owner_call *)call;

	return inner->ops->register_owner(inner, it->owner, err);
}

static int shared_register_owner(struct ledger *ledger, const struct ledger_owner *owner, struct err *err)
{
	struct register_owner_call it = {.call = {.run = run_register_owner}, .owner = owner};

	return shared_ask(ledger, &it.call, err);
}

struct cancel_requested_call {
	struct shared_call call;
	const char *run_id;
	bool *ret;
};

static int run_cancel_requested(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct cancel_requested_call *it = (struct cancel_requested_call *)call;

	return inner->ops->cancel_requested(inner, it->run_id, it->ret, err);
}

static int shared_cancel_requested(struct ledger *ledger, const char *run_id, bool *ret, struct err *err)
{
	struct cancel_requested_call it = {.call = {.run = run_cancel_requested, .reads = true}, .run_id = run_id, .ret = ret};

	return shared_ask(ledger, &it.call, err);
}

struct dump_call {
	struct shared_call call;
	int (*row)(void *context, const char *table, const char *json);
	void *context;
};

static int run_dump(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct dump_call *it = (struct dump_call *)call;

	return inner->ops->dump(inner, it->row, it->context, err);
}

static int shared_dump(struct ledger *ledger, int (*row)(void *context, const char *table, const char *json), void *context,
                       struct err *err)
{
	struct dump_call it = {.call = {.run = run_dump, .reads = true}, .row = row, .context = context};

	return shared_ask(ledger, &it.call, err);
}

struct open_runs_call {
	struct shared_call call;
	ledger_run_fn fn;
	void *context;
};

static int run_open_runs(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct open_runs_call *it = (struct open_runs_call *)call;

	return inner->ops->open_runs(inner, it->fn, it->context, err);
}

static int shared_open_runs(struct ledger *ledger, ledger_run_fn fn, void *context, struct err *err)
{
	struct open_runs_call it = {.call = {.run = run_open_runs, .reads = true}, .fn = fn, .context = context};

	return shared_ask(ledger, &it.call, err);
}

struct run_state_call {
	struct shared_call call;
	const char *run_id;
	struct ledger_run_state *ret;
};

static int run_run_state(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct run_state_call *it = (struct run_state_call *)call;

	return inner->ops->run_state(inner, it->run_id, it->ret, err);
}

static int shared_run_state(struct ledger *ledger, const char *run_id, struct ledger_run_state *ret, struct err *err)
{
	struct run_state_call it = {.call = {.run = run_run_state, .reads = true}, .run_id = run_id, .ret = ret};

	return shared_ask(ledger, &it.call, err);
}

struct list_call {
	struct shared_call call;
	const struct ledger_list_query *query;
	ledger_list_fn fn;
	void *context;
};

static int run_list(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct list_call *it = (struct list_call *)call;

	return inner->ops->list(inner, it->query, it->fn, it->context, err);
}

static int shared_list(struct ledger *ledger, const struct ledger_list_query *query, ledger_list_fn fn, void *context,
                       struct err *err)
{
	struct list_call it = {.call = {.run = run_list, .reads = true}, .query = query, .fn = fn, .context = context};

	return shared_ask(ledger, &it.call, err);
}

struct find_run_call {
	struct shared_call call;
	const char *name;
	char *ret_run_id;
};

static int run_find_run(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct find_run_call *it = (struct find_run_call *)call;

	return inner->ops->find_run(inner, it->name, it->ret_run_id, err);
}

static int shared_find_run(struct ledger *ledger, const char *name, char ret_run_id[static ID_SIZE], struct err *err)
{
	struct find_run_call it = {.call = {.run = run_find_run, .reads = true}, .name = name, .ret_run_id = ret_run_id};

	return shared_ask(ledger, &it.call, err);
}

struct receipt_call {
	struct shared_call call;
	const char *run_id;
	char **ret_receipt;
};

static int run_receipt(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct receipt_call *it = (struct receipt_call *)call;

	return inner->ops->receipt(inner, it->run_id, it->ret_receipt, err);
}

static int shared_receipt(struct ledger *ledger, const char *run_id, char **ret_receipt, struct err *err)
{
	struct receipt_call it = {.call = {.run = run_receipt, .reads = true}, .run_id = run_id, .ret_receipt = ret_receipt};

	return shared_ask(ledger, &it.call, err);
}

struct manifest_call {
	struct shared_call call;
	const char *run_id;
	char **ret_manifest, **ret_plan;
};

static int run_manifest(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct manifest_call *it = (struct manifest_call *)call;

	return inner->ops->manifest(inner, it->run_id, it->ret_manifest, it->ret_plan, err);
}

static int shared_manifest(struct ledger *ledger, const char *run_id, char **ret_manifest, char **ret_plan, struct err *err)
{
	struct manifest_call it = {.call = {.run = run_manifest, .reads = true}, .run_id = run_id, .ret_manifest = ret_manifest,
	                           .ret_plan = ret_plan};

	return shared_ask(ledger, &it.call, err);
}

struct stream_call {
	struct shared_call call;
	const char *run_id, *name;
	struct ledger_stream *ret;
	void **ret_data;
	bool *ret_in_store;
};

static int run_stream(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct stream_call *it = (struct stream_call *)call;

	return inner->ops->stream(inner, it->run_id, it->name, it->ret, it->ret_data, it->ret_in_store, err);
}

static int shared_stream(struct ledger *ledger, const char *run_id, const char *name, struct ledger_stream *ret, void **ret_data,
                         bool *ret_in_store, struct err *err)
{
	struct stream_call it = {.call = {.run = run_stream, .reads = true}, .run_id = run_id, .name = name, .ret = ret,
	                         .ret_data = ret_data, .ret_in_store = ret_in_store};

	return shared_ask(ledger, &it.call, err);
}

struct artifacts_call {
	struct shared_call call;
	const char *run_id;
	ledger_artifact_fn fn;
	void *context;
};

static int run_artifacts(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct artifacts_call *it = (struct artifacts_call *)call;

	return inner->ops->artifacts(inner, it->run_id, it->fn, it->context, err);
}

static int shared_artifacts(struct ledger *ledger, const char *run_id, ledger_artifact_fn fn, void *context, struct err *err)
{
	struct artifacts_call it = {.call = {.run = run_artifacts, .reads = true}, .run_id = run_id, .fn = fn, .context = context};

	return shared_ask(ledger, &it.call, err);
}

struct references_call {
	struct shared_call call;
	ledger_reference_fn fn;
	void *context;
};

static int run_references(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct references_call *it = (struct references_call *)call;

	return inner->ops->references(inner, it->fn, it->context, err);
}

static int shared_references(struct ledger *ledger, ledger_reference_fn fn, void *context, struct err *err)
{
	struct references_call it = {.call = {.run = run_references, .reads = true}, .fn = fn, .context = context};

	return shared_ask(ledger, &it.call, err);
}

struct records_call {
	struct shared_call call;
	const char *attempt_id;
	ledger_record_fn fn;
	void *context;
};

static int run_records(struct ledger *inner, struct shared_call *call, struct err *err)
{
	const struct records_call *it = (struct records_call *)call;

	return inner->ops->records(inner, it->attempt_id, it->fn, it->context, err);
}

static int shared_records(struct ledger *ledger, const char *attempt_id, ledger_record_fn fn, void *context, struct err *err)
{
	struct records_call it = {.call = {.run = run_records, .reads = true}, .attempt_id = attempt_id, .fn = fn, .context = context};

	return shared_ask(ledger, &it.call, err);
}

/* Rows that are shown by the caller's thread, and so are collected first. */
struct rows {
	void *list;
	size_t count, capacity;
	struct err *err;
};

static int add_row(struct rows *rows, const void *row, size_t size)
{
	if (rows->count == rows->capacity) {
		size_t capacity = rows->capacity ? 2 * rows->capacity : FIRST_CAPACITY;
		void *list = reallocarray(rows->list, capacity, size);

		if (!list)
			return err_set(rows->err, ERR_NO_MEMORY, "out of memory");
		rows->list = list;
		rows->capacity = capacity;
	}
	memcpy((char *)rows->list + rows->count++ * size, row, size);
	return 0;
}

static int add_attempt(void *context, const struct ledger_attempt *attempt)
{
	return add_row(context, attempt, sizeof *attempt);
}

static int add_queued(void *context, const struct ledger_queued *queued)
{
	return add_row(context, queued, sizeof *queued);
}

struct attempts_call {
	struct shared_call call;
	const char *run_id;
	struct rows rows;
};

static int run_unsealed(struct ledger *inner, struct shared_call *call, struct err *err)
{
	struct attempts_call *it = (struct attempts_call *)call;

	it->rows.err = err;
	return inner->ops->unsealed(inner, add_attempt, &it->rows, err);
}

static int run_attempts(struct ledger *inner, struct shared_call *call, struct err *err)
{
	struct attempts_call *it = (struct attempts_call *)call;

	it->rows.err = err;
	return inner->ops->attempts(inner, it->run_id, add_attempt, &it->rows, err);
}

static int ask_attempts(struct ledger *ledger, struct attempts_call *it, ledger_attempt_fn fn, void *context, struct err *err)
{
	int r = shared_ask(ledger, &it->call, err);
	const struct ledger_attempt *list = it->rows.list;

	for (size_t i = 0; r == 0 && i < it->rows.count; i++)
		r = fn(context, &list[i]);
	free(it->rows.list);
	return r;
}

/* Also sweeps up behind dead owners: the ledger's thread does it. */
static int shared_unsealed(struct ledger *ledger, ledger_attempt_fn fn, void *context, struct err *err)
{
	struct attempts_call it = {.call = {.run = run_unsealed}};

	return ask_attempts(ledger, &it, fn, context, err);
}

static int shared_attempts(struct ledger *ledger, const char *run_id, ledger_attempt_fn fn, void *context, struct err *err)
{
	struct attempts_call it = {.call = {.run = run_attempts, .reads = true}, .run_id = run_id};

	return ask_attempts(ledger, &it, fn, context, err);
}

struct queued_call {
	struct shared_call call;
	int64_t after, limit;
	struct rows rows;
};

static int run_queued(struct ledger *inner, struct shared_call *call, struct err *err)
{
	struct queued_call *it = (struct queued_call *)call;

	it->rows.err = err;
	return inner->ops->queued(inner, it->after, it->limit, add_queued, &it->rows, err);
}

static int shared_queued(struct ledger *ledger, int64_t after, int64_t limit, ledger_queued_fn fn, void *context, struct err *err)
{
	struct queued_call it = {.call = {.run = run_queued, .reads = true}, .after = after, .limit = limit};
	int r = shared_ask(ledger, &it.call, err);
	const struct ledger_queued *list = it.rows.list;

	for (size_t i = 0; r == 0 && i < it.rows.count; i++)
		r = fn(context, &list[i]);
	free(it.rows.list);
	return r;
}

const struct ledger_ops shared_ops = {
	.id = shared_id,
	.register_owner = shared_register_owner,
	.accept = shared_accept,
	.submit = shared_submit,
	.claim = shared_claim,
	.abandon = shared_abandon,
	.queued = shared_queued,
	.append = shared_append,
	.commit_launch_intent = shared_commit_launch_intent,
	.request_cancel = shared_request_cancel,
	.cancel_requested = shared_cancel_requested,
	.renew = shared_renew,
	.take_over = shared_take_over,
	.expire = shared_expire,
	.seal = shared_seal,
	.dump = shared_dump,
	.unsealed = shared_unsealed,
	.attempts = shared_attempts,
	.open_runs = shared_open_runs,
	.run_state = shared_run_state,
	.list = shared_list,
	.find_run = shared_find_run,
	.receipt = shared_receipt,
	.manifest = shared_manifest,
	.stream = shared_stream,
	.artifacts = shared_artifacts,
	.references = shared_references,
	.records = shared_records,
	.close = shared_close,
};
