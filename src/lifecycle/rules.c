/* rules.c - what the guards and notes of the transition table mean. */
#include <string.h>

#include "lifecycle/transitions.h"

/* What a stop means for a unit that runs: a limit kills at once unless a grace was asked for; a cancellation terminates first,
 * and a second one does not wait any longer. Once KILL is sent nothing can be added to it. */
static enum life_guard stop_answer(const struct life *life, enum stop_cause cause)
{
	if (life->killing)
		return WHEN_STOP_CHANGES_NOTHING;
	if (cause == STOP_CANCEL)
		return life->terminating || life->grace_ms == 0 ? WHEN_STOP_KILLS : WHEN_STOP_TERMINATES;
	if (life->limit_grace_ms == 0)
		return WHEN_STOP_KILLS;
	return life->terminating ? WHEN_STOP_CHANGES_NOTHING : WHEN_STOP_TERMINATES;
}

bool life_guard_holds(enum life_guard guard, const struct life *life, const struct life_event *event)
{
	switch (guard) {
	case WHEN_ALWAYS:
		return true;
	case WHEN_NO_INTENT:
		return !life->intent;
	case WHEN_INTENT:
		return life->intent;
	case WHEN_COMMIT_MAY_COME:
		return !life->intent && (life->failed_step == STEP_NONE || life->failed_step == STEP_FENCE);
	case WHEN_CANCEL:
		return event->cause == STOP_CANCEL;
	case WHEN_STOP_KILLS:
	case WHEN_STOP_TERMINATES:
	case WHEN_STOP_CHANGES_NOTHING:
		return stop_answer(life, event->cause) == guard;
	case WHEN_TERMINATING:
		return life->terminating && !life->killing;
	case WHEN_KILLING:
		return life->killing;
	case WHEN_NOT_CLEANED:
		return !life->cleaned;
	case WHEN_CLEANED:
		return life->cleaned;
	case WHEN_REQUEUE:
	case WHEN_SEAL:
		return life->requeue == (guard == WHEN_REQUEUE);
	case LIFE_GUARD_COUNT:
		break;
	}
	return false;
}

static void copy_text(char *to, size_t size, const char *from)
{
	size_t length = strnlen(from, size - 1);
	memcpy(to, from, length);
	to[length] = '\0';
}

/* The first failure is the one that tells why; later ones follow from it. */
static void fail_step(struct life *life, enum life_step step, const char *reason, const char *detail)
{
	if (life->failed_step != STEP_NONE)
		return;
	life->failed_step = step;
	copy_text(life->reason, sizeof(life->reason), reason);
	copy_text(life->detail, sizeof(life->detail), detail);
}

static void blame_boundary(struct life *life, const char *reason, const char *detail)
{
	if (life->boundary_reason[0] != '\0')
		return;
	copy_text(life->boundary_reason, sizeof(life->boundary_reason), reason);
	copy_text(life->boundary_detail, sizeof(life->boundary_detail), detail);
}

static void note_stop(struct life *life, const struct life_event *event)
{
	if (life->stop != STOP_NONE)
		return;
	life->stop = event->cause;
	life->stop_at_ns = event->at_ns;
}

static void note_exit(struct life *life, const struct life_event *event)
{
	life->exit = event->exit;
	life->exit.killed_by_us = event->exit.how == MAIN_SIGNALED &&
	                          (event->exit.killed_by_us || life->terminating || life->killing);
	life->descendants_alive = event->descendants_alive;
}

/* The step that is under way in a state before the launch, which is the one that fails when everything around it is lost. For a
 * state behind the launch, known only from a ledger, the launch itself is what never took place. */
static enum life_step step_under_way(const struct life *life)
{
	switch (life->state) {
	case LIFE_QUEUED:
	case LIFE_ADMITTED:
		return STEP_PREPARE;
	case LIFE_PREPARING:
		return STEP_CREATE;
	case LIFE_SUSPENDED:
		return STEP_ENROLL;
	case LIFE_ENROLLED:
		return STEP_FENCE;
	case LIFE_RUNNING:
	case LIFE_EXITED:
	case LIFE_CLEANING:
	case LIFE_CLEANED:
	case LIFE_QUARANTINED:
	case LIFE_RECOVERING:
	case LIFE_SEALED:
	case LIFE_ABANDONED:
	case LIFE_STATE_COUNT:
		break;
	}
	return STEP_LAUNCH;
}

/* Main's exit, what it wrote and what it used up, all of it known: cleanup reads the usage, and before that nobody can tell
 * whether an exit code of 0 hides an OOM kill. */
static bool end_proven(const struct life *life)
{
	return life->exit.how != MAIN_UNKNOWN && life->drained && life->cleaned;
}

/* May guest code have run without anybody left who can say how it ended? A recorded stop cause says it, a proven end says it,
 * and so does misbehaviour that was seen. */
static bool end_unknown(const struct life *life)
{
	return life->intent && life->failed_step == STEP_NONE && life->stop == STOP_NONE && !life->boundary_misbehaved &&
	       !end_proven(life);
}

static void note_lost(struct life *life, const struct life_event *event)
{
	if (strcmp(event->reason, LIFE_REASON_WORKER_LOST) == 0 && end_unknown(life))
		life->interrupted = true;
	else
		life->boundary_misbehaved = true;
	blame_boundary(life, event->reason[0] != '\0' ? event->reason : life_event_name(event->kind), event->detail);
}

static void note_quarantine(struct life *life, const struct life_event *event)
{
	life->was_quarantined = true;
	life->boundary_misbehaved = true;
	blame_boundary(life, LIFE_REASON_NOT_VERIFIED_EMPTY, event->detail[0] != '\0' ? event->detail : event->reason);
}

/* It is lost only when nothing had failed before. */
static void lose_step(struct life *life, const char *reason, const char *detail)
{
	life->lost = life->lost || life->failed_step == STEP_NONE;
	fail_step(life, step_under_way(life), reason, detail);
}

static void note_recovery(struct life *life, const struct life_event *event)
{
	const char *reason = event->reason[0] != '\0' ? event->reason : LIFE_REASON_KEEPER_LOST;

	if (!life->intent && life->stop == STOP_NONE)
		lose_step(life, reason, event->detail);
	life->requeue = life->retriable && life->lost && !life->intent && life->stop == STOP_NONE;
	if (end_unknown(life)) {
		life->interrupted = true;
		blame_boundary(life, reason, event->detail);
	}
	life->cleaned = false;
	life->verified_empty = false;
}

void life_note(enum life_effect effect, struct life *life, const struct life_event *event)
{
	switch (effect) {
	case NOTE_REFUSAL:
		fail_step(life, STEP_ADMISSION, event->reason, event->detail);
		life->verified_empty = true;
		break;
	case NOTE_CANCEL_OF_NOTHING:
		note_stop(life, event);
		life->verified_empty = true;
		break;
	case NOTE_STOP:
		note_stop(life, event);
		break;
	case NOTE_STOP_TERMINATE:
		note_stop(life, event);
		life->terminating = true;
		break;
	case NOTE_STOP_KILL:
		note_stop(life, event);
		life->killing = true;
		break;
	case NOTE_KILL:
		life->killing = true;
		break;
	case NOTE_STEP_FAILED:
		fail_step(life, event->step, event->reason, event->detail);
		break;
	case NOTE_INTENT:
		life->intent = true;
		break;
	case NOTE_LAUNCH:
		life->launched = true;
		life->launched_at_ns = event->at_ns;
		break;
	case NOTE_EXIT:
		note_exit(life, event);
		break;
	case NOTE_DRAIN:
		life->drained = true;
		life->retained = event->stdout_retained || event->stderr_retained;
		break;
	case NOTE_LOST_BEFORE_LAUNCH:
		if (strcmp(event->reason, LIFE_REASON_WORKER_LOST) == 0)
			lose_step(life, event->reason, event->detail);
		else
			fail_step(life, step_under_way(life), event->reason, event->detail);
		break;
	case NOTE_LOST_KILL:
		life->killing = true;
		note_lost(life, event);
		break;
	case NOTE_LOST:
		note_lost(life, event);
		break;
	case NOTE_CLEANED:
		life->cleaned = true;
		break;
	case NOTE_EMPTY:
		life->cleaned = true;
		life->verified_empty = true;
		break;
	case NOTE_QUARANTINE:
		note_quarantine(life, event);
		break;
	case NOTE_RECOVERY:
		note_recovery(life, event);
		break;
	case NOTE_NOTHING:
	case LIFE_EFFECT_COUNT:
		break;
	}
}
