/* test_recording.c - the model refuses, and remembers, every call that the boundary contract does not allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "boundary/recording/recording.h"

struct stage {
	struct recording_world *world;
	struct boundary_provider provider;
	struct boundary *boundary;
	struct plan plan;
	struct boundary_spec spec;
	struct evidence_list evidence;
};

static void open_boundary(struct stage *stage, struct boundary **ret)
{
	assert_int_equal(stage->provider.ops->open(stage->provider.context, ret, NULL), 0);
}

static void begin(struct stage *stage, const struct recording_script *script)
{
	*stage = (struct stage){.plan = {.limits = {.wall_ms = 1000, .cpu_ms = 1000, .drain_ms = 100, .cleanup_ms = 1000}}};
	assert_int_equal(recording_world_new(&stage->world, NULL), 0);
	stage->provider = recording_provider(stage->world);
	recording_world_script(stage->world, script);
	open_boundary(stage, &stage->boundary);
	id_new("led", stage->spec.identity.ledger_id);
	id_new("bnd", stage->spec.identity.boundary_id);
	stage->spec.plan = &stage->plan;
}

static void end(struct stage *stage)
{
	stage->boundary->ops->free(stage->boundary);
	recording_world_free(stage->world);
}

static void launch(struct stage *stage)
{
	struct boundary *b = stage->boundary;
	assert_int_equal(b->ops->prepare(b, &stage->spec, &stage->evidence, NULL), 0);
	assert_int_equal(b->ops->create_suspended(b, &stage->evidence, NULL), 0);
	assert_int_equal(b->ops->enroll(b, &stage->evidence, NULL), 0);
	assert_int_equal(b->ops->launch(b, NULL), 0);
}

static struct recording_unit_view view_of(const struct stage *stage)
{
	struct recording_unit_view view;
	recording_world_view(stage->world, &stage->spec.identity, &view);
	return view;
}

static void assert_violated(struct stage *stage, int rc, const char *text)
{
	assert_int_equal(rc, ERR_STATE);
	assert_string_equal(recording_world_violation(stage->world), text);
	end(stage);
}

static void launch_before_enroll_is_refused(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, NULL);
	struct boundary *b = stage.boundary;
	assert_int_equal(b->ops->prepare(b, &stage.spec, &stage.evidence, NULL), 0);
	assert_int_equal(b->ops->create_suspended(b, &stage.evidence, NULL), 0);
	int rc = b->ops->launch(b, NULL);
	assert_int_equal(view_of(&stage).launches, 0);
	assert_violated(&stage, rc, "launch called on a boundary that is suspended");
}

static void launch_after_a_failed_enroll_is_refused(void **state)
{
	const struct recording_script script = {.fail = {[RECORDING_ENROLL] = ERR_UNVERIFIED}};
	struct stage stage;
	(void)state;
	begin(&stage, &script);
	struct boundary *b = stage.boundary;
	assert_int_equal(b->ops->prepare(b, &stage.spec, &stage.evidence, NULL), 0);
	assert_int_equal(b->ops->create_suspended(b, &stage.evidence, NULL), 0);
	assert_int_equal(b->ops->enroll(b, &stage.evidence, NULL), ERR_UNVERIFIED);
	int rc = b->ops->launch(b, NULL);
	assert_int_equal(view_of(&stage).launches, 0);
	assert_violated(&stage, rc, "launch called on a boundary that is failed");
}

static void second_launch_is_refused(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, NULL);
	launch(&stage);
	int rc = stage.boundary->ops->launch(stage.boundary, NULL);
	assert_int_equal(view_of(&stage).launches, 1);
	assert_violated(&stage, rc, "launch called on a boundary that is launched");
}

static void drain_before_the_end_is_refused(void **state)
{
	struct stage stage;
	struct boundary_drain drain;
	(void)state;
	begin(&stage, NULL);
	launch(&stage);
	assert_violated(&stage, stage.boundary->ops->drain(stage.boundary, &drain, NULL),
	                "drain called on a boundary that is launched");
}

static void verification_before_cleanup_is_refused(void **state)
{
	struct stage stage;
	(void)state;
	begin(&stage, NULL);
	launch(&stage);
	assert_violated(&stage, stage.boundary->ops->verify_empty(stage.boundary, NULL),
	                "verify_empty called on a boundary that is launched");
}

static void waiting_for_ever_is_a_violation(void **state)
{
	const struct recording_script forever = {.unkillable = true};
	struct stage stage;
	struct boundary_event event;
	(void)state;
	begin(&stage, &forever);
	launch(&stage);
	struct boundary *b = stage.boundary;
	assert_int_equal(b->ops->observe(b, INT64_MAX, &event, NULL), 0);
	assert_int_equal(event.kind, BOUNDARY_LIMIT);
	assert_int_equal(b->ops->observe(b, INT64_MAX, &event, NULL), ERR_TIMEOUT);
	assert_string_not_equal(recording_world_violation(stage.world), "");
	end(&stage);
}

static void time_is_virtual(void **state)
{
	const struct recording_event events[] = {{.at_ms = 3600000, .happening = RECORDING_EXIT, .status = 7}};
	const struct recording_script script = {.events = events, .event_count = 1};
	struct stage stage;
	struct boundary_event event;
	(void)state;
	begin(&stage, &script);
	stage.plan.limits.wall_ms = stage.plan.limits.cpu_ms = 7200000;
	int64_t before_ns = clock_mono_ns();
	launch(&stage);
	struct boundary *b = stage.boundary;
	int64_t deadline_ns = clock_mono_ns() + 60 * NS_PER_S;
	assert_int_equal(b->ops->observe(b, deadline_ns, &event, NULL), 0);
	assert_int_equal(event.kind, BOUNDARY_DEADLINE);
	assert_true(event.at_ns == deadline_ns);
	assert_int_equal(b->ops->observe(b, INT64_MAX, &event, NULL), 0);
	assert_int_equal(event.kind, BOUNDARY_MAIN_EXITED);
	assert_int_equal(event.status, 7);
	assert_true(event.at_ns - event.launched_at_ns == 3600 * NS_PER_S);
	assert_true(clock_mono_ns() - before_ns < 3600 * NS_PER_S);
	end(&stage);
}

static void failed_cleanup_quarantines_the_unit_until_it_is_recovered(void **state)
{
	const struct recording_script script = {.cleanup_failures = 1};
	struct stage stage;
	struct boundary *other;
	struct boundary_usage usage;
	int survivors = -1;
	(void)state;
	begin(&stage, &script);
	launch(&stage);
	assert_int_equal(stage.boundary->ops->cleanup(stage.boundary, &usage, NULL), ERR_TIMEOUT);
	assert_true(view_of(&stage).quarantined);
	open_boundary(&stage, &other);
	assert_int_equal(other->ops->prepare(other, &stage.spec, &stage.evidence, NULL), ERR_STATE);
	other->ops->free(other);
	assert_int_equal(stage.provider.ops->recover(stage.provider.context, &stage.spec.identity, 1000, &survivors, NULL), 0);
	assert_false(view_of(&stage).quarantined);
	assert_false(view_of(&stage).exists);
	end(&stage);
}

static void abandoned_unit_lives_on_until_it_is_recovered(void **state)
{
	struct stage stage;
	int survivors = -1;
	(void)state;
	begin(&stage, NULL);
	launch(&stage);
	recording_abandon(stage.boundary);
	assert_true(view_of(&stage).main_alive);
	assert_int_equal(stage.provider.ops->recover(stage.provider.context, &stage.spec.identity, 1000, &survivors, NULL), 0);
	assert_int_equal(survivors, 1);
	assert_false(view_of(&stage).main_alive);
	open_boundary(&stage, &stage.boundary);
	end(&stage);
}

static void interrupt_is_the_next_event(void **state)
{
	struct stage stage;
	struct boundary_event event;
	(void)state;
	begin(&stage, NULL);
	launch(&stage);
	struct boundary *b = stage.boundary;
	b->ops->interrupt(b);
	assert_int_equal(b->ops->observe(b, INT64_MAX, &event, NULL), 0);
	assert_int_equal(event.kind, BOUNDARY_INTERRUPTED);
	assert_int_equal(b->ops->observe(b, INT64_MAX, &event, NULL), 0);
	assert_int_equal(event.kind, BOUNDARY_MAIN_EXITED);
	end(&stage);
}

static void trace_tells_the_calls(void **state)
{
	struct stage stage;
	struct boundary_event event;
	struct boundary_drain drain;
	struct boundary_usage usage;
	(void)state;
	begin(&stage, NULL);
	launch(&stage);
	struct boundary *b = stage.boundary;
	assert_int_equal(b->ops->observe(b, INT64_MAX, &event, NULL), 0);
	assert_int_equal(b->ops->drain(b, &drain, NULL), 0);
	assert_int_equal(b->ops->cleanup(b, &usage, NULL), 0);
	assert_int_equal(b->ops->verify_empty(b, NULL), 0);
	assert_string_equal(recording_world_trace(stage.world),
	                    "prepare ok\ncreate_suspended ok\nenroll ok\nlaunch ok\nobserve main_exited\ndrain ok\ncleanup ok\n"
	                    "verify_empty ok\n");
	end(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launch_before_enroll_is_refused),
		cmocka_unit_test(launch_after_a_failed_enroll_is_refused),
		cmocka_unit_test(second_launch_is_refused),
		cmocka_unit_test(drain_before_the_end_is_refused),
		cmocka_unit_test(verification_before_cleanup_is_refused),
		cmocka_unit_test(waiting_for_ever_is_a_violation),
		cmocka_unit_test(time_is_virtual),
		cmocka_unit_test(failed_cleanup_quarantines_the_unit_until_it_is_recovered),
		cmocka_unit_test(abandoned_unit_lives_on_until_it_is_recovered),
		cmocka_unit_test(interrupt_is_the_next_event),
		cmocka_unit_test(trace_tells_the_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
