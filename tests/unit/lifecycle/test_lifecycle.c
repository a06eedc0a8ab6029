/* test_lifecycle.c - the step itself: what it leaves alone, what it refuses, and the invariants that stand behind the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "lifecycle/lifecycle.h"

static const struct life_actions untouched = {{LIFE_DO_SEAL, LIFE_DO_SEAL, LIFE_DO_SEAL}, 3};

static int step(struct life *life, enum life_event_kind kind)
{
	const struct life_event event = {.kind = kind};
	struct life_actions actions;

	return life_step(life, &event, &actions, NULL);
}

static void run_up_to(struct life *life, enum life_state state)
{
	static const enum life_event_kind way[] = {LIFE_EV_ADMIT, LIFE_EV_PREPARED, LIFE_EV_SUSPENDED, LIFE_EV_ENROLLED,
	                                           LIFE_EV_INTENT_DURABLE, LIFE_EV_LAUNCHED};

	life_init(life, 2000, 0);
	for (size_t i = 0; life->state != state; i++)
		assert_int_equal(step(life, way[i]), 0);
}

static void a_new_life_is_queued_and_knows_nothing(void **state)
{
	(void)state;
	struct life life;

	life_init(&life, 2000, 500);
	assert_int_equal(life.state, LIFE_QUEUED);
	assert_int_equal(life.grace_ms, 2000);
	assert_int_equal(life.limit_grace_ms, 500);
	assert_int_equal(life.descendants_alive, -1);
	assert_int_equal(life_check(&life, NULL), 0);
}

static void assert_refused(const struct life *life, const struct life_event *event, int code, const char *word)
{
	struct life after;
	struct life_actions actions = untouched;
	struct err err = ERR_INIT;

	memcpy(&after, life, sizeof(after));
	assert_int_equal(life_step(&after, event, &actions, &err), code);
	assert_int_equal(err.code, code);
	assert_non_null(strstr(err.text, word));
	assert_non_null(strstr(err.text, life_event_name(event->kind)));
	assert_memory_equal(&after, life, sizeof(after));
	assert_int_equal(actions.count, untouched.count);
	assert_memory_equal(actions.list, untouched.list, sizeof(actions.list));
	assert_int_equal(life_step(&after, event, &actions, NULL), code);
}

static void what_the_table_does_not_allow_changes_nothing(void **state)
{
	(void)state;
	struct life life;
	const struct life_event launched = {.kind = LIFE_EV_LAUNCHED};

	life_init(&life, 2000, 0);
	assert_refused(&life, &launched, ERR_STATE, "queued");
}

static void enrolled_without_an_intent_does_not_launch(void **state)
{
	(void)state;
	struct life life;
	const struct life_event launched = {.kind = LIFE_EV_LAUNCHED};

	run_up_to(&life, LIFE_ENROLLED);
	assert_refused(&life, &launched, ERR_STATE, "enrolled");
	assert_int_equal(step(&life, LIFE_EV_INTENT_DURABLE), 0);
	assert_int_equal(step(&life, LIFE_EV_LAUNCHED), 0);
}

static void an_event_that_contradicts_itself_changes_nothing(void **state)
{
	(void)state;
	struct life life;
	const struct life_event no_cause = {.kind = LIFE_EV_STOP};
	const struct life_event no_end = {.kind = LIFE_EV_MAIN_EXITED};
	struct life_event endless = {.kind = LIFE_EV_BOUNDARY_LOST};
	const struct life_event unknown = {.kind = LIFE_EVENT_COUNT};

	run_up_to(&life, LIFE_RUNNING);
	memset(endless.reason, 'x', sizeof(endless.reason));
	assert_refused(&life, &no_cause, ERR_INVALID, "contradicts");
	assert_refused(&life, &no_end, ERR_INVALID, "contradicts");
	assert_refused(&life, &endless, ERR_INVALID, "contradicts");
	assert_refused(&life, &unknown, ERR_INVALID, "contradicts");
}

static void a_step_that_would_break_an_invariant_changes_nothing(void **state)
{
	(void)state;
	struct life life;
	const struct life_event exited = {.kind = LIFE_EV_MAIN_EXITED, .exit = {.how = MAIN_EXITED}};

	run_up_to(&life, LIFE_RUNNING);
	life.intent = false; /* somebody wrote over it */
	assert_refused(&life, &exited, ERR_INTERNAL, "R3");
}

static void success_leaves_the_error_alone(void **state)
{
	(void)state;
	struct life life;
	struct life_actions actions;
	struct err err = ERR_INIT;
	const struct life_event admit = {.kind = LIFE_EV_ADMIT};

	life_init(&life, 0, 0);
	assert_int_equal(life_step(&life, &admit, &actions, &err), 0);
	assert_int_equal(err.code, 0);
	assert_string_equal(err.text, "");
	assert_int_equal(actions.count, 1);
	assert_int_equal(actions.list[0], LIFE_DO_PREPARE);
}

static void launch_and_stop_keep_their_times(void **state)
{
	(void)state;
	struct life life;
	struct life_actions actions;
	const struct life_event launched = {.kind = LIFE_EV_LAUNCHED, .at_ns = 70};
	const struct life_event stop = {.kind = LIFE_EV_STOP, .cause = STOP_WALL, .at_ns = 80};

	run_up_to(&life, LIFE_ENROLLED);
	assert_int_equal(step(&life, LIFE_EV_INTENT_DURABLE), 0);
	assert_int_equal(life_step(&life, &launched, &actions, NULL), 0);
	assert_int_equal(life_step(&life, &stop, &actions, NULL), 0);
	assert_int_equal(life.launched_at_ns, 70);
	assert_int_equal(life.stop_at_ns, 80);
}

static void a_cancellation_is_heard_until_the_seal_but_not_in_quarantine(void **state)
{
	(void)state;
	for (int i = 0; i < LIFE_STATE_COUNT; i++) {
		struct life life;
		bool deaf = i == LIFE_QUARANTINED || i == LIFE_RECOVERING || i == LIFE_SEALED || i == LIFE_ABANDONED;
		life_restore(&life, (enum life_state)i, i >= LIFE_RUNNING && i != LIFE_ABANDONED, false);
		assert_int_equal(life_stoppable(&life), !deaf);
	}
}

static void what_is_restored_keeps_every_invariant(void **state)
{
	(void)state;
	for (int i = 0; i < LIFE_STATE_COUNT; i++)
		for (int intent = i == LIFE_RUNNING || i == LIFE_EXITED; intent <= (i >= LIFE_ENROLLED && i != LIFE_ABANDONED); intent++)
			for (int quarantined = 0; quarantined <= (i >= LIFE_CLEANED); quarantined++) {
				struct life life;
				struct err err = ERR_INIT;
				life_restore(&life, (enum life_state)i, intent, quarantined);
				if (life_check(&life, &err) < 0)
					fail_msg("%s", err.text);
				assert_int_equal(step(&life, LIFE_EV_RECOVERY_STARTED), i >= LIFE_SEALED ? ERR_STATE : 0);
			}
}

static void a_ledger_that_contradicts_itself_is_not_recovered(void **state)
{
	(void)state;
	struct life life;
	const struct life_event started = {.kind = LIFE_EV_RECOVERY_STARTED};

	life_restore(&life, LIFE_RUNNING, false, false);
	assert_int_equal(life_check(&life, NULL), ERR_INTERNAL);
	assert_refused(&life, &started, ERR_INTERNAL, "R3");
}

/* Each line breaks one invariant of an otherwise sound state, and life_check() names it. */
static void each_invariant_is_checked(void **state)
{
	(void)state;
	static const struct {
		const char *word;
		struct life life;
	} cases[] = {
		{"R3: what is launched", {.state = LIFE_RUNNING, .launched = true}},
		{"R1: an intent", {.state = LIFE_SUSPENDED, .intent = true}},
		{"R1: what runs", {.state = LIFE_RUNNING, .intent = true}},
		{"R1: what runs", {.state = LIFE_EXITED, .intent = true}},
		{"forbids a launch", {.state = LIFE_ENROLLED, .intent = true, .launched = true}},
		{"forbids a launch", {.state = LIFE_ENROLLED, .stop = STOP_CANCEL}},
		{"forbids a launch", {.state = LIFE_ENROLLED, .failed_step = STEP_ENROLL}},
		{"forbids a launch", {.state = LIFE_ENROLLED, .boundary_misbehaved = true, .boundary_reason = "x"}},
		{"a failed step", {.state = LIFE_RUNNING, .intent = true, .launched = true, .failed_step = STEP_FENCE}},
		{"R4", {.state = LIFE_CLEANING, .exit = {.how = MAIN_EXITED}}},
		{"R4", {.state = LIFE_CLEANING, .killing = true}},
		{"R4", {.state = LIFE_CLEANING, .terminating = true}},
		{"R4", {.state = LIFE_CLEANING, .drained = true}},
		{"R9", {.state = LIFE_RECOVERING, .interrupted = true, .boundary_reason = "x"}},
		{"R3: another attempt", {.state = LIFE_ABANDONED, .intent = true, .verified_empty = true}},
		{"R3: another attempt", {.state = LIFE_RECOVERING, .intent = true, .requeue = true}},
		{"R6: only what is verified", {.state = LIFE_ABANDONED}},
		{"R6: only what is verified", {.state = LIFE_CLEANED}},
		{"R6: only what is verified", {.state = LIFE_SEALED}},
		{"R6: only what is verified", {.state = LIFE_CLEANING, .verified_empty = true}},
		{"R6: a quarantine is remembered", {.state = LIFE_QUARANTINED}},
		{"R6: a quarantine is remembered", {.state = LIFE_RECOVERING, .was_quarantined = true}},
		{"R6: a quarantine leads",
		 {.state = LIFE_CLEANING, .was_quarantined = true, .boundary_misbehaved = true, .boundary_reason = "x"}},
		{"has a reason", {.state = LIFE_CLEANING, .boundary_misbehaved = true}},
		{"has a reason", {.state = LIFE_CLEANING, .intent = true, .interrupted = true}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = ERR_INIT;
		assert_int_equal(life_check(&cases[i].life, &err), ERR_INTERNAL);
		if (!strstr(err.text, cases[i].word))
			fail_msg("case %zu: \"%s\" does not name \"%s\"", i, err.text, cases[i].word);
	}
}

static void recover(struct life *life, enum life_state state, bool intent)
{
	life_restore(life, state, intent, false);
	life->retriable = true;
	assert_int_equal(step(life, LIFE_EV_RECOVERY_STARTED), 0);
	assert_int_equal(step(life, LIFE_EV_VERIFIED_EMPTY), 0);
}

static void what_was_lost_before_its_intent_is_abandoned(void **state)
{
	(void)state;
	struct life life;

	for (int i = 0; i <= LIFE_ENROLLED; i++) {
		recover(&life, (enum life_state)i, false);
		assert_int_equal(step(&life, LIFE_EV_SEALED), ERR_STATE);
		assert_int_equal(step(&life, LIFE_EV_ABANDONED), 0);
		assert_int_equal(life.state, LIFE_ABANDONED);
		assert_int_equal(step(&life, LIFE_EV_RECOVERY_STARTED), ERR_STATE);
	}
	recover(&life, LIFE_ENROLLED, true);
	assert_int_equal(step(&life, LIFE_EV_ABANDONED), ERR_STATE);
	assert_int_equal(step(&life, LIFE_EV_SEALED), 0);
}

static void what_failed_or_was_stopped_is_not_abandoned(void **state)
{
	(void)state;
	const struct life_event failed = {.kind = LIFE_EV_STEP_FAILED, .step = STEP_ENROLL, .reason = "unverified"};
	const struct life_event stop = {.kind = LIFE_EV_STOP, .cause = STOP_CANCEL};

	for (int i = 0; i < 2; i++) {
		struct life life;
		struct life_actions actions;
		run_up_to(&life, LIFE_SUSPENDED);
		life.retriable = true;
		assert_int_equal(life_step(&life, i ? &stop : &failed, &actions, NULL), 0);
		assert_int_equal(step(&life, LIFE_EV_RECOVERY_STARTED), 0);
		assert_int_equal(step(&life, LIFE_EV_VERIFIED_EMPTY), 0);
		assert_int_equal(step(&life, LIFE_EV_ABANDONED), ERR_STATE);
		assert_int_equal(step(&life, LIFE_EV_SEALED), 0);
	}
}

static void the_last_attempt_is_sealed(void **state)
{
	(void)state;
	struct life life;

	life_restore(&life, LIFE_PREPARING, false, false);
	assert_int_equal(step(&life, LIFE_EV_RECOVERY_STARTED), 0);
	assert_int_equal(step(&life, LIFE_EV_VERIFIED_EMPTY), 0);
	assert_int_equal(step(&life, LIFE_EV_ABANDONED), ERR_STATE);
	assert_int_equal(step(&life, LIFE_EV_SEALED), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_life_is_queued_and_knows_nothing),
		cmocka_unit_test(what_the_table_does_not_allow_changes_nothing),
		cmocka_unit_test(enrolled_without_an_intent_does_not_launch),
		cmocka_unit_test(an_event_that_contradicts_itself_changes_nothing),
		cmocka_unit_test(a_step_that_would_break_an_invariant_changes_nothing),
		cmocka_unit_test(success_leaves_the_error_alone),
		cmocka_unit_test(launch_and_stop_keep_their_times),
		cmocka_unit_test(a_cancellation_is_heard_until_the_seal_but_not_in_quarantine),
		cmocka_unit_test(what_is_restored_keeps_every_invariant),
		cmocka_unit_test(a_ledger_that_contradicts_itself_is_not_recovered),
		cmocka_unit_test(each_invariant_is_checked),
		cmocka_unit_test(what_was_lost_before_its_intent_is_abandoned),
		cmocka_unit_test(what_failed_or_was_stopped_is_not_abandoned),
		cmocka_unit_test(the_last_attempt_is_sealed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
