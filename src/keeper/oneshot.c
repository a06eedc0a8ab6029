/* oneshot.c - the keeper of one run: admit, accept, drive or refuse; and recover at once what its worker's death left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/store.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "capture/capture.h"
#include "keeper/attempt.h"
#include "keeper/worker.h"

enum {
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
	struct ledger_run run;
	struct attempt attempt;
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
	once->attempt = (struct attempt){
		.keeper = once->keeper, .manifest = manifest, .plan = plan, .principal = once->keeper->principal,
	};
	id_new("run", once->run.run_id);
	memcpy(once->result->run_id, once->run.run_id, ID_SIZE);
	snprintf(once->run.principal, sizeof(once->run.principal), "%s", once->keeper->principal);
	int64_t ttl_ms = once->given->lease_ttl_ms;
	attempt_name(&once->attempt, once->run.run_id, true, ttl_ms > 0 ? ttl_ms : ATTEMPT_LEASE_TTL_MS);
	int result = manifest_labels(manifest, &once->labels, err);
	once->run.labels = once->labels.data;
	return result;
}

/* The binding of attempt and boundary is recorded before anything of the boundary exists. Not durable: an attached run that a power cut
 * takes has no caller any more, and its launch intent carries this along. */
static int accept_run(struct once *once, struct err *err)
{
	ATTEMPT_RECORDS_AUTO struct attempt_records records;
	int result = attempt_records(&once->attempt, &records, err);
	if (result < 0)
		return result;
	struct ledger *ledger = once->keeper->ledger;
	result = FAULT_ERR("run.accepting", err);
	if (result == 0)
		result = ledger->ops->accept(ledger, &once->run, &once->attempt.row, records.list, records.count, false, err);
	store_release(once->keeper->store); /* from here on the ledger names the inputs */
	(void)FAULT("run.accepted");
	return result;
}

static int recover_own(struct once *once, struct err *err)
{
	struct runner_result recovered = {0};
	worker_reap_orphans();
	int result = attempt_recover(&once->attempt, once->given->factory, &recovered, err);
	worker_reap_orphans();
	if (result == 0) {
		free(once->result->run.receipt);
		once->result->run = recovered;
	}
	return result;
}

/* It goes while we seal. */
static void dismiss(void *context)
{
	struct once *once = context;
	worker_dismiss(once->given->worker);
	once->boundary->ops->free(once->boundary);
	once->boundary = NULL;
}

/* The ledger failed: the run stays for the next recovery, but nothing of it stays on the host (R13). Whoever lost the lease keeps his hands
 * off (R7). */
static void clean_up(struct once *once, int why)
{
	struct boundary_usage usage;
	if (why != ERR_FENCED && once->boundary)
		(void)once->boundary->ops->cleanup(once->boundary, &usage, NULL);
}

static int drive(struct once *once, struct err *err)
{
	struct capture *const captures[] = {once->result->standard_output, once->result->standard_error};
	struct runner_request request = attempt_request(&once->attempt, once->keeper->store, once->boundary, captures);
	request.stop_requested = stop_requested;
	request.launched = launched;
	request.lasts = lasts;
	request.released = dismiss;
	request.context = once;
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
	struct capture *made[2];
	int result = attempt_captures(&once->attempt, once->keeper->store, made, err);
	once->result->standard_output = made[0];
	once->result->standard_error = made[1];
	return result;
}

static void warm_ledger(void *context)
{
	struct ledger *ledger = context;
	if (ledger->ops->warm)
		ledger->ops->warm(ledger);
}

static int run_refused(struct once *once, const char *reason, const char *detail, struct err *err)
{
	int result = accept_run(once, err);
	return result < 0 ? result : attempt_refuse(&once->attempt, reason, detail, &once->result->run, err);
}

/* Readiness is that of this very run: its own enrollment verifies the boundary before anything of the guest's runs (R16). */
static int run_plan(struct once *once, struct err *err)
{
	const struct readiness readiness = {.at_ns = clock_boot_ns(), .ready = true};
	int result = attempt_admit(&once->attempt, &readiness, err);
	if (result < 0)
		return result;
	if (!once->attempt.decision.admit)
		return run_refused(once, NULL, NULL, err);
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
		result = given->plan ? run_plan(&once, err) : run_refused(&once, given->plan_reason, given->plan_refusal, err);
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
