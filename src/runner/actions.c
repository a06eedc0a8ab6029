/* actions.c - what each action of the lifecycle does to boundary and ledger, and which event comes of it.
 *
 * An effect's intent is in the ledger before it (contract R2): those up to enroll, and cleanup, in the accept transaction; the
 * launch's in one of its own. The observation waits in the journal for the next commit. So a short run has three transactions: accept,
 * intent, seal. */
#include "runner/drive.h"

#include "base/fault.h"

/* The event of a step before launch: done, or failed. A worker that is gone is no failed step: nobody can say what became of it. */
static enum drive_came step_came(struct drive *drive, int rc, const struct err *failure, enum life_event_kind done,
                                 enum life_step step, struct life_event *ret)
{
	int64_t now_ns = drive_done_ns(drive);
	if (rc == 0) {
		*ret = event_of(done, now_ns);
	} else if (rc == ERR_LOST) {
		*ret = event_failed(LIFE_EV_BOUNDARY_LOST, now_ns, LIFE_REASON_WORKER_LOST, failure->text);
	} else {
		const char *reason = rc == ERR_UNENFORCEABLE ? "limit_unenforceable" : err_code_name(rc);
		*ret = event_failed(LIFE_EV_STEP_FAILED, now_ns, reason, failure->text);
		ret->step = step;
	}
	return CAME_EVENT;
}

static enum drive_came prepare(struct drive *drive, struct life_event *ret)
{
	struct boundary_spec spec = {
		.plan = drive->plan,
		.store = drive->store,
		.standard_output = drive->standard_output,
		.standard_error = drive->standard_error,
	};
	struct err failure = ERR_INIT;
	spec.identity = drive_identity(drive);
	int rc = drive->boundary->ops->prepare(drive->boundary, &spec, &drive->evidence, &failure);
	if (rc == 0)
		rc = FAULT_ERR("run.preparing", &failure);
	return step_came(drive, rc, &failure, LIFE_EV_PREPARED, STEP_PREPARE, ret);
}

static enum drive_came create_suspended(struct drive *drive, struct life_event *ret)
{
	struct err failure = ERR_INIT;
	int rc = drive->boundary->ops->create_suspended(drive->boundary, &drive->evidence, &failure);
	if (rc == 0)
		rc = FAULT_ERR("run.suspended", &failure);
	return step_came(drive, rc, &failure, LIFE_EV_SUSPENDED, STEP_CREATE, ret);
}

static enum drive_came enroll(struct drive *drive, struct life_event *ret)
{
	struct err failure = ERR_INIT;
	int rc = drive->boundary->ops->enroll(drive->boundary, &drive->evidence, &failure);
	if (rc == 0)
		rc = FAULT_ERR("run.enrolled", &failure);
	return step_came(drive, rc, &failure, LIFE_EV_ENROLLED, STEP_ENROLL, ret);
}

/* The durable fence. A cancellation that came first wins; a lease that is lost ends everything (R7). */
static enum drive_came commit_intent(struct drive *drive, struct life_event *ret, struct err *err)
{
	const struct ledger_attempt *attempt = &drive->attempt;
	int rc = journal_add(&drive->journal, "launch_intent",
	                     json_pack("{s:I, s:s}", "at_ns", (json_int_t)drive_now(drive), "boundary", attempt->boundary_id), err);
	if (rc < 0)
		return CAME_FAILURE;
	struct err failure = ERR_INIT;
	rc = drive->ledger->ops->commit_launch_intent(drive->ledger, attempt->attempt_id, attempt->owner_id, attempt->generation,
	                                              drive->journal.records, drive->journal.count, &failure);
	if (rc == 0) {
		journal_done(&drive->journal);
		rc = FAULT_ERR("run.intent", &failure);
		return step_came(drive, rc, &failure, LIFE_EV_INTENT_DURABLE, STEP_FENCE, ret);
	}
	journal_drop_last(&drive->journal);
	if (rc == ERR_FENCED) {
		err_set(err, rc, "%s", failure.text);
		return CAME_FAILURE;
	}
	if (rc == ERR_STATE && drive_hear_ledger(drive, ret, NULL) == CAME_EVENT)
		return CAME_EVENT;
	return step_came(drive, rc, &failure, LIFE_EV_INTENT_DURABLE, STEP_FENCE, ret);
}

static enum drive_came launch(struct drive *drive, struct life_event *ret)
{
	struct err failure = ERR_INIT;
	int rc = drive->boundary->ops->launch(drive->boundary, &failure);
	if (rc < 0)
		return step_came(drive, rc, &failure, LIFE_EV_LAUNCHED, STEP_LAUNCH, ret);
	(void)FAULT("run.launched");
	*ret = event_of(LIFE_EV_LAUNCHED, drive_done_ns(drive));
	drive->launched_at_ms = clock_wall_ms();
	drive->settle_at_ns = ret->at_ns + SETTLE_MS * NS_PER_MS;
	if (drive->request && drive->request->launched)
		drive->request->launched(drive->request->context);
	return CAME_EVENT;
}

/* Failures of these two show in what observe says next; what never comes is given up on. */
static enum drive_came terminate(struct drive *drive)
{
	int64_t grace_ms = drive->life.stop == STOP_CANCEL ? drive->life.grace_ms : drive->life.limit_grace_ms;
	(void)drive->boundary->ops->terminate(drive->boundary, NULL);
	drive->grace_at_ns = drive_now(drive) + grace_ms * NS_PER_MS;
	return CAME_NOTHING;
}

static enum drive_came kill_unit(struct drive *drive)
{
	(void)FAULT("run.killing");
	(void)drive->boundary->ops->kill(drive->boundary, NULL);
	drive->grace_at_ns = INT64_MAX;
	drive->give_up_at_ns = drive_now(drive) + drive->plan->limits.cleanup_ms * NS_PER_MS;
	return CAME_NOTHING;
}

static enum drive_came drain(struct drive *drive, struct life_event *ret)
{
	struct err failure = ERR_INIT;
	(void)FAULT("run.exited");
	int rc = drive->boundary->ops->drain(drive->boundary, &drive->retained, &failure);
	if (rc == 0)
		rc = FAULT_ERR("run.drained", &failure);
	if (rc == 0) {
		*ret = event_of(LIFE_EV_DRAINED, drive_done_ns(drive));
		ret->stdout_retained = drive->retained.stdout_retained;
		ret->stderr_retained = drive->retained.stderr_retained;
	} else {
		*ret = event_failed(LIFE_EV_BOUNDARY_LOST, drive_now(drive), reason_of(rc),
		                    failure.text);
	}
	drive->drain_ms = (ret->at_ns - drive->stepped_ns) / NS_PER_MS;
	return CAME_EVENT;
}

static enum drive_came cleanup(struct drive *drive, struct life_event *ret)
{
	struct err failure = ERR_INIT;
	drive->cleanup_from_ns = drive->stepped_ns;
	int rc = drive->boundary->ops->cleanup(drive->boundary, &drive->usage, &failure);
	if (rc == 0)
		rc = FAULT_ERR("run.cleaning", &failure);
	*ret = rc == 0 ? event_of(LIFE_EV_CLEANED, drive_done_ns(drive))
	               : event_failed(LIFE_EV_CLEANUP_FAILED, drive_now(drive), err_code_name(rc), failure.text);
	return CAME_EVENT;
}

static enum drive_came verify_empty(struct drive *drive, struct life_event *ret)
{
	struct err failure = ERR_INIT;
	int rc = drive->boundary->ops->verify_empty(drive->boundary, &failure);
	if (rc == 0)
		rc = FAULT_ERR("run.cleaned", &failure);
	*ret = rc == 0 ? event_of(LIFE_EV_VERIFIED_EMPTY, drive_done_ns(drive))
	               : event_failed(LIFE_EV_VERIFY_FAILED, drive_now(drive), err_code_name(rc), failure.text);
	drive->cleanup_took_ms = (ret->at_ns - drive->cleanup_from_ns) / NS_PER_MS;
	return CAME_EVENT;
}

/* Durable as far as a crash goes: after a power cut nothing of a native boundary is left. The slot stays taken until the seal. */
static enum drive_came quarantine(struct drive *drive, struct err *err)
{
	struct verdict verdict;
	drive_decide(drive, &verdict);
	int rc = journal_add(&drive->journal, "quarantined", json_pack("{s:s}", "reason", drive->life.boundary_reason), err);
	if (rc == 0)
		rc = journal_add(&drive->journal, "provisional_result", body_verdict(&verdict), err);
	if (rc == 0)
		rc = drive_append(drive, err);
	if (rc < 0)
		return CAME_FAILURE;
	drive->result.verdict = verdict;
	drive->result.provisional = true;
	drive->result.usage = drive->usage;
	if (drive->request && drive->request->provisional)
		drive->request->provisional(drive->request->context, &verdict);
	return CAME_NOTHING;
}

static enum drive_came recover(struct drive *drive, struct life_event *ret, struct err *err)
{
	int rc = drive_append(drive, err); /* the intent: recovery_started */
	if (rc < 0)
		return CAME_FAILURE;
	(void)FAULT("recover.started");
	struct err failure = ERR_INIT;
	struct boundary_identity identity = drive_identity(drive);
	int survivors = 0;
	drive->cleanup_from_ns = clock_mono_ns();
	rc = drive->provider->ops->recover(drive->provider->context, &identity, drive->cleanup_ms, &survivors, &failure);
	if (rc == 0)
		rc = FAULT_ERR("recover.cleaned", &failure);
	drive->cleanup_took_ms = (clock_mono_ns() - drive->cleanup_from_ns) / NS_PER_MS;
	if (rc == 0) {
		drive->usage.survivors_killed = survivors;
		*ret = event_of(LIFE_EV_VERIFIED_EMPTY, drive_now(drive));
	} else {
		*ret = event_failed(LIFE_EV_CLEANUP_FAILED, drive_now(drive), err_code_name(rc), failure.text);
	}
	return CAME_EVENT;
}

static enum drive_came seal(struct drive *drive, struct life_event *ret, struct err *err)
{
	if (drive_seal(drive, err) < 0)
		return CAME_FAILURE;
	(void)FAULT("run.sealed");
	*ret = event_of(LIFE_EV_SEALED, drive_now(drive));
	return CAME_EVENT;
}

static enum drive_came abandon(struct drive *drive, struct life_event *ret, struct err *err)
{
	const struct ledger_attempt *attempt = &drive->attempt;
	int64_t now_ns = drive_now(drive);
	drive_decide(drive, &drive->result.verdict);
	int rc = journal_add(&drive->journal, "abandoned",
	                     json_pack("{s:I, s:s}", "at_ns", (json_int_t)now_ns, "reason", drive->life.reason), err);
	if (rc == 0)
		rc = FAULT_ERR("recover.abandoning", err);
	if (rc == 0)
		rc = drive->ledger->ops->abandon(drive->ledger, attempt->attempt_id, attempt->owner_id, attempt->generation,
		                                 drive->journal.records, drive->journal.count, err);
	if (rc < 0)
		return CAME_FAILURE;
	journal_done(&drive->journal);
	drive->result.requeued = true;
	*ret = event_of(LIFE_EV_ABANDONED, now_ns);
	return CAME_EVENT;
}

enum drive_came drive_perform(struct drive *drive, enum life_action action, struct life_event *ret, struct err *err)
{
	switch (action) {
	case LIFE_DO_PREPARE:
		return prepare(drive, ret);
	case LIFE_DO_CREATE_SUSPENDED:
		return create_suspended(drive, ret);
	case LIFE_DO_ENROLL:
		return enroll(drive, ret);
	case LIFE_DO_COMMIT_INTENT:
		return commit_intent(drive, ret, err);
	case LIFE_DO_LAUNCH:
		return launch(drive, ret);
	case LIFE_DO_OBSERVE:
		return drive_observe(drive, ret, err);
	case LIFE_DO_TERMINATE:
		return terminate(drive);
	case LIFE_DO_KILL:
		return kill_unit(drive);
	case LIFE_DO_DRAIN:
		return drain(drive, ret);
	case LIFE_DO_CLEANUP:
		return cleanup(drive, ret);
	case LIFE_DO_VERIFY_EMPTY:
		return verify_empty(drive, ret);
	case LIFE_DO_QUARANTINE:
		return quarantine(drive, err);
	case LIFE_DO_RECOVER:
		return recover(drive, ret, err);
	case LIFE_DO_SEAL:
		return seal(drive, ret, err);
	case LIFE_DO_ABANDON:
		return abandon(drive, ret, err);
	case LIFE_ACTION_COUNT:
		break;
	}
	err_set(err, ERR_INTERNAL, "no such action");
	return CAME_FAILURE;
}
