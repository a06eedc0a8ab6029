/* runner.c - the conveyor: an action of the lifecycle is performed, what came of it is stepped and recorded, until the seal.
 *
 * Fault points, each between an effect and its observation: run.preparing (prepare is done), run.suspended, run.enrolled,
 * run.intent (the intent is durable, the gate shut), run.launched (the gate is open), run.cancelled (a cancellation is durable),
 * run.killing (a limit was hit or a grace is over), run.exited (main has exited), run.drained, run.cleaning (cleanup is done),
 * run.cleaned (verified empty), run.collected (the outputs are in the store), run.seal (all is ready for the seal's transaction),
 * run.sealed (it is committed); recover.started (a recovery has said so), recover.cleaned (and has verified it empty),
 * recover.abandoning (and is about to queue the run again). */
#include "runner/drive.h"

#include <stdlib.h>
#include <string.h>

/* Whatever passed since the lease was given is gone from it, a suspended machine's time too. */
void drive_init(struct drive *drive, int64_t leased_at_ns)
{
	drive->usage = BOUNDARY_USAGE_UNKNOWN;
	drive->admitted_at_ms = drive->launched_at_ms = drive->exited_at_ms = -1;
	drive->drain_ms = drive->cleanup_took_ms = drive->wall_ns = -1;
	drive->settle_at_ns = drive->grace_at_ns = drive->give_up_at_ns = INT64_MAX;
	int64_t leased_ns = drive_now(drive) - (clock_boot_ns() - leased_at_ns), ttl_ns = drive->attempt.ttl_ms * NS_PER_MS;
	drive->leased_at_ns = leased_at_ns;
	drive->renew_at_ns = leased_ns + ttl_ns / LEASE_SHARE;
	drive->lease_ends_at_ns = leased_ns + ttl_ns;
	drive_tell_lease(drive);
}

void drive_done(struct drive *drive)
{
	journal_done(&drive->journal);
	free(drive->streams[0].data);
	free(drive->streams[1].data);
	artifact_list_done(&drive->artifacts);
	drive_release_store(drive);
}

int64_t drive_now(struct drive *drive)
{
	int64_t now_ns = clock_mono_ns();
	if (now_ns > drive->now_ns)
		drive->now_ns = now_ns;
	return drive->now_ns;
}

int64_t drive_done_ns(struct drive *drive)
{
	int64_t now_ns = drive_now(drive), done_ns = drive->boundary->done_ns;
	return done_ns > drive->stepped_ns && done_ns < now_ns ? done_ns : now_ns;
}

struct boundary_identity drive_identity(const struct drive *drive)
{
	struct boundary_identity identity;
	say(identity.ledger_id, sizeof(identity.ledger_id), drive->ledger->ops->id(drive->ledger));
	say(identity.boundary_id, sizeof(identity.boundary_id), drive->attempt.boundary_id);
	return identity;
}

/* A stop is heard before an action, except before one that a stop has asked for, or that listens by itself. */
static enum drive_came listen(struct drive *drive, enum life_action next, struct life_event *ret, struct err *err)
{
	switch (next) {
	case LIFE_DO_SEAL: { /* the last moment at which a cancellation counts (R8) */
		enum drive_came came = drive_hear(drive, ret, err);
		return came == CAME_NOTHING ? drive_hear_ledger(drive, ret, err) : came;
	}
	case LIFE_DO_PREPARE:
	case LIFE_DO_CREATE_SUSPENDED:
	case LIFE_DO_ENROLL:
	case LIFE_DO_COMMIT_INTENT:
	case LIFE_DO_LAUNCH:
	case LIFE_DO_DRAIN:
	case LIFE_DO_CLEANUP:
	case LIFE_DO_VERIFY_EMPTY:
		return drive_hear(drive, ret, err);
	case LIFE_DO_OBSERVE:
	case LIFE_DO_TERMINATE:
	case LIFE_DO_KILL:
	case LIFE_DO_QUARANTINE:
	case LIFE_DO_RECOVER:
	case LIFE_DO_ABANDON: /* the queue hears of a cancellation by itself */
	case LIFE_ACTION_COUNT:
		break;
	}
	return CAME_NOTHING;
}

/* Whoever was stopped for so long that another has the lease now does nothing further (R7). What observes keeps the lease by itself; what
 * writes to the ledger is fenced there; and what ends a unit of ours need not wait. */
static enum drive_came keep_lease(struct drive *drive, enum life_action next, struct err *err)
{
	switch (next) {
	case LIFE_DO_PREPARE:
	case LIFE_DO_CREATE_SUSPENDED:
	case LIFE_DO_ENROLL:
	case LIFE_DO_LAUNCH:
	case LIFE_DO_DRAIN:
	case LIFE_DO_CLEANUP:
	case LIFE_DO_VERIFY_EMPTY:
	case LIFE_DO_RECOVER:
	case LIFE_DO_SEAL:
		return drive_keep_lease(drive, err);
	case LIFE_DO_COMMIT_INTENT:
	case LIFE_DO_OBSERVE:
	case LIFE_DO_TERMINATE:
	case LIFE_DO_KILL:
	case LIFE_DO_QUARANTINE:
	case LIFE_DO_ABANDON:
	case LIFE_ACTION_COUNT:
		break;
	}
	return CAME_NOTHING;
}

/* Performs the pending actions until an event comes of one, or none is left. */
static enum drive_came perform(struct drive *drive, struct life_actions *pending, struct life_event *ret, struct err *err)
{
	while (pending->count > 0) {
		enum life_action action = pending->list[0];
		enum drive_came came = listen(drive, action, ret, err);
		if (came == CAME_NOTHING)
			came = keep_lease(drive, action, err);
		if (came != CAME_NOTHING)
			return came;
		pending->count--;
		memmove(&pending->list[0], &pending->list[1], pending->count * sizeof(pending->list[0]));
		came = drive_perform(drive, action, ret, err);
		if (came != CAME_NOTHING)
			return came;
	}
	return CAME_NOTHING;
}

static void note_time(struct runner_times *times, const struct life_event *event)
{
	switch (event->kind) {
	case LIFE_EV_ADMIT:
		times->begun_ns = event->at_ns;
		break;
	case LIFE_EV_ENROLLED:
		times->enrolled_ns = event->at_ns;
		break;
	case LIFE_EV_LAUNCHED:
		times->launched_ns = event->at_ns;
		break;
	case LIFE_EV_MAIN_EXITED:
		times->exited_ns = event->at_ns;
		break;
	case LIFE_EV_VERIFIED_EMPTY:
		times->empty_ns = event->at_ns;
		break;
	case LIFE_EV_SEALED:
		times->sealed_ns = event->at_ns;
		break;
	case LIFE_EV_REFUSE:
	case LIFE_EV_PREPARED:
	case LIFE_EV_SUSPENDED:
	case LIFE_EV_STEP_FAILED:
	case LIFE_EV_INTENT_DURABLE:
	case LIFE_EV_STOP:
	case LIFE_EV_GRACE_OVER:
	case LIFE_EV_BOUNDARY_LOST:
	case LIFE_EV_DRAINED:
	case LIFE_EV_CLEANED:
	case LIFE_EV_CLEANUP_FAILED:
	case LIFE_EV_VERIFY_FAILED:
	case LIFE_EV_RECOVERY_STARTED:
	case LIFE_EV_ABANDONED:
	case LIFE_EVENT_COUNT:
		break;
	}
}

int drive_carry(struct drive *drive, const struct life_event *first, struct err *err)
{
	struct life_event event = *first;
	struct life_actions pending = {.count = 0};
	for (int move = 0; move < DRIVE_MOVES_MAX; move++) {
		struct life_actions next;
		drive->stepped_ns = event.at_ns;
		int rc = life_step(&drive->life, &event, &next, err);
		if (rc == 0)
			rc = drive_record(drive, &event, err);
		if (rc < 0)
			return rc;
		note_time(&drive->result.times, &event);
		if (next.count > 0)
			pending = next;
		struct err failure = ERR_INIT;
		switch (perform(drive, &pending, &event, &failure)) {
		case CAME_EVENT:
			break;
		case CAME_NOTHING:
			return 0; /* sealed, abandoned, or quarantined */
		case CAME_FAILURE:
			return err_set(err, failure.code, "%s", failure.text);
		}
	}
	return err_set(err, ERR_INTERNAL, "attempt %s does not come to an end", drive->attempt.attempt_id);
}

/* Nothing may run on when we cannot go on; the boundary itself stays for whoever recovers it. */
static int give_up(struct drive *drive, int code)
{
	if (drive->life.state >= LIFE_ADMITTED && drive->life.state < LIFE_CLEANING)
		(void)drive->boundary->ops->kill(drive->boundary, NULL);
	return code;
}

int runner_drive(const struct runner_request *request, struct runner_result *ret, struct err *err)
{
	const struct plan *plan = request->plan;
	if (strcmp(request->attempt.state, life_state_name(LIFE_QUEUED)) != 0)
		return err_set(err, ERR_STATE, "attempt %s is %s, not queued", request->attempt.attempt_id, request->attempt.state);
	struct drive *drive = calloc(1, sizeof(*drive));
	if (!drive)
		return err_set(err, ERR_NO_MEMORY, "drive attempt %s", request->attempt.attempt_id);
	drive->ledger = request->ledger;
	drive->key = request->key;
	drive->store = request->store;
	drive_enter_boundary(drive, request->boundary);
	drive->plan = plan;
	drive->attempt = request->attempt;
	drive->principal = request->principal;
	drive->manifest = plan->manifest;
	drive->policy = plan->policy;
	drive->admission = request->admission;
	drive->has_admission = true;
	drive->standard_output = request->standard_output;
	drive->standard_error = request->standard_error;
	drive->request = request;
	drive_init(drive, request->leased_at_ns);
	drive->admitted_at_ms = request->admitted_at_ms;
	life_init(&drive->life, plan->limits.cancel_grace_ms, plan->limits.on_limit_grace_ms);

	struct life_event admit = event_of(LIFE_EV_ADMIT, drive_now(drive));
	drive->began_ns = admit.at_ns;
	int rc = drive_carry(drive, &admit, err);
	if (rc == 0)
		*ret = drive->result;
	else
		rc = give_up(drive, rc);
	drive_leave_boundary(drive);
	drive_done(drive);
	free(drive);
	return rc;
}
