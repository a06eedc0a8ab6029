/* model.c - virtual time: the next thing that a script, a limit or a kill makes happen. */
#include "boundary/recording/model.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

void recording_end_main(struct recording_boundary *b, enum boundary_exit how, int status, bool killed_by_us)
{
	b->unit->main_alive = false;
	b->exit_pending = true;
	b->exit = (struct boundary_event){
		.kind = BOUNDARY_MAIN_EXITED,
		.at_ns = b->now_ns,
		.how = how,
		.status = status,
		.launched_at_ns = b->launched_at_ns,
		.killed_by_us = killed_by_us,
		.descendants_alive = recording_unit_alive(b->unit),
	};
}

void recording_kill_now(struct recording_boundary *b)
{
	if (b->killed_at_ns < 0)
		b->killed_at_ns = b->now_ns;
	if (b->script->unkillable)
		return;
	bool main_was_alive = b->unit->main_alive;
	recording_unit_kill(b->unit);
	if (main_was_alive)
		recording_end_main(b, BOUNDARY_SIGNALED, SIGKILL, true);
}

static struct boundary_event limit_event(struct recording_boundary *b, enum boundary_limit limit, const char *detail)
{
	struct boundary_event event = {.kind = BOUNDARY_LIMIT, .at_ns = b->now_ns, .limit = limit};
	snprintf(event.detail, sizeof(event.detail), "%s", detail);
	if (b->plan->limits.on_limit_grace_ms == 0)
		recording_kill_now(b);
	return event;
}

/* Writes `bytes` bytes, `text` over and over. A full spool is an error of Caisson's, not the guest's. */
static int produce_output(struct recording_boundary *b, const struct recording_event *event, struct err *err)
{
	struct capture *sink = event->stream == 2 ? b->standard_error : b->standard_output;
	size_t unit = event->text ? strlen(event->text) : 0;
	for (int64_t left = event->bytes; sink && unit > 0 && left > 0;) {
		size_t count = left < (int64_t)unit ? (size_t)left : unit;
		int rc = capture_write(sink, event->text, count, err);
		if (rc < 0)
			return rc;
		left -= (int64_t)count;
	}
	return 0;
}

static bool output_over(const struct recording_boundary *b)
{
	struct capture *const sinks[] = {b->standard_output, b->standard_error};
	for (size_t i = 0; i < 2; i++) {
		struct capture_state state = {.overflow = false};
		if (sinks[i])
			capture_get_state(sinks[i], &state);
		if (state.overflow)
			return b->plan->limits.on_overflow == OVERFLOW_KILL;
	}
	return false;
}

static int fork_descendant(struct recording_boundary *b, const struct recording_event *event, struct err *err)
{
	struct recording_unit *unit = b->unit;
	if (unit->descendant_count == RECORDING_DESCENDANTS_MAX)
		return err_set(err, ERR_LIMIT, "the script forks more than %d descendants", RECORDING_DESCENDANTS_MAX);
	unit->descendants[unit->descendant_count++] = (struct recording_descendant){
		.alive = true, .holds_stdout = event->holds_stdout, .holds_stderr = event->holds_stderr};
	if (unit->descendant_count > b->descendants_peak)
		b->descendants_peak = unit->descendant_count;
	return 0;
}

static void end_oldest_descendant(struct recording_unit *unit)
{
	for (int i = 0; i < unit->descendant_count; i++) {
		if (unit->descendants[i].alive) {
			unit->descendants[i].alive = false;
			return;
		}
	}
}

static void lose(struct recording_boundary *b, const char *detail, struct boundary_event *ret)
{
	recording_unit_kill(b->unit);
	*ret = (struct boundary_event){.kind = BOUNDARY_LOST, .at_ns = b->now_ns};
	snprintf(ret->detail, sizeof(ret->detail), "%s", detail);
}

/* What can only happen while main is alive; true when it was such an event. */
static bool happen_to_main(struct recording_boundary *b, const struct recording_event *event, enum recording_next *ret_next,
                           struct boundary_event *ret)
{
	switch (event->happening) {
	case RECORDING_EXIT:
		recording_end_main(b, BOUNDARY_EXITED, event->status, b->killed_at_ns >= 0);
		return true;
	case RECORDING_SIGNAL:
		recording_end_main(b, BOUNDARY_SIGNALED, event->status, false);
		return true;
	case RECORDING_NOT_EXECUTED:
		recording_end_main(b, BOUNDARY_NOT_EXECUTED, event->status, false);
		return true;
	case RECORDING_OOM:
		b->oom_kills++;
		recording_unit_kill(b->unit); /* as memory.oom.group does: all of them, and not by our hand */
		recording_end_main(b, BOUNDARY_SIGNALED, SIGKILL, false);
		*ret = (struct boundary_event){.kind = BOUNDARY_LIMIT, .at_ns = b->now_ns, .limit = BOUNDARY_LIMIT_MEMORY};
		*ret_next = NEXT_EVENT;
		return true;
	case RECORDING_OUTPUT:
	case RECORDING_FORK:
	case RECORDING_DESCENDANT_EXIT:
	case RECORDING_CPU:
	case RECORDING_INTERRUPT:
	case RECORDING_SPOOL_FULL:
	case RECORDING_INIT_LOST:
	case RECORDING_WORKER_LOST:
		return false;
	}
	return false;
}

static int happen(struct recording_boundary *b, const struct recording_event *event, enum recording_next *ret_next,
                  struct boundary_event *ret, struct err *err)
{
	if (b->unit->main_alive && happen_to_main(b, event, ret_next, ret))
		return 0;
	bool somebody = b->unit->main_alive || recording_unit_alive(b->unit) > 0;
	switch (event->happening) {
	case RECORDING_OUTPUT:
		return somebody ? produce_output(b, event, err) : 0;
	case RECORDING_FORK:
		return somebody ? fork_descendant(b, event, err) : 0;
	case RECORDING_DESCENDANT_EXIT:
		end_oldest_descendant(b->unit);
		return 0;
	case RECORDING_CPU:
		b->cpu_ns += event->bytes;
		return 0;
	case RECORDING_INTERRUPT:
		b->base.ops->interrupt(&b->base);
		return 0;
	case RECORDING_SPOOL_FULL:
		return err_set(err, ERR_NO_SPACE, "the spool takes no more bytes");
	case RECORDING_INIT_LOST:
		lose(b, "guest init is gone", ret);
		*ret_next = NEXT_EVENT;
		return 0;
	case RECORDING_WORKER_LOST:
		b->worker_lost = true;
		lose(b, "the worker is gone", ret);
		*ret_next = NEXT_EVENT;
		return 0;
	case RECORDING_EXIT:
	case RECORDING_SIGNAL:
	case RECORDING_NOT_EXECUTED:
	case RECORDING_OOM:
		return 0; /* main is dead already: a kill came first */
	}
	return 0;
}

/* Limits that have been met and not yet reported; main's end; an interrupt: in this order, as a kill makes main's end follow. */
static bool something_is_due(struct recording_boundary *b, struct boundary_event *ret)
{
	const struct plan_limits *limits = &b->plan->limits;
	if (b->interrupted) {
		b->interrupted = 0;
		*ret = (struct boundary_event){.kind = BOUNDARY_INTERRUPTED, .at_ns = b->now_ns};
		return true;
	}
	if (!b->output_reported && output_over(b)) {
		b->output_reported = true;
		*ret = limit_event(b, BOUNDARY_LIMIT_OUTPUT, "a stream is over its limit");
		return true;
	}
	if (!b->cpu_reported && b->unit->main_alive && b->cpu_ns >= limits->cpu_ms * NS_PER_MS) {
		b->cpu_reported = true;
		*ret = limit_event(b, BOUNDARY_LIMIT_CPU, "CPU time used up");
		return true;
	}
	if (!b->wall_reported && b->unit->main_alive && b->now_ns - b->launched_at_ns >= limits->wall_ms * NS_PER_MS) {
		b->wall_reported = true;
		*ret = limit_event(b, BOUNDARY_LIMIT_WALL, "wall time used up");
		return true;
	}
	if (b->exit_pending && !b->exit_reported) {
		b->exit_reported = true;
		*ret = b->exit;
		return true;
	}
	return false;
}

/* The moment of the next thing that will happen by itself. */
static int64_t next_moment_ns(const struct recording_boundary *b)
{
	int64_t moment = INT64_MAX;
	if (b->next_event < b->script->event_count)
		moment = b->launched_at_ns + b->script->events[b->next_event].at_ms * NS_PER_MS;
	int64_t wall_ns = b->launched_at_ns + b->plan->limits.wall_ms * NS_PER_MS;
	if (b->unit->main_alive && !b->wall_reported && wall_ns < moment)
		moment = wall_ns;
	return moment;
}

int recording_advance(struct recording_boundary *b, int64_t until_ns, enum recording_next *ret_next, struct boundary_event *ret,
                      struct err *err)
{
	/* Each turn uses up an event of the script or reports one of five things that are each reported once. */
	for (size_t turn = 0; turn <= b->script->event_count + 8; turn++) {
		*ret_next = NEXT_NOTHING;
		if (something_is_due(b, ret)) {
			*ret_next = NEXT_EVENT;
			return 0;
		}
		int64_t moment = next_moment_ns(b);
		if (moment > until_ns || moment == INT64_MAX) {
			if (until_ns != INT64_MAX && until_ns > b->now_ns)
				b->now_ns = until_ns;
			return 0;
		}
		if (moment > b->now_ns)
			b->now_ns = moment;
		if (b->next_event >= b->script->event_count ||
		    b->launched_at_ns + b->script->events[b->next_event].at_ms * NS_PER_MS > b->now_ns)
			continue; /* a limit's moment, not an event's */
		const struct recording_event *event = &b->script->events[b->next_event++];
		if (event->hook)
			event->hook(event->context);
		int rc = happen(b, event, ret_next, ret, err);
		if (rc < 0 || *ret_next == NEXT_EVENT)
			return rc;
	}
	return err_set(err, ERR_INTERNAL, "the recording script does not come to an end");
}
