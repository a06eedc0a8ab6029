/* transitions.h - the shape of the transition table; private to lifecycle/ and its tests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lifecycle/lifecycle.h"

/* When a row holds. At most one row holds for a state and an event: the guards of one pair exclude each other. */
enum life_guard {
	WHEN_ALWAYS,
	WHEN_NO_INTENT,
	WHEN_INTENT,
	WHEN_COMMIT_MAY_COME, /* nothing failed that comes before the commit of the intent */
	WHEN_CANCEL,          /* the stop cause is a cancellation */
	WHEN_STOP_KILLS,      /* no grace is left to this stop: see stop_answer() */
	WHEN_STOP_TERMINATES,
	WHEN_STOP_CHANGES_NOTHING,
	WHEN_TERMINATING,     /* TERM was sent and KILL was not */
	WHEN_KILLING,
	WHEN_NOT_CLEANED,
	WHEN_CLEANED,
	WHEN_REQUEUE,         /* another attempt is to follow this one */
	WHEN_SEAL,            /* none is */
	LIFE_GUARD_COUNT
};

/* What a row notes in struct life besides the next state. */
enum life_effect {
	NOTE_NOTHING,
	NOTE_REFUSAL,
	NOTE_CANCEL_OF_NOTHING, /* a stop before anything was made */
	NOTE_STOP,
	NOTE_STOP_TERMINATE,
	NOTE_STOP_KILL,
	NOTE_KILL,
	NOTE_STEP_FAILED,
	NOTE_INTENT,
	NOTE_LAUNCH,
	NOTE_EXIT,
	NOTE_DRAIN,
	NOTE_LOST_BEFORE_LAUNCH,
	NOTE_LOST,              /* after the launch intent */
	NOTE_LOST_KILL,
	NOTE_CLEANED,
	NOTE_EMPTY,
	NOTE_QUARANTINE,
	NOTE_RECOVERY,
	LIFE_EFFECT_COUNT
};

#define LIFE_SAME_STATE LIFE_STATE_COUNT /* `to` of a row that stays where it is */

struct life_transition {
	unsigned from; /* bit 1 << state for each state that the row is for */
	enum life_event_kind event;
	enum life_guard when;
	enum life_state to;
	enum life_effect note;
	struct life_actions actions;
};

extern const struct life_transition life_transitions[];
extern const size_t life_transition_count;

/* rules.c: the meaning of guards and notes. */
bool life_guard_holds(enum life_guard guard, const struct life *life, const struct life_event *event);
void life_note(enum life_effect effect, struct life *life, const struct life_event *event);

/* Is this row for this event in the present state? */
bool life_row_holds(const struct life_transition *row, const struct life *life, const struct life_event *event);
