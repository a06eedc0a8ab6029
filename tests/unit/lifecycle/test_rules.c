/* test_rules.c - what a stop means, how an end is blamed, and what a recovery makes of what it finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "lifecycle/transitions.h"

/* Which of the three answers the guards give to this stop; exactly one of them has to hold. */
static enum life_guard answer(const struct life *life, enum stop_cause cause)
{
	const struct life_event stop = {.kind = LIFE_EV_STOP, .cause = cause};
	static const enum life_guard answers[] = {WHEN_STOP_KILLS, WHEN_STOP_TERMINATES, WHEN_STOP_CHANGES_NOTHING};
	enum life_guard found = WHEN_ALWAYS;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (life_guard_holds(answers[i], life, &stop)) {
			assert_int_equal(found, WHEN_ALWAYS);
			found = answers[i];
		}
	return found;
}

static void a_stop_is_answered_by_what_grace_is_left(void **state)
{
	(void)state;
	static const struct {
		int64_t grace_ms, limit_grace_ms;
		bool terminating, killing;
		enum stop_cause cause;
		enum life_guard want;
	} cases[] = {
		{2000, 0, false, false, STOP_WALL, WHEN_STOP_KILLS},
		{2000, 0, false, false, STOP_CANCEL, WHEN_STOP_TERMINATES},
		{0, 0, false, false, STOP_CANCEL, WHEN_STOP_KILLS},
		{0, 500, false, false, STOP_CPU, WHEN_STOP_TERMINATES},
		{2000, 500, true, false, STOP_OUTPUT, WHEN_STOP_CHANGES_NOTHING},
		{2000, 0, true, false, STOP_OUTPUT, WHEN_STOP_KILLS},
		{2000, 500, true, false, STOP_CANCEL, WHEN_STOP_KILLS},
		{2000, 500, true, true, STOP_CANCEL, WHEN_STOP_CHANGES_NOTHING},
		{0, 0, false, true, STOP_MEMORY, WHEN_STOP_CHANGES_NOTHING},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct life life;
		life_init(&life, cases[i].grace_ms, cases[i].limit_grace_ms);
		life.terminating = cases[i].terminating;
		life.killing = cases[i].killing;
		assert_int_equal(answer(&life, cases[i].cause), cases[i].want);
	}
}

static struct life running_life(void)
{
	struct life life;

	life_init(&life, 2000, 0);
	life.state = LIFE_RUNNING;
	life.intent = life.launched = true;
	return life;
}

static void the_first_stop_cause_is_the_one_recorded(void **state)
{
	(void)state;
	struct life life = running_life();
	const struct life_event cancel = {.kind = LIFE_EV_STOP, .cause = STOP_CANCEL, .at_ns = 5};
	const struct life_event wall = {.kind = LIFE_EV_STOP, .cause = STOP_WALL, .at_ns = 6};

	life_note(NOTE_STOP_TERMINATE, &life, &cancel);
	life_note(NOTE_STOP_KILL, &life, &wall);
	assert_int_equal(life.stop, STOP_CANCEL);
	assert_int_equal(life.stop_at_ns, 5);
	assert_true(life.terminating);
	assert_true(life.killing);
}

static struct main_exit noted_exit(struct life life, struct main_exit end)
{
	const struct life_event exited = {.kind = LIFE_EV_MAIN_EXITED, .exit = end, .descendants_alive = 3};

	life_note(NOTE_EXIT, &life, &exited);
	assert_int_equal(life.descendants_alive, 3);
	return life.exit;
}

static void a_signal_is_ours_once_a_kill_or_term_was_on_its_way(void **state)
{
	(void)state;
	struct life life = running_life();
	const struct main_exit killed = {.how = MAIN_SIGNALED, .signal = 9};
	const struct main_exit killed_by_boundary = {.how = MAIN_SIGNALED, .signal = 9, .killed_by_us = true};
	const struct main_exit exited = {.how = MAIN_EXITED, .code = 0, .killed_by_us = true};

	assert_false(noted_exit(life, killed).killed_by_us);
	assert_true(noted_exit(life, killed_by_boundary).killed_by_us);
	life.terminating = true;
	assert_true(noted_exit(life, killed).killed_by_us);
	life.killing = true;
	assert_true(noted_exit(life, killed).killed_by_us);
	assert_false(noted_exit(life, exited).killed_by_us);
}

static void a_stream_retained_is_a_stream_retained(void **state)
{
	(void)state;
	for (int which = 0; which < 4; which++) {
		struct life life = running_life();
		const struct life_event drained = {
			.kind = LIFE_EV_DRAINED, .stdout_retained = which & 1, .stderr_retained = which & 2};
		life_note(NOTE_DRAIN, &life, &drained);
		assert_true(life.drained);
		assert_int_equal(life.retained, which != 0);
	}
}

static void the_first_failure_tells_why(void **state)
{
	(void)state;
	struct life life;
	const struct life_event first = {.step = STEP_CREATE, .reason = "lost", .detail = "first"};
	const struct life_event second = {.step = STEP_ENROLL, .reason = "io", .detail = "second"};

	life_init(&life, 0, 0);
	life_note(NOTE_STEP_FAILED, &life, &first);
	life_note(NOTE_STEP_FAILED, &life, &second);
	assert_int_equal(life.failed_step, STEP_CREATE);
	assert_string_equal(life.reason, "lost");
	assert_string_equal(life.detail, "first");
}

static void what_is_lost_before_the_launch_names_the_step_under_way(void **state)
{
	(void)state;
	static const struct { enum life_state in; enum life_step want; } cases[] = {
		{LIFE_QUEUED, STEP_PREPARE}, {LIFE_ADMITTED, STEP_PREPARE}, {LIFE_PREPARING, STEP_CREATE},
		{LIFE_SUSPENDED, STEP_ENROLL}, {LIFE_ENROLLED, STEP_FENCE},
	};
	const struct life_event lost = {.kind = LIFE_EV_BOUNDARY_LOST, .reason = LIFE_REASON_WORKER_LOST};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct life life;
		life_init(&life, 0, 0);
		life.state = cases[i].in;
		life_note(NOTE_LOST_BEFORE_LAUNCH, &life, &lost);
		assert_int_equal(life.failed_step, cases[i].want);
		assert_string_equal(life.reason, LIFE_REASON_WORKER_LOST);
	}
}

static void a_lost_worker_interrupts_and_a_lost_init_misbehaves(void **state)
{
	(void)state;
	struct life life = running_life();
	struct life_event lost = {.kind = LIFE_EV_BOUNDARY_LOST, .reason = LIFE_REASON_WORKER_LOST};

	life_note(NOTE_LOST_KILL, &life, &lost);
	assert_true(life.interrupted && !life.boundary_misbehaved && life.killing);

	life = running_life();
	snprintf(lost.reason, sizeof(lost.reason), "%s", LIFE_REASON_INIT_LOST);
	life_note(NOTE_LOST_KILL, &life, &lost);
	assert_true(!life.interrupted && life.boundary_misbehaved && life.killing);
	assert_string_equal(life.boundary_reason, LIFE_REASON_INIT_LOST);
}

static void a_loss_without_a_word_still_has_a_reason(void **state)
{
	(void)state;
	struct life life = running_life();
	const struct life_event lost = {.kind = LIFE_EV_BOUNDARY_LOST};

	life_note(NOTE_LOST, &life, &lost);
	assert_true(life.boundary_misbehaved);
	assert_string_equal(life.boundary_reason, "boundary_lost");
}

static void the_first_misbehaviour_is_the_one_named(void **state)
{
	(void)state;
	struct life life = running_life();
	const struct life_event lost = {.kind = LIFE_EV_BOUNDARY_LOST, .reason = LIFE_REASON_INIT_LOST, .detail = "status 9"};
	const struct life_event failed = {.kind = LIFE_EV_CLEANUP_FAILED, .reason = "cgroup_busy"};

	life_note(NOTE_LOST_KILL, &life, &lost);
	life_note(NOTE_QUARANTINE, &life, &failed);
	assert_string_equal(life.boundary_reason, LIFE_REASON_INIT_LOST);
	assert_string_equal(life.boundary_detail, "status 9");
	assert_true(life.was_quarantined);
}

/* With what is given, does a recovery call the attempt interrupted? */
static bool recovery_interrupts(struct life life)
{
	const struct life_event started = {.kind = LIFE_EV_RECOVERY_STARTED};

	life_note(NOTE_RECOVERY, &life, &started);
	assert_false(life.verified_empty);
	assert_false(life.cleaned);
	return life.interrupted;
}

static void a_recovery_interrupts_what_nothing_recorded_explains(void **state)
{
	(void)state;
	struct life life = running_life();

	assert_true(recovery_interrupts(life));

	life.exit.how = MAIN_EXITED; /* its output is lost with the keeper */
	assert_true(recovery_interrupts(life));
	life.drained = true; /* but its usage was not read: an OOM kill may hide behind exit code 0 */
	assert_true(recovery_interrupts(life));
	life.cleaned = true;
	assert_false(recovery_interrupts(life));
	life.drained = false;
	assert_true(recovery_interrupts(life));
	life.drained = true;
	life.exit.how = MAIN_UNKNOWN;
	assert_true(recovery_interrupts(life));

	life = running_life();
	life.stop = STOP_CANCEL;
	assert_false(recovery_interrupts(life));

	life = running_life();
	life.boundary_misbehaved = true; /* says already why the end is unknown */
	assert_false(recovery_interrupts(life));

	life = running_life();
	life.launched = false; /* the intent was durable, the gate known not to have opened */
	life.failed_step = STEP_LAUNCH;
	assert_false(recovery_interrupts(life));
}

static void a_recovery_without_an_intent_means_not_launched(void **state)
{
	(void)state;
	struct life life;
	const struct life_event started = {.kind = LIFE_EV_RECOVERY_STARTED};

	life_init(&life, 0, 0);
	life.state = LIFE_SUSPENDED;
	life_note(NOTE_RECOVERY, &life, &started);
	assert_int_equal(life.failed_step, STEP_ENROLL);
	assert_string_equal(life.reason, LIFE_REASON_KEEPER_LOST);
	assert_false(life.interrupted);

	life_init(&life, 0, 0);
	life.state = LIFE_CLEANING;
	life.stop = STOP_CANCEL; /* then it is cancelled, and no step is to blame */
	life_note(NOTE_RECOVERY, &life, &started);
	assert_int_equal(life.failed_step, STEP_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stop_is_answered_by_what_grace_is_left),
		cmocka_unit_test(the_first_stop_cause_is_the_one_recorded),
		cmocka_unit_test(a_signal_is_ours_once_a_kill_or_term_was_on_its_way),
		cmocka_unit_test(a_stream_retained_is_a_stream_retained),
		cmocka_unit_test(the_first_failure_tells_why),
		cmocka_unit_test(what_is_lost_before_the_launch_names_the_step_under_way),
		cmocka_unit_test(a_lost_worker_interrupts_and_a_lost_init_misbehaves),
		cmocka_unit_test(a_loss_without_a_word_still_has_a_reason),
		cmocka_unit_test(the_first_misbehaviour_is_the_one_named),
		cmocka_unit_test(a_recovery_interrupts_what_nothing_recorded_explains),
		cmocka_unit_test(a_recovery_without_an_intent_means_not_launched),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
