/* oneshot.c - the keeper of one run: admit, accept, drive or refuse; and recover at once what its worker's death left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/store.h"
#include "base/clock.h"
#include "base/json.h"
#include "keeper/worker.h"

enum {
	LEASE_TTL_MS = 30 * 1000,
	RECORD_MAX = 16 * 1024,
	ACCEPT_RECORDS = 3,
	LABELS_MAX = 64 * 1024,
	STOP_CANCEL_NOW = 1, /* what stop_requested says to the runner */
	STOP_KILL_NOW = 2,
};

/* One run on its way. */
struct once {
	const struct keeper_once *given;
	struct keeper *keeper;
	struct keeper_result *result;
	struct boundary *boundary; /* NULL when refused */
	struct admission_decision decision;
	struct ledger_run run;
	struct ledger_attempt attempt;
	int64_t admitted_at_ms;
	struct buf labels;
};

static int stop_requested(void *context)
{
	const struct once *once = context;
	sig_atomic_t heard = once->given->signals ? *once->given->signals : 0;
	return heard > STOP_CANCEL_NOW ? STOP_KILL_NOW : (int)heard;
}

static void launched(void *context)
{
	const struct once *once = context;
	if (once->given->launched)
		once->given->launched(once->given->context, once->result->standard_output, once->result->standard_error);
}

static void lasts(void *context)
{
	const struct once *once = context;
	if (once->given->lasts)
		once->given->lasts(once->given->context, once->result->standard_output, once->result->standard_error);
}

/* Readiness is that of this very run: its own enrollment verifies the boundary before anything of the guest's runs (R16). */
static int admit(struct once *once, struct err *err)
{
	const struct admission_request request = {
		.policy = admission_policy_default(),
		.plan = once->given->plan,
		.manifest = once->given->manifest,
		.readiness = {.at_ns = clock_boot_ns(), .ready = true},
		.now_ns = clock_boot_ns(),
		.budget_left_ms = -1,
		.epoch = once->keeper->owner.epoch,
		.epoch_now = once->keeper->owner.epoch,
	};
	once->admitted_at_ms = clock_wall_ms();
	return admission_decide(&request, &once->decision, err);
}

static int labels_text(const struct manifest *manifest, struct buf *ret, struct err *err)
{
	JSON_AUTO json_t *labels = json_object();
	for (size_t i = 0; i < manifest->label_count; i++)
		if (json_object_set_new(labels, manifest->labels[i].key, json_string(manifest->labels[i].value)) < 0)
			return err_set(err, ERR_NO_MEMORY, "out of memory for labels");
	return json_canonical(labels, ret, err);
}

static int name_run(struct once *once, struct err *err)
{
	const struct manifest *manifest = once->given->manifest;
	const struct plan *plan = once->given->plan;
	once->run = (struct ledger_run){
		.attached = true,
		.manifest = manifest->canonical,
		.manifest_digest = manifest->digest,
		.created_at_ms = clock_wall_ms(),
	};
	if (plan) {
		once->run.plan = plan->canonical;
		once->run.plan_digest = plan->digest;
	}
	once->attempt = (struct ledger_attempt){.number = 1, .generation = 1, .ttl_ms = LEASE_TTL_MS, .state = "queued", .attached = true};
	id_new("run", once->run.run_id);
	id_new("att", once->attempt.attempt_id);
	id_new("bnd", once->attempt.boundary_id);
	memcpy(once->attempt.run_id, once->run.run_id, ID_SIZE);
	memcpy(once->attempt.owner_id, once->keeper->owner.owner_id, ID_SIZE);
	memcpy(once->result->run_id, once->run.run_id, ID_SIZE);
	snprintf(once->run.principal, sizeof(once->run.principal), "%s", once->keeper->principal);
	snprintf(once->attempt.profile, sizeof(once->attempt.profile), "%s", manifest->profile);
	int result = labels_text(manifest, &once->labels, err);
	once->run.labels = once->labels.data;
	return result;
}

static json_t *digest_value(const struct digest *digest)
{
	char text[DIGEST_TEXT_SIZE];
	return json_string(digest_text(digest, text));
}

static json_t *accepted_body(const struct once *once)
{
	const struct plan *plan = once->given->plan;
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "run", once->run.run_id, "boundary", once->attempt.boundary_id, "profile",
	                 once->attempt.profile, "principal", once->run.principal, "manifest", digest_value(&once->run.manifest_digest),
	                 "plan", plan ? digest_value(&plan->digest) : json_null());
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

static json_t *admission_body(const struct once *once)
{
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:I}", "admit", once->decision.admit, "admission",
	                 digest_value(&once->decision.digest), "policy", digest_value(&admission_policy_default()->digest), "epoch",
	                 digest_value(&once->keeper->owner.epoch), "findings", findings(&once->decision), "admitted_at",
	                 (json_int_t)once->admitted_at_ms);
}

/* What an admitted attempt will do up to the gate, and at its end, whatever comes between (R2). The launch has an intent of its own. */
static json_t *intent_body(const struct once *once)
{
	return json_pack("{s:s, s:[s, s, s, s]}", "boundary", once->attempt.boundary_id, "steps", "prepare", "create_suspended",
	                 "enroll", "cleanup");
}

static int body_text(json_t *body, struct buf *ret, struct err *err)
{
	JSON_AUTO json_t *owned = body;
	return owned ? json_canonical(owned, ret, err) : err_set(err, ERR_NO_MEMORY, "out of memory for a record");
}

/* The binding of attempt and boundary is recorded before anything of the boundary exists. Not durable: an attached run that a power cut
 * takes has no caller any more, and its launch intent carries this along. */
static int accept_run(struct once *once, struct err *err)
{
	BUF_AUTO struct buf accepted = BUF_INIT(RECORD_MAX), admission = BUF_INIT(RECORD_MAX), intent = BUF_INIT(RECORD_MAX);
	size_t count = !once->given->plan ? 1 : once->decision.admit ? ACCEPT_RECORDS : ACCEPT_RECORDS - 1;
	int result = body_text(accepted_body(once), &accepted, err);
	if (result == 0 && once->given->plan)
		result = body_text(admission_body(once), &admission, err);
	if (result == 0 && once->decision.admit)
		result = body_text(intent_body(once), &intent, err);
	if (result < 0)
		return result;
	const struct ledger_record records[ACCEPT_RECORDS] = {
		{.at_ms = once->run.created_at_ms, .kind = "accepted", .body = accepted.data},
		{.at_ms = once->admitted_at_ms, .kind = "admission", .body = admission.data},
		{.at_ms = once->admitted_at_ms, .kind = "intent", .body = intent.data},
	};
	struct ledger *ledger = once->keeper->ledger;
	result = ledger->ops->accept(ledger, &once->run, &once->attempt, records, count, false, err);
	store_release(once->keeper->store); /* from here on the ledger names the inputs */
	return result;
}

static int refuse(struct once *once, const char *reason, const char *detail, struct err *err)
{
	const struct runner_refusal refusal = {
		.ledger = once->keeper->ledger,
		.key = once->keeper->key,
		.plan = once->given->plan,
		.attempt = once->attempt,
		.manifest = once->given->manifest->digest,
		.policy = admission_policy_default()->digest,
		.admission = once->decision.digest,
		.principal = once->keeper->principal,
		.reason = reason,
		.detail = detail,
	};
	return runner_refuse(&refusal, &once->result->run, err);
}

/* The worker is dead, and with it all it knew. This process takes its own lease over, as any recovery would, and goes by the identity. */
static int recover_own(struct once *once, struct err *err)
{
	const struct provider_factory *factory = once->given->factory;
	struct boundary_provider *provider = NULL;
	worker_reap_orphans();
	int result = factory->make(factory->context, once->attempt.profile, -1, &provider, err);
	if (result < 0)
		return result;
	const struct runner_recovery recovery = {
		.ledger = once->keeper->ledger,
		.key = once->keeper->key,
		.provider = provider,
		.owner_id = once->keeper->owner.owner_id,
		.attempt = once->attempt,
		.cleanup_ms = once->given->plan->limits.cleanup_ms,
	};
	struct runner_result recovered = {0};
	result = runner_recover(&recovery, &recovered, err);
	factory->release(factory->context, provider);
	worker_reap_orphans();
	if (result == 0) {
		free(once->result->run.receipt);
		once->result->run = recovered;
	}
	return result;
}

/* The ledger failed: the run stays for the next recovery, but nothing of it stays on the host (R13). Whoever lost the lease keeps his hands
 * off (R7). */
static void clean_up(struct once *once, int why)
{
	struct boundary_usage usage;
	if (why != ERR_FENCED)
		(void)once->boundary->ops->cleanup(once->boundary, &usage, NULL);
}

static int drive(struct once *once, struct err *err)
{
	const struct runner_request request = {
		.ledger = once->keeper->ledger,
		.key = once->keeper->key,
		.store = once->keeper->store,
		.boundary = once->boundary,
		.plan = once->given->plan,
		.attempt = once->attempt,
		.principal = once->keeper->principal,
		.admission = once->decision.digest,
		.admitted_at_ms = once->admitted_at_ms,
		.standard_output = once->result->standard_output,
		.standard_error = once->result->standard_error,
		.stop_requested = stop_requested,
		.launched = launched,
		.lasts = lasts,
		.context = once,
	};
	int result = runner_drive(&request, &once->result->run, err);
	if (result < 0)
		clean_up(once, result);
	/* What cannot be recovered now is still a provisional result, and the next recovery's. */
	else if (once->result->run.provisional && once->given->worker->lost && once->given->factory)
		(void)recover_own(once, NULL);
	return result;
}

static int make_captures(struct once *once, struct err *err)
{
	const struct plan_limits *limits = &once->given->plan->limits;
	int spool_dir = store_dir_fd(once->keeper->store);
	int result = capture_new(limits->stdout_bytes, limits->on_overflow, spool_dir, &once->result->standard_output, err);
	if (result == 0)
		result = capture_new(limits->stderr_bytes, limits->on_overflow, spool_dir, &once->result->standard_error, err);
	return result;
}

static void warm_ledger(void *context)
{
	struct ledger *ledger = context;
	if (ledger->ops->warm)
		ledger->ops->warm(ledger);
}

static int run_refused_plan(struct once *once, struct err *err)
{
	int result = accept_run(once, err);
	return result < 0 ? result : refuse(once, once->given->plan_reason, once->given->plan_refusal, err);
}

static int run_plan(struct once *once, struct err *err)
{
	int result = admit(once, err);
	if (result < 0)
		return result;
	if (!once->decision.admit) {
		const struct admission_finding *first = &once->decision.findings[0];
		result = accept_run(once, err);
		return result < 0 ? result : refuse(once, admission_reason_name(first->reason), first->detail, err);
	}
	once->given->worker->idle = warm_ledger;
	once->given->worker->idle_context = once->keeper->ledger;
	/* A worker that cannot open, or captures that cannot be made, are an error with nothing recorded. */
	result = worker_boundary(once->given->worker, &once->boundary, err);
	if (result == 0)
		result = make_captures(once, err);
	if (result == 0)
		result = accept_run(once, err);
	return result < 0 ? result : drive(once, err);
}

int keeper_run_once(const struct keeper_once *given, struct keeper_result *ret, struct err *err)
{
	struct keeper_result made = {0};
	struct once once = {.given = given, .keeper = given->keeper, .result = &made, .labels = BUF_INIT(LABELS_MAX)};
	int result = name_run(&once, err);
	if (result == 0)
		result = given->plan ? run_plan(&once, err) : run_refused_plan(&once, err);
	if (once.boundary)
		once.boundary->ops->free(once.boundary);
	if (given->worker)
		worker_dismiss(given->worker);
	buf_done(&once.labels);
	if (result < 0)
		keeper_result_done(&made);
	else
		*ret = made;
	return result;
}

void keeper_result_done(struct keeper_result *result)
{
	free(result->run.receipt);
	capture_free(result->standard_output);
	capture_free(result->standard_error);
	*result = (struct keeper_result){0};
}
