/* test_verdict.c - every line of the contract's verdict table, and that the first one that holds decides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "lifecycle/verdict.h"

struct scene {
	struct life life;
	struct verdict_totals totals;
};

/* A run that ended well: everything below spoils it in one way. */
static void a_good_run(struct scene *scene)
{
	*scene = (struct scene){
		.totals = {
			.wall_ns = 250 * NS_PER_MS,
			.cpu_ns = 200 * NS_PER_MS,
			.wall_limit_ns = NS_PER_S,
			.cpu_limit_ns = 2 * NS_PER_S,
		},
	};
	life_init(&scene->life, 2000, 0);
	scene->life.state = LIFE_CLEANED;
	scene->life.intent = scene->life.launched = true;
	scene->life.launched_at_ns = NS_PER_S;
	scene->life.exit = (struct main_exit){.how = MAIN_EXITED, .at_ns = NS_PER_S + 250 * NS_PER_MS};
	scene->life.descendants_alive = 0;
	scene->life.drained = scene->life.cleaned = scene->life.verified_empty = true;
}

static void put(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text);
}

static void make_refused(struct scene *scene)
{
	scene->life.failed_step = STEP_ADMISSION;
	put(scene->life.reason, sizeof(scene->life.reason), "no_safe_worker");
}

static void make_not_launched(struct scene *scene)
{
	scene->life.failed_step = STEP_ENROLL;
	put(scene->life.reason, sizeof(scene->life.reason), "unverified");
	put(scene->life.detail, sizeof(scene->life.detail), "seccomp: mode is 0");
}

static void make_interrupted(struct scene *scene)
{
	scene->life.interrupted = true;
	put(scene->life.boundary_reason, sizeof(scene->life.boundary_reason), "keeper_lost");
}

static void make_not_empty(struct scene *scene)
{
	scene->life.verified_empty = false;
}

static void make_misbehaved(struct scene *scene)
{
	scene->life.boundary_misbehaved = true;
	put(scene->life.boundary_reason, sizeof(scene->life.boundary_reason), "init_lost");
}

static void stop_for(struct scene *scene, enum stop_cause cause)
{
	scene->life.stop = cause;
	scene->life.stop_at_ns = scene->life.launched_at_ns + NS_PER_S;
}

static void make_cancelled(struct scene *scene)
{
	stop_for(scene, STOP_CANCEL);
}

static void stop_at_wall(struct scene *scene)
{
	stop_for(scene, STOP_WALL);
}

static void stop_at_cpu(struct scene *scene)
{
	stop_for(scene, STOP_CPU);
}

static void stop_at_output(struct scene *scene)
{
	stop_for(scene, STOP_OUTPUT);
}

static void stop_at_memory(struct scene *scene)
{
	stop_for(scene, STOP_MEMORY);
}

static void oom_killed(struct scene *scene)
{
	scene->totals.oom_kills = 1;
}

static void cpu_total_over(struct scene *scene)
{
	scene->totals.cpu_ns = scene->totals.cpu_limit_ns + 1;
}

static void wall_total_over(struct scene *scene)
{
	scene->totals.wall_ns = scene->totals.wall_limit_ns + 1;
}

static void output_total_over(struct scene *scene)
{
	scene->totals.output_over = true;
}

static void kill_without_cause(struct scene *scene)
{
	scene->life.exit = (struct main_exit){.how = MAIN_SIGNALED, .signal = 9, .killed_by_us = true};
}

static void die_of_segv(struct scene *scene)
{
	scene->life.exit = (struct main_exit){.how = MAIN_SIGNALED, .signal = 11};
}

static void not_executable(struct scene *scene)
{
	scene->life.exit = (struct main_exit){.how = MAIN_NOT_EXECUTED, .code = ENOENT};
}

static void exit_with_three(struct scene *scene)
{
	scene->life.exit = (struct main_exit){.how = MAIN_EXITED, .code = 3};
}

static void retain_handle(struct scene *scene)
{
	scene->life.retained = true;
}

static void reject_artifact(struct scene *scene)
{
	put(scene->totals.artifact_rejected, sizeof(scene->totals.artifact_rejected), "result.json: a symbolic link");
}

/* In the contract's order. `line` is the number in its table; two spoilings of one line (4, 5, 7, 8) have no order between them
 * here. */
static const struct spoiling {
	int line;
	void (*spoil)(struct scene *scene);
	enum verdict_kind kind;
	const char *reason;
	int exit_status;
	bool sets_exit; /* main ends in one way only: two of these cannot hold at once */
} spoilings[] = {
	{1, make_refused, VERDICT_REFUSED, "no_safe_worker", 125, false},
	{2, make_not_launched, VERDICT_NOT_LAUNCHED, "unverified", 125, false},
	{3, make_interrupted, VERDICT_INTERRUPTED, "keeper_lost", 125, false},
	{4, make_not_empty, VERDICT_BOUNDARY_ERROR, "not_verified_empty", 125, false},
	{4, make_misbehaved, VERDICT_BOUNDARY_ERROR, "init_lost", 125, false},
	{5, make_cancelled, VERDICT_CANCELLED, "cancel_requested", 125, false},
	{5, stop_at_wall, VERDICT_TIMED_OUT, "wall_limit", 124, false},
	{5, stop_at_cpu, VERDICT_TIMED_OUT, "cpu_limit", 124, false},
	{5, stop_at_output, VERDICT_LIMIT_EXCEEDED, "output_limit", 137, false},
	{5, stop_at_memory, VERDICT_LIMIT_EXCEEDED, "memory_limit", 137, false},
	{6, oom_killed, VERDICT_LIMIT_EXCEEDED, "memory_limit", 137, false},
	{7, cpu_total_over, VERDICT_TIMED_OUT, "cpu_limit", 124, false},
	{7, wall_total_over, VERDICT_TIMED_OUT, "wall_limit", 124, false},
	{7, output_total_over, VERDICT_LIMIT_EXCEEDED, "output_limit", 137, false},
	{8, kill_without_cause, VERDICT_BOUNDARY_ERROR, "killed_without_cause", 125, true},
	{8, die_of_segv, VERDICT_SIGNALED, "SIGSEGV", 139, true},
	{9, not_executable, VERDICT_FAILED, "exec_failed", 127, true},
	{10, exit_with_three, VERDICT_FAILED, "exit_code", 3, true},
	{11, retain_handle, VERDICT_FAILED, "output_handle_retained", 125, false},
	{12, reject_artifact, VERDICT_FAILED, "artifact_rejected", 125, false},
};
enum { SPOILINGS = sizeof(spoilings) / sizeof(spoilings[0]), LINES = 13 };

static void decide(const struct scene *scene, struct verdict *ret)
{
	verdict_decide(&scene->life, &scene->totals, ret);
	assert_false(ret->exit_code >= 0 && ret->signal != 0);
}

static void assert_verdict(const struct scene *scene, const struct spoiling *want)
{
	struct verdict verdict;

	decide(scene, &verdict);
	assert_string_equal(verdict_name(verdict.kind), verdict_name(want->kind));
	assert_string_equal(verdict.reason, want->reason);
	assert_int_equal(verdict_exit_status(&verdict, 0), want->exit_status);
}

static void nothing_spoiled_is_succeeded(void **state)
{
	(void)state;
	struct scene scene;
	struct verdict verdict;

	a_good_run(&scene);
	decide(&scene, &verdict);
	assert_int_equal(verdict.kind, VERDICT_SUCCEEDED);
	assert_string_equal(verdict.reason, "");
	assert_int_equal(verdict.exit_code, 0);
	assert_int_equal(verdict_exit_status(&verdict, 0), 0);
}

static void each_line_decides_alone(void **state)
{
	(void)state;
	bool covered[LINES] = {false};

	for (size_t i = 0; i < SPOILINGS; i++) {
		struct scene scene;
		a_good_run(&scene);
		spoilings[i].spoil(&scene);
		assert_verdict(&scene, &spoilings[i]);
		covered[spoilings[i].line] = true;
	}
	for (int line = 1; line < LINES; line++)
		assert_true(covered[line]);
}

static void what_was_heard_of_an_interrupted_run_is_not_its_end(void **state)
{
	(void)state;
	static void (*const heard[])(struct scene *scene) = {exit_with_three, die_of_segv};

	for (size_t i = 0; i < sizeof(heard) / sizeof(heard[0]); i++) {
		struct scene scene;
		struct verdict verdict;

		a_good_run(&scene);
		heard[i](&scene);
		make_interrupted(&scene);
		decide(&scene, &verdict);
		assert_int_equal(verdict.kind, VERDICT_INTERRUPTED);
		assert_int_equal(verdict.exit_code, -1);
		assert_int_equal(verdict.signal, 0);
	}
}

static void of_any_two_lines_the_earlier_decides(void **state)
{
	(void)state;
	int pairs = 0;

	for (size_t early = 0; early < SPOILINGS; early++)
		for (size_t late = early + 1; late < SPOILINGS; late++) {
			const struct spoiling *first = &spoilings[early], *second = &spoilings[late];
			if (first->line == second->line || (first->sets_exit && second->sets_exit))
				continue;
			struct scene scene;
			a_good_run(&scene);
			second->spoil(&scene);
			first->spoil(&scene);
			assert_verdict(&scene, first);
			pairs++;
		}
	assert_true(pairs > 150);
}

static void everything_at_once_is_refused(void **state)
{
	(void)state;
	struct scene scene;

	a_good_run(&scene);
	for (size_t i = SPOILINGS; i-- > 0;)
		spoilings[i].spoil(&scene);
	assert_verdict(&scene, &spoilings[0]);
}

static void totals_are_judged_cpu_then_wall_then_output(void **state)
{
	(void)state;
	struct scene scene;
	struct verdict verdict;

	a_good_run(&scene);
	output_total_over(&scene);
	wall_total_over(&scene);
	decide(&scene, &verdict);
	assert_string_equal(verdict.reason, "wall_limit");
	cpu_total_over(&scene);
	decide(&scene, &verdict);
	assert_string_equal(verdict.reason, "cpu_limit");
}

static void what_is_exactly_the_limit_is_not_over_it(void **state)
{
	(void)state;
	struct scene scene;
	struct verdict verdict;

	a_good_run(&scene);
	scene.totals.wall_ns = scene.totals.wall_limit_ns;
	scene.totals.cpu_ns = scene.totals.cpu_limit_ns;
	decide(&scene, &verdict);
	assert_int_equal(verdict.kind, VERDICT_SUCCEEDED);
}

static void totals_that_could_not_be_read_blame_nobody(void **state)
{
	(void)state;
	struct scene scene;
	struct verdict verdict;

	a_good_run(&scene);
	scene.totals.wall_ns = scene.totals.cpu_ns = scene.totals.oom_kills = -1;
	decide(&scene, &verdict);
	assert_int_equal(verdict.kind, VERDICT_SUCCEEDED);
}

/* H28: raise(9), raise(24), raise(25), raise(31). */
static void a_guests_own_signal_is_never_a_limit(void **state)
{
	(void)state;
	static const int numbers[] = {9, 24, 25, 31, 6, 11, 15, 1, 64};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct scene scene;
		struct verdict verdict;
		a_good_run(&scene);
		scene.life.exit = (struct main_exit){.how = MAIN_SIGNALED, .signal = numbers[i]};
		decide(&scene, &verdict);
		assert_int_equal(verdict.kind, VERDICT_SIGNALED);
		assert_string_equal(verdict.reason, verdict_signal_name(numbers[i]));
		assert_int_equal(verdict.signal, numbers[i]);
		assert_int_equal(verdict.exit_code, -1);
		assert_int_equal(verdict_exit_status(&verdict, 0), 128 + numbers[i]);
	}
}

/* H29: exit 124, 125, 126, 127, 137, 139, 152, 255. */
static void a_guests_own_exit_code_is_never_a_limit(void **state)
{
	(void)state;
	static const int codes[] = {1, 124, 125, 126, 127, 137, 139, 152, 255};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct scene scene;
		struct verdict verdict;
		a_good_run(&scene);
		scene.life.exit = (struct main_exit){.how = MAIN_EXITED, .code = codes[i]};
		decide(&scene, &verdict);
		assert_int_equal(verdict.kind, VERDICT_FAILED);
		assert_string_equal(verdict.reason, "exit_code");
		assert_int_equal(verdict.exit_code, codes[i]);
		assert_int_equal(verdict.signal, 0);
		assert_int_equal(verdict_exit_status(&verdict, 0), codes[i]);
	}
}

/* H27: the kill of a limit is the limit's verdict, and the signal stays visible as a fact. */
static void our_own_signal_is_never_signaled(void **state)
{
	(void)state;
	struct scene scene;
	struct verdict verdict;

	a_good_run(&scene);
	kill_without_cause(&scene);
	stop_for(&scene, STOP_CPU);
	decide(&scene, &verdict);
	assert_int_equal(verdict.kind, VERDICT_TIMED_OUT);
	assert_string_equal(verdict.reason, "cpu_limit");
	assert_int_equal(verdict.signal, 9);

	scene.life.stop = STOP_NONE;
	scene.totals.oom_kills = 1; /* the kill that answered an OOM */
	decide(&scene, &verdict);
	assert_string_equal(verdict.reason, "memory_limit");
}

static void an_oom_kill_counts_whatever_main_returned(void **state)
{
	(void)state;
	struct scene scene;

	for (int code = 0; code < 2; code++) {
		struct verdict verdict;
		a_good_run(&scene);
		scene.life.exit.code = code;
		scene.totals.oom_kills = 2;
		decide(&scene, &verdict);
		assert_int_equal(verdict.kind, VERDICT_LIMIT_EXCEEDED);
		assert_int_equal(verdict.exit_code, code);
		assert_string_equal(verdict.detail, "2 OOM kills");
	}
}

static void an_end_that_nobody_reported_is_no_success(void **state)
{
	(void)state;
	struct scene scene;
	struct verdict verdict;

	a_good_run(&scene);
	scene.life.exit = (struct main_exit){.how = MAIN_UNKNOWN};
	decide(&scene, &verdict);
	assert_int_equal(verdict.kind, VERDICT_BOUNDARY_ERROR);
	assert_string_equal(verdict.reason, "end_unknown");
}

static void a_retained_handle_may_be_ignored_on_request(void **state)
{
	(void)state;
	struct scene scene;
	struct verdict verdict;

	a_good_run(&scene);
	retain_handle(&scene);
	scene.totals.retained_ignored = true;
	decide(&scene, &verdict);
	assert_int_equal(verdict.kind, VERDICT_SUCCEEDED);
}

static void the_detail_holds_the_figure(void **state)
{
	(void)state;
	struct scene scene;
	struct verdict verdict;

	a_good_run(&scene);
	stop_at_wall(&scene);
	scene.totals.wall_ns = 1003 * NS_PER_MS;
	decide(&scene, &verdict);
	assert_string_equal(verdict.detail, "ran 1003 ms of 1000 ms");

	scene.totals.wall_ns = -1; /* main's exit was never seen: then up to the stop */
	decide(&scene, &verdict);
	assert_string_equal(verdict.detail, "ran 1000 ms of 1000 ms");

	scene.life.launched_at_ns = 0; /* a recovery does not know even that */
	decide(&scene, &verdict);
	assert_string_equal(verdict.detail, "ran for all of 1000 ms");
	make_cancelled(&scene);
	decide(&scene, &verdict);
	assert_string_equal(verdict.detail, "after the launch");

	stop_at_cpu(&scene);
	decide(&scene, &verdict);
	assert_string_equal(verdict.detail, "used 200 ms of 2000 ms CPU time");
	scene.totals.cpu_ns = -1;
	decide(&scene, &verdict);
	assert_string_equal(verdict.detail, "used up 2000 ms of CPU time");
	scene.totals.cpu_ns = 2013 * NS_PER_MS;
	decide(&scene, &verdict);
	assert_string_equal(verdict.detail, "used 2013 ms of 2000 ms CPU time");

	make_not_launched(&scene);
	decide(&scene, &verdict);
	assert_string_equal(verdict.detail, "enroll: seccomp: mode is 0");
}

static void a_step_without_words_is_named(void **state)
{
	(void)state;
	struct scene scene;
	struct verdict verdict;

	a_good_run(&scene);
	scene.life.failed_step = STEP_CREATE;
	decide(&scene, &verdict);
	assert_string_equal(verdict.reason, "create");
	assert_string_equal(verdict.detail, "create: not done");
}

static void a_detail_is_never_cut_inside_a_character(void **state)
{
	(void)state;
	struct scene scene;
	struct verdict verdict;

	a_good_run(&scene);
	scene.life.failed_step = STEP_ENROLL;
	memset(scene.life.detail, 'x', sizeof(scene.life.detail) - 1);
	/* "enroll: " shifts it by 8, so that the end falls between the two bytes of "é". */
	memcpy(scene.life.detail + LIFE_DETAIL_MAX - 10, "\xc3\xa9", 2);
	decide(&scene, &verdict);
	assert_int_equal(strlen(verdict.detail), LIFE_DETAIL_MAX - 2);
	assert_int_equal(verdict.detail[LIFE_DETAIL_MAX - 3], 'x');
}

static void exec_failure_tells_missing_from_forbidden(void **state)
{
	(void)state;
	static const struct { int number, status; } cases[] = {{ENOENT, 127}, {EACCES, 126}, {ENOEXEC, 126}, {E2BIG, 126}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene scene;
		struct verdict verdict;
		a_good_run(&scene);
		scene.life.exit = (struct main_exit){.how = MAIN_NOT_EXECUTED, .code = cases[i].number};
		decide(&scene, &verdict);
		assert_string_equal(verdict.reason, "exec_failed");
		assert_int_equal(verdict.exit_code, -1);
		assert_int_equal(verdict.exec_errno, cases[i].number);
		assert_int_equal(verdict_exit_status(&verdict, 0), cases[i].status);
	}
}

static void cancelled_by_a_signal_exits_with_it(void **state)
{
	(void)state;
	const struct verdict cancelled = {.kind = VERDICT_CANCELLED, .exit_code = -1};
	const struct verdict timed_out = {.kind = VERDICT_TIMED_OUT, .exit_code = -1};

	assert_int_equal(verdict_exit_status(&cancelled, 2), 130);
	assert_int_equal(verdict_exit_status(&cancelled, 15), 143);
	assert_int_equal(verdict_exit_status(&cancelled, 0), 125);
	assert_int_equal(verdict_exit_status(&timed_out, 2), 124);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_spoiled_is_succeeded),
		cmocka_unit_test(each_line_decides_alone),
		cmocka_unit_test(what_was_heard_of_an_interrupted_run_is_not_its_end),
		cmocka_unit_test(of_any_two_lines_the_earlier_decides),
		cmocka_unit_test(everything_at_once_is_refused),
		cmocka_unit_test(totals_are_judged_cpu_then_wall_then_output),
		cmocka_unit_test(what_is_exactly_the_limit_is_not_over_it),
		cmocka_unit_test(totals_that_could_not_be_read_blame_nobody),
		cmocka_unit_test(a_guests_own_signal_is_never_a_limit),
		cmocka_unit_test(a_guests_own_exit_code_is_never_a_limit),
		cmocka_unit_test(our_own_signal_is_never_signaled),
		cmocka_unit_test(an_oom_kill_counts_whatever_main_returned),
		cmocka_unit_test(an_end_that_nobody_reported_is_no_success),
		cmocka_unit_test(a_retained_handle_may_be_ignored_on_request),
		cmocka_unit_test(the_detail_holds_the_figure),
		cmocka_unit_test(a_step_without_words_is_named),
		cmocka_unit_test(a_detail_is_never_cut_inside_a_character),
		cmocka_unit_test(exec_failure_tells_missing_from_forbidden),
		cmocka_unit_test(cancelled_by_a_signal_exits_with_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
