/* walk.c - properties of single moves through the lifecycle, and the events that walks are made of. */
#include "walk.h"

#include <string.h>

#include "lifecycle/verdict.h"

#define AT .at_ns = 1

static const struct life_event events[] = {
	{AT, .kind = LIFE_EV_ADMIT},
	{AT, .kind = LIFE_EV_REFUSE, .reason = "policy_limit"},
	{AT, .kind = LIFE_EV_PREPARED},
	{AT, .kind = LIFE_EV_SUSPENDED},
	{AT, .kind = LIFE_EV_ENROLLED},
	{AT, .kind = LIFE_EV_STEP_FAILED, .step = STEP_PREPARE, .reason = "unenforceable"},
	{AT, .kind = LIFE_EV_STEP_FAILED, .step = STEP_CREATE, .reason = "lost"},
	{AT, .kind = LIFE_EV_STEP_FAILED, .step = STEP_ENROLL, .reason = "unverified"},
	{AT, .kind = LIFE_EV_STEP_FAILED, .step = STEP_FENCE, .reason = "fenced"},
	{AT, .kind = LIFE_EV_STEP_FAILED, .step = STEP_LAUNCH, .reason = "io"},
	{AT, .kind = LIFE_EV_INTENT_DURABLE},
	{AT, .kind = LIFE_EV_LAUNCHED},
	{AT, .kind = LIFE_EV_STOP, .cause = STOP_CANCEL},
	{AT, .kind = LIFE_EV_STOP, .cause = STOP_WALL},
	{AT, .kind = LIFE_EV_STOP, .cause = STOP_CPU},
	{AT, .kind = LIFE_EV_STOP, .cause = STOP_OUTPUT},
	{AT, .kind = LIFE_EV_STOP, .cause = STOP_MEMORY},
	{AT, .kind = LIFE_EV_GRACE_OVER},
	{AT, .kind = LIFE_EV_MAIN_EXITED, .exit = {.how = MAIN_EXITED, .code = 0}},
	{AT, .kind = LIFE_EV_MAIN_EXITED, .exit = {.how = MAIN_EXITED, .code = 137}},
	{AT, .kind = LIFE_EV_MAIN_EXITED, .exit = {.how = MAIN_SIGNALED, .signal = 9}},
	{AT, .kind = LIFE_EV_MAIN_EXITED, .exit = {.how = MAIN_SIGNALED, .signal = 9, .killed_by_us = true}},
	{AT, .kind = LIFE_EV_MAIN_EXITED, .exit = {.how = MAIN_NOT_EXECUTED, .code = 2}},
	{AT, .kind = LIFE_EV_DRAINED},
	{AT, .kind = LIFE_EV_DRAINED, .stdout_retained = true},
	{AT, .kind = LIFE_EV_DRAINED, .stderr_retained = true},
	{AT, .kind = LIFE_EV_BOUNDARY_LOST, .reason = LIFE_REASON_WORKER_LOST},
	{AT, .kind = LIFE_EV_BOUNDARY_LOST, .reason = LIFE_REASON_INIT_LOST},
	{AT, .kind = LIFE_EV_CLEANED},
	{AT, .kind = LIFE_EV_CLEANUP_FAILED, .reason = "cgroup_busy"},
	{AT, .kind = LIFE_EV_VERIFIED_EMPTY},
	{AT, .kind = LIFE_EV_VERIFY_FAILED, .reason = "member_left"},
	{AT, .kind = LIFE_EV_RECOVERY_STARTED},
	{AT, .kind = LIFE_EV_SEALED},
	{AT, .kind = LIFE_EV_ABANDONED},
};

size_t walk_event_count(void)
{
	return sizeof(events) / sizeof(events[0]);
}

const struct life_event *walk_event(size_t index)
{
	return &events[index];
}

/* --- which event answers which action --- */

static bool one_of(enum life_event_kind kind, const enum life_event_kind *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == kind)
			return true;
	return false;
}
#define ONE_OF(kind, ...) one_of((kind), (const enum life_event_kind[]){__VA_ARGS__}, \
	sizeof((const enum life_event_kind[]){__VA_ARGS__}) / sizeof(enum life_event_kind))

/* Done, failed, the boundary lost, or a cancellation heard meanwhile. */
static bool answers_step(const struct life_event *event, enum life_event_kind done, enum life_step step)
{
	return event->kind == done || event->kind == LIFE_EV_BOUNDARY_LOST ||
	       (event->kind == LIFE_EV_STEP_FAILED && event->step == step) ||
	       (event->kind == LIFE_EV_STOP && event->cause == STOP_CANCEL);
}

bool walk_answers(enum life_action action, const struct life_event *event)
{
	if (event->kind == LIFE_EV_RECOVERY_STARTED)
		return true;
	switch (action) {
	case LIFE_DO_PREPARE:
		return answers_step(event, LIFE_EV_PREPARED, STEP_PREPARE);
	case LIFE_DO_CREATE_SUSPENDED:
		return answers_step(event, LIFE_EV_SUSPENDED, STEP_CREATE);
	case LIFE_DO_ENROLL:
		return answers_step(event, LIFE_EV_ENROLLED, STEP_ENROLL);
	case LIFE_DO_COMMIT_INTENT:
		return answers_step(event, LIFE_EV_INTENT_DURABLE, STEP_FENCE);
	case LIFE_DO_LAUNCH:
		return answers_step(event, LIFE_EV_LAUNCHED, STEP_LAUNCH);
	case LIFE_DO_OBSERVE:
		return ONE_OF(event->kind, LIFE_EV_MAIN_EXITED, LIFE_EV_STOP, LIFE_EV_BOUNDARY_LOST);
	case LIFE_DO_DRAIN:
		return ONE_OF(event->kind, LIFE_EV_DRAINED, LIFE_EV_BOUNDARY_LOST);
	case LIFE_DO_CLEANUP:
		return ONE_OF(event->kind, LIFE_EV_CLEANED, LIFE_EV_CLEANUP_FAILED, LIFE_EV_BOUNDARY_LOST);
	case LIFE_DO_VERIFY_EMPTY:
		return ONE_OF(event->kind, LIFE_EV_VERIFIED_EMPTY, LIFE_EV_VERIFY_FAILED, LIFE_EV_BOUNDARY_LOST);
	case LIFE_DO_RECOVER:
		return ONE_OF(event->kind, LIFE_EV_CLEANED, LIFE_EV_VERIFIED_EMPTY, LIFE_EV_CLEANUP_FAILED, LIFE_EV_VERIFY_FAILED,
		              LIFE_EV_BOUNDARY_LOST);
	case LIFE_DO_SEAL:
		return event->kind == LIFE_EV_SEALED;
	case LIFE_DO_ABANDON:
		return event->kind == LIFE_EV_ABANDONED;
	case LIFE_DO_TERMINATE:
	case LIFE_DO_KILL:
	case LIFE_DO_QUARANTINE:
	case LIFE_ACTION_COUNT:
		break;
	}
	return false;
}

/* --- properties of a move --- */

static bool does(const struct move *move, enum life_action action)
{
	for (size_t i = 0; i < move->actions->count; i++)
		if (move->actions->list[i] == action)
			return true;
	return false;
}

static bool free_to_launch(const struct life *life)
{
	return life->state == LIFE_ENROLLED && life->stop == STOP_NONE && life->failed_step == STEP_NONE;
}

static bool gate_opens_once_and_only_from_enrolled(const struct move *move)
{
	return !does(move, LIFE_DO_LAUNCH) ||
	       (move->event->kind == LIFE_EV_INTENT_DURABLE && !move->before->intent && move->after->intent &&
	        free_to_launch(move->before) && free_to_launch(move->after));
}

static bool guest_code_starts_only_behind_an_intent(const struct move *move)
{
	return move->before->launched || !move->after->launched ||
	       (move->event->kind == LIFE_EV_LAUNCHED && move->before->intent && free_to_launch(move->before));
}

static bool nothing_leads_back_to_the_gate(const struct move *move)
{
	return move->after->state > LIFE_ENROLLED || move->after->state >= move->before->state;
}

static bool nothing_is_made_once_it_ends(const struct move *move)
{
	return move->after->state <= LIFE_ENROLLED ||
	       (!does(move, LIFE_DO_PREPARE) && !does(move, LIFE_DO_CREATE_SUSPENDED) && !does(move, LIFE_DO_ENROLL) &&
	        !does(move, LIFE_DO_COMMIT_INTENT) && !does(move, LIFE_DO_LAUNCH));
}

static bool facts_are_kept(const struct move *move)
{
	const struct life *a = move->before, *b = move->after;

	return (!a->intent || b->intent) && (!a->launched || b->launched) && (!a->interrupted || b->interrupted) &&
	       (!a->terminating || b->terminating) && (!a->killing || b->killing) && (!a->drained || b->drained) &&
	       (!a->boundary_misbehaved || b->boundary_misbehaved) && (!a->was_quarantined || b->was_quarantined) &&
	       (!a->lost || b->lost) && a->retriable == b->retriable;
}

static bool same_exit(const struct main_exit *a, const struct main_exit *b)
{
	return a->how == b->how && a->code == b->code && a->signal == b->signal && a->at_ns == b->at_ns &&
	       a->killed_by_us == b->killed_by_us;
}

static bool first_causes_are_kept(const struct move *move)
{
	const struct life *a = move->before, *b = move->after;

	return (a->stop == STOP_NONE || (a->stop == b->stop && a->stop_at_ns == b->stop_at_ns)) &&
	       (a->failed_step == STEP_NONE || (a->failed_step == b->failed_step && strcmp(a->reason, b->reason) == 0)) &&
	       (a->boundary_reason[0] == '\0' || strcmp(a->boundary_reason, b->boundary_reason) == 0) &&
	       (a->exit.how == MAIN_UNKNOWN || same_exit(&a->exit, &b->exit));
}

static bool quarantine_is_left_by_recovery_alone(const struct move *move)
{
	return move->before->state != LIFE_QUARANTINED ||
	       (move->event->kind == LIFE_EV_RECOVERY_STARTED && move->after->state == LIFE_RECOVERING);
}

static bool quarantine_is_entered_by_the_deed(const struct move *move)
{
	return (move->after->state == LIFE_QUARANTINED) == does(move, LIFE_DO_QUARANTINE);
}

static bool recovery_always_recovers(const struct move *move)
{
	return (move->event->kind == LIFE_EV_RECOVERY_STARTED) == does(move, LIFE_DO_RECOVER);
}

/* Of `queued` nothing has to be verified; a recovery's own word is enough, a cleanup's has to come first. */
static bool empty_is_said_by_the_verification(const struct move *move)
{
	const struct life *a = move->before;

	return a->verified_empty || !move->after->verified_empty || a->state == LIFE_QUEUED ||
	       (move->event->kind == LIFE_EV_VERIFIED_EMPTY && (a->state == LIFE_RECOVERING || a->cleaned));
}

static bool a_limit_stops_only_what_runs(const struct move *move)
{
	return move->event->kind != LIFE_EV_STOP || move->event->cause == STOP_CANCEL || move->before->state == LIFE_RUNNING;
}

static bool sealing_begins_when_it_is_empty(const struct move *move)
{
	bool enters_cleaned = move->before->state != LIFE_CLEANED && move->after->state == LIFE_CLEANED;

	return (does(move, LIFE_DO_SEAL) || does(move, LIFE_DO_ABANDON)) == enters_cleaned &&
	       (!enters_cleaned || move->after->verified_empty);
}

static bool only_what_was_lost_without_an_intent_is_abandoned(const struct move *move)
{
	const struct life *a = move->before;

	return (!does(move, LIFE_DO_ABANDON) && move->after->state != LIFE_ABANDONED) ||
	       (a->retriable && a->lost && !a->intent && !a->launched && !does(move, LIFE_DO_SEAL));
}

static bool sealed_comes_from_cleaned(const struct move *move)
{
	return move->after->state != LIFE_SEALED ||
	       (move->before->state == LIFE_CLEANED && move->before->verified_empty && move->event->kind == LIFE_EV_SEALED);
}

static bool what_was_made_is_cleaned_up(const struct move *move)
{
	bool enters_cleaning = move->before->state != LIFE_CLEANING && move->after->state == LIFE_CLEANING;

	return does(move, LIFE_DO_CLEANUP) == enters_cleaning;
}

static bool term_and_kill_are_remembered(const struct move *move)
{
	const struct life *a = move->before, *b = move->after;
	bool lost = move->event->kind == LIFE_EV_BOUNDARY_LOST; /* then the earlier KILL may never have arrived */

	return does(move, LIFE_DO_KILL) == (b->killing && (!a->killing || (lost && a->state == LIFE_RUNNING))) &&
	       does(move, LIFE_DO_TERMINATE) == (b->terminating && !a->terminating);
}

static const struct property {
	const char *text;
	bool (*holds)(const struct move *move);
} properties[] = {
	{"R1, R3: the gate opens once and only from enrolled", gate_opens_once_and_only_from_enrolled},
	{"R1, R3: guest code starts only behind an intent", guest_code_starts_only_behind_an_intent},
	{"nothing leads back to the gate", nothing_leads_back_to_the_gate},
	{"nothing is made once it ends", nothing_is_made_once_it_ends},
	{"facts are kept", facts_are_kept},
	{"R8: the first cause is kept", first_causes_are_kept},
	{"R6: quarantine is left by a recovery alone", quarantine_is_left_by_recovery_alone},
	{"R6: quarantine is entered by the deed", quarantine_is_entered_by_the_deed},
	{"R9, R11: a recovery always recovers", recovery_always_recovers},
	{"only the verification says empty", empty_is_said_by_the_verification},
	{"a limit stops only what runs", a_limit_stops_only_what_runs},
	{"the end begins when it is verified empty", sealing_begins_when_it_is_empty},
	{"R3: only what was lost without an intent is abandoned", only_what_was_lost_without_an_intent_is_abandoned},
	{"sealed comes from cleaned", sealed_comes_from_cleaned},
	{"R11: what was made is cleaned up", what_was_made_is_cleaned_up},
	{"TERM and KILL are sent once and remembered", term_and_kill_are_remembered},
};

const char *walk_broken_by(const struct move *move)
{
	for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++)
		if (!properties[i].holds(move))
			return properties[i].text;
	return NULL;
}

const char *walk_broken_by_refusal(const struct move *move, int code)
{
	if (code != ERR_STATE && code != ERR_INVALID)
		return "a move is refused by state or as invalid, never because an invariant would break";
	if (memcmp(move->before, move->after, sizeof(*move->before)) != 0)
		return "a refused move changes nothing";
	return NULL;
}

/* --- properties of a state --- */

static bool success_is_earned(const struct life *life)
{
	return life->launched && life->verified_empty && life->exit.how == MAIN_EXITED && life->exit.code == 0 && life->drained &&
	       !life->retained && life->stop == STOP_NONE && !life->interrupted && !life->boundary_misbehaved &&
	       !life->was_quarantined;
}

static const char *verdict_broken(const struct life *life)
{
	const struct verdict_totals totals = {.wall_ns = -1, .cpu_ns = -1, .oom_kills = -1};
	struct verdict verdict;

	verdict_decide(life, &totals, &verdict);
	if (verdict.kind == VERDICT_SUCCEEDED && !success_is_earned(life))
		return "success is earned";
	if (verdict.kind == VERDICT_SIGNALED && life->exit.killed_by_us)
		return "our own signal is never `signaled`";
	if ((verdict.kind == VERDICT_REFUSED || verdict.kind == VERDICT_NOT_LAUNCHED) && life->launched)
		return "what was launched is neither refused nor not_launched";
	if (verdict.kind == VERDICT_LIMIT_EXCEEDED && life->stop != STOP_OUTPUT && life->stop != STOP_MEMORY)
		return "limit_exceeded needs a limit";
	if (verdict.kind == VERDICT_TIMED_OUT && life->stop != STOP_WALL && life->stop != STOP_CPU)
		return "timed_out needs a limit";
	return NULL;
}

const char *walk_broken_in(const struct life *life)
{
	const struct life_event cancel = {AT, .kind = LIFE_EV_STOP, .cause = STOP_CANCEL};
	struct life copy = *life;
	struct life_actions actions;

	if (life_check(life, NULL) < 0)
		return "life_check";
	if ((life_step(&copy, &cancel, &actions, NULL) == 0) != life_stoppable(life))
		return "R8: a cancellation is heard exactly when life_stoppable says so";
	return verdict_broken(life);
}
