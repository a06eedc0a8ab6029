/* attempt.c - names, admits and records an attempt; refuses or recovers it when it cannot be driven. */
#include "keeper/attempt.h"

#include <stdio.h>
#include <string.h>

#include "artifact/store.h"
#include "base/clock.h"
#include "base/json.h"
#include "capture/capture.h"

void attempt_name(struct attempt *attempt, const char *run_id, bool attached, int64_t ttl_ms)
{
	struct ledger_attempt *row = &attempt->row;
	*row = (struct ledger_attempt){.number = 1, .generation = 1, .ttl_ms = ttl_ms, .state = "queued", .attached = attached};
	id_new("att", row->attempt_id);
	id_new("bnd", row->boundary_id);
	snprintf(row->run_id, sizeof(row->run_id), "%s", run_id);
	snprintf(row->profile, sizeof(row->profile), "%s", attempt->manifest->profile);
	memcpy(row->owner_id, attempt->keeper->owner.owner_id, ID_SIZE);
}

int attempt_admit(struct attempt *attempt, const struct readiness *readiness, struct err *err)
{
	const struct admission_request request = {
		.policy = admission_policy_default(),
		.plan = attempt->plan,
		.manifest = attempt->manifest,
		.readiness = *readiness,
		.now_ns = clock_boot_ns(),
		.budget_left_ms = -1,
		.epoch = attempt->keeper->owner.epoch,
		.epoch_now = attempt->keeper->owner.epoch,
	};
	attempt->admitted_at_ms = clock_wall_ms();
	attempt->leased_at_ns = request.now_ns;
	return admission_decide(&request, &attempt->decision, err);
}

static json_t *digest_value(const struct digest *digest)
{
	char text[DIGEST_TEXT_SIZE];
	return json_string(digest_text(digest, text));
}

static json_t *accepted_body(const struct attempt *attempt)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "run", attempt->row.run_id, "boundary", attempt->row.boundary_id, "profile",
	                 attempt->row.profile, "principal", attempt->principal, "manifest", digest_value(&attempt->manifest->digest),
	                 "plan", attempt->plan ? digest_value(&attempt->plan->digest) : json_null());
}

static json_t *findings(const struct admission_decision *decision)
{
	json_t *list = json_array();
	for (size_t i = 0; i < decision->finding_count; i++) {
		const struct admission_finding *finding = &decision->findings[i];
		json_t *item = json_pack("{s:s}", "reason", admission_reason_name(finding->reason));
		if (!item || json_set_bytes(item, "detail", finding->detail, strlen(finding->detail), NULL) < 0 ||
		    json_array_append(list, item) < 0) {
			json_decref(item);
			json_decref(list);
			return NULL;
		}
		json_decref(item);
	}
	return list;
}

static json_t *admission_body(const struct attempt *attempt)
{
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:I}", "admit", attempt->decision.admit, "admission",
	                 digest_value(&attempt->decision.digest), "policy", digest_value(&admission_policy_default()->digest), "epoch",
	                 digest_value(&attempt->keeper->owner.epoch), "findings", findings(&attempt->decision), "admitted_at",
	                 (json_int_t)attempt->admitted_at_ms);
}

/* The launch has an intent of its own. */
static json_t *intent_body(const struct attempt *attempt)
{
	return json_pack("{s:s, s:[s, s, s, s]}", "boundary", attempt->row.boundary_id, "steps", "prepare", "create_suspended", "enroll",
	                 "cleanup");
}

static int add_record(struct attempt_records *records, const char *kind, int64_t at_ms, json_t *body, struct err *err)
{
	JSON_AUTO json_t *owned = body;
	struct buf *text = &records->bodies[records->count];
	if (!owned)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a record");
	*text = BUF_INIT(ATTEMPT_RECORD_BYTES_MAX);
	int result = json_canonical(owned, text, err);
	if (result < 0) {
		buf_done(text);
		return result;
	}
	struct ledger_record *record = &records->list[records->count++];
	*record = (struct ledger_record){.at_ms = at_ms, .body = text->data};
	snprintf(record->kind, sizeof(record->kind), "%s", kind);
	return 0;
}

int attempt_records(const struct attempt *attempt, struct attempt_records *ret, struct err *err)
{
	int64_t now_ms = attempt->plan ? attempt->admitted_at_ms : clock_wall_ms();
	*ret = (struct attempt_records){.count = 0};
	int result = add_record(ret, "accepted", now_ms, accepted_body(attempt), err);
	if (result == 0 && attempt->plan)
		result = add_record(ret, "admission", now_ms, admission_body(attempt), err);
	if (result == 0 && attempt->plan && attempt->decision.admit)
		result = add_record(ret, "intent", now_ms, intent_body(attempt), err);
	return result;
}

void attempt_records_done(struct attempt_records *records)
{
	for (size_t i = 0; i < records->count; i++)
		buf_done(&records->bodies[i]);
	records->count = 0;
}

static struct runner_refusal refusal_of(const struct attempt *attempt)
{
	return (struct runner_refusal){
		.ledger = attempt->keeper->ledger,
		.key = attempt->keeper->key,
		.plan = attempt->plan,
		.attempt = attempt->row,
		.manifest = attempt->manifest->digest,
		.policy = admission_policy_default()->digest,
		.admission = attempt->decision.digest,
		.principal = attempt->principal,
	};
}

int attempt_refuse(const struct attempt *attempt, const char *reason, const char *detail, struct runner_result *ret, struct err *err)
{
	const struct admission_finding *first = &attempt->decision.findings[0];
	struct runner_refusal refusal = refusal_of(attempt);
	refusal.reason = reason ? reason : admission_reason_name(first->reason);
	refusal.detail = reason ? detail : first->detail;
	return runner_refuse(&refusal, ret, err);
}

int attempt_cancel(const struct attempt *attempt, struct runner_result *ret, struct err *err)
{
	const struct runner_refusal refusal = refusal_of(attempt);
	return runner_cancel(&refusal, ret, err);
}

struct runner_request attempt_request(const struct attempt *attempt, struct store *store, struct boundary *boundary,
                                      struct capture *const captures[static 2])
{
	return (struct runner_request){
		.ledger = attempt->keeper->ledger,
		.key = attempt->keeper->key,
		.store = store,
		.boundary = boundary,
		.plan = attempt->plan,
		.attempt = attempt->row,
		.principal = attempt->principal,
		.admission = attempt->decision.digest,
		.admitted_at_ms = attempt->admitted_at_ms,
		.leased_at_ns = attempt->leased_at_ns,
		.standard_output = captures[0],
		.standard_error = captures[1],
	};
}

int attempt_recover(const struct attempt *attempt, const struct provider_factory *factory, struct runner_result *ret, struct err *err)
{
	struct boundary_provider *provider = NULL;
	int result = factory->make(factory->context, attempt->row.profile, -1, &provider, err);
	if (result < 0)
		return result;
	const struct runner_recovery recovery = {
		.ledger = attempt->keeper->ledger,
		.key = attempt->keeper->key,
		.provider = provider,
		.owner_id = attempt->keeper->owner.owner_id,
		.attempt = attempt->row,
		.cleanup_ms = attempt->plan->limits.cleanup_ms,
	};
	result = runner_recover(&recovery, ret, err);
	factory->release(factory->context, provider);
	return result;
}

int attempt_captures(const struct attempt *attempt, struct store *store, struct capture *ret[static 2], struct err *err)
{
	const struct plan_limits *limits = &attempt->plan->limits;
	int spool_dir = store_dir_fd(store);
	ret[0] = ret[1] = NULL;
	int result = capture_new(limits->stdout_bytes, limits->on_overflow, spool_dir, &ret[0], err);
	if (result == 0)
		result = capture_new(limits->stderr_bytes, limits->on_overflow, spool_dir, &ret[1], err);
	if (result < 0) {
		capture_free(ret[0]);
		ret[0] = NULL;
	}
	return result;
}
