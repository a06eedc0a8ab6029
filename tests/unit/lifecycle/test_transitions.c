/* test_transitions.c - the table is well formed: rows name what exists, and each means one thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lifecycle/transitions.h"

static bool starts_in(const struct life_transition *row, enum life_state state)
{
	return (row->from & (1u << state)) != 0;
}

static bool does(const struct life_transition *row, enum life_action action)
{
	for (size_t i = 0; i < row->actions.count; i++)
		if (row->actions.list[i] == action)
			return true;
	return false;
}

static void rows_name_only_what_exists(void **state)
{
	(void)state;
	for (size_t i = 0; i < life_transition_count; i++) {
		const struct life_transition *row = &life_transitions[i];
		assert_true(row->from != 0 && row->from < 1u << LIFE_STATE_COUNT);
		assert_true(row->event < LIFE_EVENT_COUNT && row->when < LIFE_GUARD_COUNT && row->note < LIFE_EFFECT_COUNT);
		assert_true(row->to < LIFE_STATE_COUNT || row->to == LIFE_SAME_STATE);
		assert_true(row->actions.count <= LIFE_MAX_ACTIONS);
	}
}

static void every_event_action_guard_and_note_is_used(void **state)
{
	(void)state;
	bool events[LIFE_EVENT_COUNT] = {false}, actions[LIFE_ACTION_COUNT] = {false};
	bool guards[LIFE_GUARD_COUNT] = {false}, notes[LIFE_EFFECT_COUNT] = {false};

	for (size_t i = 0; i < life_transition_count; i++) {
		const struct life_transition *row = &life_transitions[i];
		events[row->event] = guards[row->when] = notes[row->note] = true;
		for (size_t j = 0; j < row->actions.count; j++)
			actions[row->actions.list[j]] = true;
	}
	for (int i = 0; i < LIFE_EVENT_COUNT; i++)
		assert_true(events[i]);
	for (int i = 0; i < LIFE_ACTION_COUNT; i++)
		assert_true(actions[i]);
	for (int i = 0; i < LIFE_GUARD_COUNT; i++)
		assert_true(guards[i]);
	for (int i = 0; i < LIFE_EFFECT_COUNT; i++)
		assert_true(notes[i]);
}

/* That guards of one (state, event) exclude each other is asserted by the explorer, in every state that can be reached. */
static void an_unguarded_row_stands_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < life_transition_count; i++)
		for (size_t j = 0; j < i; j++) {
			const struct life_transition *a = &life_transitions[i], *b = &life_transitions[j];
			if (a->event == b->event && (a->from & b->from) != 0)
				assert_true(a->when != WHEN_ALWAYS && b->when != WHEN_ALWAYS && a->when != b->when);
		}
}

/* R1, R3: one row opens the gate, and one goes through it. */
static void launch_has_one_way_in(void **state)
{
	(void)state;
	int launching = 0, launched = 0;

	for (size_t i = 0; i < life_transition_count; i++) {
		const struct life_transition *row = &life_transitions[i];
		if (does(row, LIFE_DO_LAUNCH)) {
			assert_int_equal(row->from, 1u << LIFE_ENROLLED);
			assert_int_equal(row->event, LIFE_EV_INTENT_DURABLE);
			launching++;
		}
		if (row->to == LIFE_RUNNING) {
			assert_int_equal(row->from, 1u << LIFE_ENROLLED);
			assert_int_equal(row->when, WHEN_INTENT);
			launched++;
		}
	}
	assert_int_equal(launching, 1);
	assert_int_equal(launched, 1);
}

/* R6. */
static void quarantine_has_one_way_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < life_transition_count; i++)
		if (starts_in(&life_transitions[i], LIFE_QUARANTINED)) {
			assert_int_equal(life_transitions[i].event, LIFE_EV_RECOVERY_STARTED);
			assert_int_equal(life_transitions[i].to, LIFE_RECOVERING);
			assert_true(does(&life_transitions[i], LIFE_DO_RECOVER));
		}
}

static void sealed_and_abandoned_are_the_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < life_transition_count; i++) {
		assert_false(starts_in(&life_transitions[i], LIFE_SEALED));
		assert_false(starts_in(&life_transitions[i], LIFE_ABANDONED));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_name_only_what_exists),
		cmocka_unit_test(every_event_action_guard_and_note_is_used),
		cmocka_unit_test(an_unguarded_row_stands_alone),
		cmocka_unit_test(launch_has_one_way_in),
		cmocka_unit_test(quarantine_has_one_way_out),
		cmocka_unit_test(sealed_and_abandoned_are_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
