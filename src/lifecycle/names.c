/* names.c - the words for states, events, actions, steps and stop causes, as ledger, records and traces spell them. */
#include <string.h>

#include "lifecycle/lifecycle.h"

static const char *const state_names[LIFE_STATE_COUNT] = {
	[LIFE_QUEUED] = "queued",
	[LIFE_ADMITTED] = "admitted",
	[LIFE_PREPARING] = "preparing",
	[LIFE_SUSPENDED] = "suspended",
	[LIFE_ENROLLED] = "enrolled",
	[LIFE_RUNNING] = "running",
	[LIFE_EXITED] = "exited",
	[LIFE_CLEANING] = "cleaning",
	[LIFE_CLEANED] = "cleaned",
	[LIFE_QUARANTINED] = "quarantined",
	[LIFE_RECOVERING] = "recovering",
	[LIFE_SEALED] = "sealed",
	[LIFE_ABANDONED] = "abandoned",
};

static const char *const event_names[LIFE_EVENT_COUNT] = {
	[LIFE_EV_ADMIT] = "admit",
	[LIFE_EV_REFUSE] = "refuse",
	[LIFE_EV_PREPARED] = "prepared",
	[LIFE_EV_SUSPENDED] = "suspended",
	[LIFE_EV_ENROLLED] = "enrolled",
	[LIFE_EV_STEP_FAILED] = "step_failed",
	[LIFE_EV_INTENT_DURABLE] = "intent_durable",
	[LIFE_EV_LAUNCHED] = "launched",
	[LIFE_EV_STOP] = "stop",
	[LIFE_EV_GRACE_OVER] = "grace_over",
	[LIFE_EV_MAIN_EXITED] = "main_exited",
	[LIFE_EV_DRAINED] = "drained",
	[LIFE_EV_BOUNDARY_LOST] = "boundary_lost",
	[LIFE_EV_CLEANED] = "cleaned",
	[LIFE_EV_CLEANUP_FAILED] = "cleanup_failed",
	[LIFE_EV_VERIFIED_EMPTY] = "verified_empty",
	[LIFE_EV_VERIFY_FAILED] = "verify_failed",
	[LIFE_EV_RECOVERY_STARTED] = "recovery_started",
	[LIFE_EV_SEALED] = "sealed",
	[LIFE_EV_ABANDONED] = "abandoned",
};

static const char *const action_names[LIFE_ACTION_COUNT] = {
	[LIFE_DO_PREPARE] = "prepare",
	[LIFE_DO_CREATE_SUSPENDED] = "create_suspended",
	[LIFE_DO_ENROLL] = "enroll",
	[LIFE_DO_COMMIT_INTENT] = "commit_intent",
	[LIFE_DO_LAUNCH] = "launch",
	[LIFE_DO_OBSERVE] = "observe",
	[LIFE_DO_TERMINATE] = "terminate",
	[LIFE_DO_KILL] = "kill",
	[LIFE_DO_DRAIN] = "drain",
	[LIFE_DO_CLEANUP] = "cleanup",
	[LIFE_DO_VERIFY_EMPTY] = "verify_empty",
	[LIFE_DO_QUARANTINE] = "quarantine",
	[LIFE_DO_RECOVER] = "recover",
	[LIFE_DO_SEAL] = "seal",
	[LIFE_DO_ABANDON] = "abandon",
};

static const char *const step_names[STEP_COUNT] = {
	[STEP_NONE] = "none",
	[STEP_ADMISSION] = "admission",
	[STEP_PREPARE] = "prepare",
	[STEP_CREATE] = "create",
	[STEP_ENROLL] = "enroll",
	[STEP_FENCE] = "fence",
	[STEP_LAUNCH] = "launch",
};

static const char *const cause_names[STOP_CAUSE_COUNT] = {
	[STOP_NONE] = "none",
	[STOP_CANCEL] = "cancel",
	[STOP_WALL] = "wall",
	[STOP_CPU] = "cpu",
	[STOP_OUTPUT] = "output",
	[STOP_MEMORY] = "memory",
};

/* Enumerators come as unsigned, so that a number from a damaged record cannot reach outside a table. */
static const char *name_in(const char *const *names, size_t count, unsigned number)
{
	return number < count ? names[number] : "?";
}

const char *life_state_name(enum life_state state)
{
	return name_in(state_names, LIFE_STATE_COUNT, state);
}

const char *life_event_name(enum life_event_kind kind)
{
	return name_in(event_names, LIFE_EVENT_COUNT, kind);
}

const char *life_action_name(enum life_action action)
{
	return name_in(action_names, LIFE_ACTION_COUNT, action);
}

const char *life_step_name(enum life_step step)
{
	return name_in(step_names, STEP_COUNT, step);
}

const char *stop_cause_name(enum stop_cause cause)
{
	return name_in(cause_names, STOP_CAUSE_COUNT, cause);
}

int life_state_parse(const char *name, enum life_state *ret, struct err *err)
{
	for (unsigned i = 0; i < LIFE_STATE_COUNT; i++)
		if (strcmp(name, state_names[i]) == 0) {
			*ret = (enum life_state)i;
			return 0;
		}
	return err_set(err, ERR_INVALID, "no state of an attempt is named \"%.32s\"", name);
}
