/* slots.c - the recording boundary's slots: each checks the contract, follows the script, and leaves a line in the trace. */
#include "boundary/recording/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const char *const step_names[RECORDING_STEP_COUNT] = {
	[RECORDING_PREPARE] = "prepare",
	[RECORDING_CREATE_SUSPENDED] = "create_suspended",
	[RECORDING_ENROLL] = "enroll",
	[RECORDING_LAUNCH] = "launch",
	[RECORDING_OBSERVE] = "observe",
	[RECORDING_TERMINATE] = "terminate",
	[RECORDING_KILL] = "kill",
	[RECORDING_DRAIN] = "drain",
	[RECORDING_CLEANUP] = "cleanup",
	[RECORDING_VERIFY_EMPTY] = "verify_empty",
	[RECORDING_COLLECT] = "collect",
};

static const char *const phase_names[PHASE_COUNT] = {
	[PHASE_OPENED] = "opened",     [PHASE_PREPARED] = "prepared", [PHASE_SUSPENDED] = "suspended",
	[PHASE_ENROLLED] = "enrolled", [PHASE_LAUNCHED] = "launched", [PHASE_EXITED] = "exited",
	[PHASE_FAILED] = "failed",     [PHASE_CLEANED] = "cleaned",   [PHASE_EMPTY] = "empty",
	[PHASE_COLLECTED] = "collected",
};

#define IN(phase) (1u << (phase))

/* In which phases a step may be called. terminate and kill are allowed wherever something may run. */
static const unsigned allowed[RECORDING_STEP_COUNT] = {
	[RECORDING_PREPARE] = IN(PHASE_OPENED),
	[RECORDING_CREATE_SUSPENDED] = IN(PHASE_PREPARED),
	[RECORDING_ENROLL] = IN(PHASE_SUSPENDED),
	[RECORDING_LAUNCH] = IN(PHASE_ENROLLED),
	[RECORDING_OBSERVE] = IN(PHASE_LAUNCHED) | IN(PHASE_EXITED),
	[RECORDING_TERMINATE] = IN(PHASE_LAUNCHED) | IN(PHASE_EXITED),
	[RECORDING_KILL] = ~(IN(PHASE_CLEANED) | IN(PHASE_EMPTY) | IN(PHASE_COLLECTED)),
	[RECORDING_DRAIN] = IN(PHASE_EXITED),
	[RECORDING_CLEANUP] = ~0u,
	[RECORDING_VERIFY_EMPTY] = IN(PHASE_CLEANED) | IN(PHASE_EMPTY),
	[RECORDING_COLLECT] = IN(PHASE_EMPTY),
};

static struct recording_boundary *recording(struct boundary *b)
{
	return (struct recording_boundary *)b;
}

/* The common end of every slot: the trace line. */
static int done(struct recording_boundary *b, enum recording_step step, int rc, const char *outcome)
{
	recording_trace(b->world, step_names[step], rc < 0 ? err_code_name(rc) : outcome);
	return rc;
}

/* The common beginning: is the call allowed, is the worker there, does the script let it fail? Traces what it refuses. */
static int begin(struct recording_boundary *b, enum recording_step step, struct err *err)
{
	if (!(allowed[step] & IN(b->phase))) {
		recording_violate(b->world, "%s called on a boundary that is %s", step_names[step], phase_names[b->phase]);
		return done(b, step, err_set(err, ERR_STATE, "%s: the boundary is %s", step_names[step], phase_names[b->phase]),
		            NULL);
	}
	if (b->worker_lost)
		return done(b, step, err_set(err, ERR_LOST, "the worker is gone"), NULL);
	int code = b->script->fail[step];
	if (code == 0)
		return 0;
	const char *text = b->script->fail_text ? b->script->fail_text : "scripted failure";
	if (b->phase < PHASE_LAUNCHED)
		b->phase = PHASE_FAILED;
	return done(b, step, err_set(err, code, "%s", text), NULL);
}

static int claim_unit(struct recording_boundary *b, const struct boundary_identity *identity, struct err *err)
{
	struct recording_unit *unit = recording_unit_find(b->world, identity);
	if (unit && unit->quarantined)
		return err_set(err, ERR_STATE, "boundary %s is quarantined", identity->boundary_id);
	if (unit && unit->exists)
		return err_set(err, ERR_EXISTS, "boundary %s exists", identity->boundary_id);
	if (!unit) {
		int rc = recording_unit_make(b->world, identity, &unit, err);
		if (rc < 0)
			return rc;
	}
	unit->exists = true;
	unit->descendant_count = 0;
	unit->script = b->script;
	unit->cleanup_failures_left = b->script->cleanup_failures;
	unit->verify_failures_left = b->script->verify_failures;
	unit->recover_failures_left = b->script->recover_failures;
	b->unit = unit;
	return 0;
}

static int slot_prepare(struct boundary *base, const struct boundary_spec *spec, struct evidence_list *evidence, struct err *err)
{
	struct recording_boundary *b = recording(base);
	if (b->phase != PHASE_OPENED)
		return begin(b, RECORDING_PREPARE, err);
	int rc = claim_unit(b, &spec->identity, err);
	if (rc < 0) {
		b->phase = PHASE_FAILED;
		return done(b, RECORDING_PREPARE, rc, NULL);
	}
	rc = begin(b, RECORDING_PREPARE, err);
	if (rc < 0)
		return rc;
	b->plan = spec->plan;
	b->store = spec->store;
	b->standard_output = spec->standard_output;
	b->standard_error = spec->standard_error;
	rc = evidence_add(evidence, "model.limits", EVIDENCE_OBSERVED, err, "wall %lld ms, cpu %lld ms",
	                  (long long)spec->plan->limits.wall_ms, (long long)spec->plan->limits.cpu_ms);
	if (rc == 0)
		b->phase = PHASE_PREPARED;
	return done(b, RECORDING_PREPARE, rc, "ok");
}

static int slot_create_suspended(struct boundary *base, struct evidence_list *evidence, struct err *err)
{
	struct recording_boundary *b = recording(base);
	int rc = begin(b, RECORDING_CREATE_SUSPENDED, err);
	if (rc < 0)
		return rc;
	rc = evidence_add(evidence, "model.gate", EVIDENCE_ATTESTED, err, "main waits at the gate");
	b->unit->main_alive = rc == 0;
	b->phase = rc == 0 ? PHASE_SUSPENDED : PHASE_FAILED;
	return done(b, RECORDING_CREATE_SUSPENDED, rc, "ok");
}

/* Fail closed: what the plan requires must be one of our lines, and "name>=N" asks for a level that the model has not. */
static int check_required(const struct plan *plan, const struct evidence_list *evidence, struct err *err)
{
	for (size_t i = 0; i < plan->require_count; i++) {
		bool found = false;
		for (size_t j = 0; j < evidence->count; j++)
			found = found || !strcmp(plan->require[i], evidence->lines[j].name);
		if (!found)
			return err_set(err, ERR_UNVERIFIED, "%s: required, and the recording model has no such evidence",
			               plan->require[i]);
	}
	return 0;
}

static int slot_enroll(struct boundary *base, struct evidence_list *evidence, struct err *err)
{
	struct recording_boundary *b = recording(base);
	int rc = begin(b, RECORDING_ENROLL, err);
	if (rc < 0)
		return rc;
	rc = evidence_add(evidence, "model.members", EVIDENCE_OBSERVED, err, "init and main, nobody else");
	if (rc == 0)
		rc = check_required(b->plan, evidence, err);
	b->phase = rc == 0 ? PHASE_ENROLLED : PHASE_FAILED;
	return done(b, RECORDING_ENROLL, rc, "ok");
}

static int slot_launch(struct boundary *base, struct err *err)
{
	struct recording_boundary *b = recording(base);
	int rc = begin(b, RECORDING_LAUNCH, err);
	if (rc < 0)
		return rc;
	b->unit->launches++;
	b->phase = PHASE_LAUNCHED;
	b->launched_at_ns = b->now_ns = clock_mono_ns();
	return done(b, RECORDING_LAUNCH, 0, "ok");
}

static const char *event_name(enum boundary_event_kind kind)
{
	switch (kind) {
	case BOUNDARY_MAIN_EXITED:
		return "main_exited";
	case BOUNDARY_LIMIT:
		return "limit";
	case BOUNDARY_INTERRUPTED:
		return "interrupted";
	case BOUNDARY_DEADLINE:
		return "deadline";
	case BOUNDARY_LOST:
		return "lost";
	}
	return "unknown";
}

static int slot_observe(struct boundary *base, int64_t deadline_ns, struct boundary_event *ret, struct err *err)
{
	struct recording_boundary *b = recording(base);
	int rc = begin(b, RECORDING_OBSERVE, err);
	if (rc < 0)
		return rc;
	enum recording_next next;
	struct boundary_event event;
	rc = recording_advance(b, deadline_ns, &next, &event, err);
	if (rc < 0)
		return done(b, RECORDING_OBSERVE, rc, NULL);
	if (next == NEXT_NOTHING && deadline_ns == INT64_MAX) {
		recording_violate(b->world, "observe without a deadline waits for ever");
		return done(b, RECORDING_OBSERVE, err_set(err, ERR_TIMEOUT, "nothing will ever happen"), NULL);
	}
	if (next == NEXT_NOTHING)
		event = (struct boundary_event){.kind = BOUNDARY_DEADLINE, .at_ns = b->now_ns};
	if (event.kind == BOUNDARY_MAIN_EXITED || event.kind == BOUNDARY_LOST)
		b->phase = PHASE_EXITED;
	*ret = event;
	return done(b, RECORDING_OBSERVE, 0, event_name(event.kind));
}

static int slot_terminate(struct boundary *base, struct err *err)
{
	struct recording_boundary *b = recording(base);
	int rc = begin(b, RECORDING_TERMINATE, err);
	if (rc < 0)
		return rc;
	if (b->killed_at_ns < 0)
		b->killed_at_ns = b->now_ns;
	if (!b->script->ignores_term && b->unit->main_alive) {
		recording_unit_kill(b->unit);
		recording_end_main(b, BOUNDARY_SIGNALED, SIGTERM, true);
	}
	return done(b, RECORDING_TERMINATE, 0, "ok");
}

static int slot_kill(struct boundary *base, struct err *err)
{
	struct recording_boundary *b = recording(base);
	int rc = begin(b, RECORDING_KILL, err);
	if (rc < 0)
		return rc;
	if (b->phase == PHASE_LAUNCHED || b->phase == PHASE_EXITED) {
		recording_kill_now(b);
		b->phase = PHASE_EXITED;
	} else {
		if (b->unit)
			recording_unit_kill(b->unit);
		b->phase = PHASE_FAILED;
	}
	return done(b, RECORDING_KILL, 0, "ok");
}

static void holders(const struct recording_unit *unit, bool *ret_stdout, bool *ret_stderr)
{
	*ret_stdout = *ret_stderr = unit->main_alive;
	for (int i = 0; i < unit->descendant_count; i++) {
		const struct recording_descendant *d = &unit->descendants[i];
		*ret_stdout = *ret_stdout || (d->alive && d->holds_stdout);
		*ret_stderr = *ret_stderr || (d->alive && d->holds_stderr);
	}
}

static int slot_drain(struct boundary *base, struct boundary_drain *ret, struct err *err)
{
	struct recording_boundary *b = recording(base);
	int rc = begin(b, RECORDING_DRAIN, err);
	if (rc < 0)
		return rc;
	struct boundary_drain drain;
	int64_t until_ns = b->now_ns + b->plan->limits.drain_ms * NS_PER_MS;
	enum recording_next next;
	struct boundary_event event;
	for (holders(b->unit, &drain.stdout_retained, &drain.stderr_retained); drain.stdout_retained || drain.stderr_retained;
	     holders(b->unit, &drain.stdout_retained, &drain.stderr_retained)) {
		rc = recording_advance(b, until_ns, &next, &event, err);
		if (rc < 0)
			return done(b, RECORDING_DRAIN, rc, NULL);
		if (next == NEXT_NOTHING)
			break;
	}
	holders(b->unit, &drain.stdout_retained, &drain.stderr_retained);
	if (b->standard_output && !drain.stdout_retained)
		capture_mark_drained(b->standard_output);
	if (b->standard_error && !drain.stderr_retained)
		capture_mark_drained(b->standard_error);
	*ret = drain;
	return done(b, RECORDING_DRAIN, 0, drain.stdout_retained || drain.stderr_retained ? "retained" : "ok");
}

static struct boundary_usage usage_of(const struct recording_boundary *b)
{
	return (struct boundary_usage){
		.cpu_user_ns = b->launched_at_ns ? b->cpu_ns : -1,
		.cpu_system_ns = b->launched_at_ns ? 0 : -1,
		.cpu_total_ns = b->launched_at_ns ? b->cpu_ns : -1,
		.memory_peak_bytes = -1,
		.memory_peak_anon_sampled_bytes = -1,
		.pids_peak = b->launched_at_ns ? 1 + b->descendants_peak : -1,
		.oom_kills = b->launched_at_ns ? b->oom_kills : -1,
		.survivors_killed = b->survivors_killed,
		.space_full = false,
	};
}

/* A cleanup or verification that fails quarantines the unit, whoever asks later (R6). */
static int quarantine(struct recording_boundary *b, enum recording_step step, int rc)
{
	if (b->unit && b->unit->exists)
		b->unit->quarantined = true;
	return done(b, step, rc, NULL);
}

static int slot_cleanup(struct boundary *base, struct boundary_usage *ret, struct err *err)
{
	struct recording_boundary *b = recording(base);
	int rc = begin(b, RECORDING_CLEANUP, err);
	if (rc < 0)
		return quarantine(b, RECORDING_CLEANUP, rc);
	if (b->unit && b->unit->exists) {
		if (b->unit->main_alive && b->script->unkillable)
			return quarantine(b, RECORDING_CLEANUP, err_set(err, ERR_TIMEOUT, "main does not die"));
		b->survivors_killed += recording_unit_kill(b->unit);
		if (b->unit->cleanup_failures_left > 0) {
			b->unit->cleanup_failures_left--;
			return quarantine(b, RECORDING_CLEANUP, err_set(err, ERR_TIMEOUT, "scripted: something is left"));
		}
		b->unit->exists = false;
	}
	b->phase = PHASE_CLEANED;
	*ret = usage_of(b);
	return done(b, RECORDING_CLEANUP, 0, "ok");
}

static int slot_verify_empty(struct boundary *base, struct err *err)
{
	struct recording_boundary *b = recording(base);
	int rc = begin(b, RECORDING_VERIFY_EMPTY, err);
	if (rc < 0)
		return quarantine(b, RECORDING_VERIFY_EMPTY, rc);
	if (b->unit && b->unit->verify_failures_left > 0) {
		b->unit->verify_failures_left--;
		b->unit->exists = true; /* what the cleanup believed to be gone is not */
		return quarantine(b, RECORDING_VERIFY_EMPTY, err_set(err, ERR_UNVERIFIED, "scripted: a member is left"));
	}
	b->phase = PHASE_EMPTY;
	return done(b, RECORDING_VERIFY_EMPTY, 0, "ok");
}

/* Also a collection that failed is over: what it was made of is gone. */
static int slot_collect(struct boundary *base, struct artifact_list *ret, struct err *err)
{
	struct recording_boundary *b = recording(base);
	int rc = begin(b, RECORDING_COLLECT, err);
	if (rc < 0)
		return rc;
	rc = recording_collect(b, ret, err);
	b->phase = PHASE_COLLECTED;
	return done(b, RECORDING_COLLECT, rc, "ok");
}

static void slot_interrupt(struct boundary *base)
{
	recording(base)->interrupted = 1;
}

static void slot_free(struct boundary *base)
{
	if (!base)
		return;
	struct recording_boundary *b = recording(base);
	if (b->unit && b->unit->exists && !b->script->unkillable)
		recording_unit_kill(b->unit);
	free(b);
}

const struct boundary_ops recording_ops = {
	.prepare = slot_prepare,
	.create_suspended = slot_create_suspended,
	.enroll = slot_enroll,
	.launch = slot_launch,
	.observe = slot_observe,
	.terminate = slot_terminate,
	.kill = slot_kill,
	.drain = slot_drain,
	.cleanup = slot_cleanup,
	.verify_empty = slot_verify_empty,
	.collect = slot_collect,
	.interrupt = slot_interrupt,
	.free = slot_free,
};
