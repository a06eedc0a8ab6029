/* lifecycle.c - takes an attempt from one state to the next by the transition table, and keeps its invariants.
 *
 * A step is worked out on a copy, which replaces the caller's only when the table allows the move and every invariant still
 * holds. */
#include "lifecycle/lifecycle.h"

#include <string.h>

#include "lifecycle/transitions.h"

enum { SIGNAL_MAX = 64, EXIT_CODE_MAX = 255 };

void life_init(struct life *life, int64_t cancel_grace_ms, int64_t limit_grace_ms)
{
	*life = (struct life){
		.state = LIFE_QUEUED,
		.grace_ms = cancel_grace_ms,
		.limit_grace_ms = limit_grace_ms,
		.descendants_alive = -1,
	};
}

void life_restore(struct life *life, enum life_state state, bool intent, bool was_quarantined)
{
	life_init(life, 0, 0);
	life->state = state;
	life->intent = intent;
	life->launched = state == LIFE_RUNNING || state == LIFE_EXITED;
	life->verified_empty = state == LIFE_CLEANED || state == LIFE_SEALED || state == LIFE_ABANDONED;
	life->cleaned = life->verified_empty;
	if (was_quarantined || state == LIFE_QUARANTINED) {
		life->was_quarantined = true;
		life->boundary_misbehaved = true;
		memcpy(life->boundary_reason, LIFE_REASON_NOT_VERIFIED_EMPTY, sizeof(LIFE_REASON_NOT_VERIFIED_EMPTY));
	}
}

bool life_stoppable(const struct life *life)
{
	return life->state <= LIFE_CLEANED;
}

static bool exit_makes_sense(const struct main_exit *main_exit)
{
	switch (main_exit->how) {
	case MAIN_EXITED:
		return main_exit->code >= 0 && main_exit->code <= EXIT_CODE_MAX;
	case MAIN_SIGNALED:
		return main_exit->signal >= 1 && main_exit->signal <= SIGNAL_MAX;
	case MAIN_NOT_EXECUTED:
		return main_exit->code > 0;
	case MAIN_UNKNOWN:
		break;
	}
	return false;
}

static bool event_makes_sense(const struct life_event *event)
{
	if (!memchr(event->reason, '\0', sizeof(event->reason)) || !memchr(event->detail, '\0', sizeof(event->detail)))
		return false;
	if (event->kind == LIFE_EV_STOP)
		return event->cause > STOP_NONE && event->cause < STOP_CAUSE_COUNT;
	if (event->kind == LIFE_EV_STEP_FAILED)
		return event->step >= STEP_PREPARE && event->step <= STEP_LAUNCH;
	if (event->kind == LIFE_EV_MAIN_EXITED)
		return exit_makes_sense(&event->exit);
	return event->kind < LIFE_EVENT_COUNT;
}

bool life_row_holds(const struct life_transition *row, const struct life *life, const struct life_event *event)
{
	return row->event == event->kind && (row->from & (1u << life->state)) && life_guard_holds(row->when, life, event);
}

static const struct life_transition *find_row(const struct life *life, const struct life_event *event)
{
	for (size_t i = 0; i < life_transition_count; i++)
		if (life_row_holds(&life_transitions[i], life, event))
			return &life_transitions[i];
	return NULL;
}

int life_step(struct life *life, const struct life_event *event, struct life_actions *ret, struct err *err)
{
	if (!event_makes_sense(event))
		return err_set(err, ERR_INVALID, "event %s contradicts itself", life_event_name(event->kind));

	const struct life_transition *row = find_row(life, event);
	if (!row)
		return err_set(err, ERR_STATE, "event %s is not allowed in state %s", life_event_name(event->kind),
		               life_state_name(life->state));

	struct life next = *life;
	life_note(row->note, &next, event);
	if (row->to != LIFE_SAME_STATE)
		next.state = row->to;

	int result = life_check(&next, err);
	if (result < 0)
		return err_context(err, result, "event %s in state %s", life_event_name(event->kind), life_state_name(life->state));

	*life = next;
	*ret = row->actions;
	return 0;
}

/* --- invariants: each must hold in every state that can be reached
 * ------------------------------------------------------------------- */

static bool before_launch(const struct life *life)
{
	return life->state <= LIFE_ENROLLED;
}

static bool launch_has_an_intent(const struct life *life)
{
	return !life->launched || life->intent;
}

static bool intent_comes_after_enroll(const struct life *life)
{
	return !life->intent || life->state >= LIFE_ENROLLED;
}

static bool running_was_launched(const struct life *life)
{
	return (life->state != LIFE_RUNNING && life->state != LIFE_EXITED) || life->launched;
}

static bool nothing_has_happened_before_launch(const struct life *life)
{
	return !before_launch(life) || (!life->launched && life->stop == STOP_NONE && life->failed_step == STEP_NONE &&
	                                !life->interrupted && !life->boundary_misbehaved);
}

static bool failed_step_never_launches(const struct life *life)
{
	return life->failed_step == STEP_NONE || !life->launched;
}

static bool only_the_launched_ends(const struct life *life)
{
	return life->launched || (life->exit.how == MAIN_UNKNOWN && !life->terminating && !life->killing && !life->drained);
}

static bool only_an_intent_is_interrupted(const struct life *life)
{
	return !life->interrupted || life->intent;
}

static bool verified_empty_is_cleaned_or_over(const struct life *life)
{
	return life->verified_empty == (life->state >= LIFE_CLEANED && life->state != LIFE_QUARANTINED && life->state != LIFE_RECOVERING);
}

static bool only_without_an_intent_another_follows(const struct life *life)
{
	return (life->state != LIFE_ABANDONED && !life->requeue) || (!life->intent && !life->launched);
}

static bool quarantine_is_remembered(const struct life *life)
{
	return (life->state != LIFE_QUARANTINED || life->was_quarantined) && (!life->was_quarantined || life->boundary_misbehaved);
}

static bool quarantine_leads_to_recovery(const struct life *life)
{
	return !life->was_quarantined || life->state >= LIFE_CLEANED;
}

static bool blame_has_a_reason(const struct life *life)
{
	return (!life->boundary_misbehaved && !life->interrupted) || life->boundary_reason[0] != '\0';
}

static const struct invariant {
	const char *text;
	bool (*holds)(const struct life *life);
} invariants[] = {
	{"R3: what is launched has a launch intent", launch_has_an_intent},
	{"R1: an intent exists from `enrolled` on only", intent_comes_after_enroll},
	{"R1: what runs was launched", running_was_launched},
	{"nothing that forbids a launch is known in a state that leads to it", nothing_has_happened_before_launch},
	{"a failed step never launches", failed_step_never_launches},
	{"R4: only what was launched ends", only_the_launched_ends},
	{"R9: only what has an intent is interrupted", only_an_intent_is_interrupted},
	{"R3: another attempt follows only where there is no intent", only_without_an_intent_another_follows},
	{"R6: only what is verified empty is cleaned, sealed or abandoned", verified_empty_is_cleaned_or_over},
	{"R6: a quarantine is remembered", quarantine_is_remembered},
	{"R6: a quarantine leads to a recovery and the end, to nothing else", quarantine_leads_to_recovery},
	{"what was lost or misbehaved has a reason", blame_has_a_reason},
};

int life_check(const struct life *life, struct err *err)
{
	for (size_t i = 0; i < sizeof(invariants) / sizeof(invariants[0]); i++)
		if (!invariants[i].holds(life))
			return err_set(err, ERR_INTERNAL, "broken in state %s: %s", life_state_name(life->state),
			               invariants[i].text);
	return 0;
}
