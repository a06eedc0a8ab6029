/* shim.c - a boundary that passes every call on, unless the test wants it otherwise. */
#include "shim.h"

#include <stdio.h>
#include <string.h>

static const char *const names[SHIM_SLOT_COUNT] = {
	[SHIM_PREPARE] = "prepare",     [SHIM_CREATE_SUSPENDED] = "create_suspended",
	[SHIM_ENROLL] = "enroll",       [SHIM_LAUNCH] = "launch",
	[SHIM_OBSERVE] = "observe",     [SHIM_TERMINATE] = "terminate",
	[SHIM_KILL] = "kill",           [SHIM_DRAIN] = "drain",
	[SHIM_CLEANUP] = "cleanup",     [SHIM_VERIFY_EMPTY] = "verify_empty",
	[SHIM_COLLECT] = "collect",
};

const char *shim_slot_name(enum shim_slot slot)
{
	return names[slot];
}

static struct shim *shim(struct boundary *b)
{
	return (struct shim *)b;
}

static void note(struct shim *s, enum shim_slot slot)
{
	size_t used = strlen(s->trace), length = strlen(names[slot]);
	bool again = used >= length && !strcmp(s->trace + used - length, names[slot]);
	s->calls[slot]++;
	if (!again)
		snprintf(s->trace + used, sizeof(s->trace) - used, "%s%s", used ? " " : "", names[slot]);
	if (s->before[slot])
		s->before[slot](s->context);
}

/* Passes a call on between note and the failure that the test wants. */
#define PASS(slot, call) \
	do { \
		struct shim *s = shim(b); \
		note(s, slot); \
		if (s->lost_from_observe && s->calls[SHIM_OBSERVE] > 0) \
			return err_set(err, ERR_LOST, "shim: the worker is gone"); \
		if (s->fails[slot] && s->failure == SHIM_INSTEAD) \
			return err_set(err, s->code, "shim: %s fails", names[slot]); \
		int rc = (call); \
		if (s->fails[slot] && rc == 0) \
			return err_set(err, s->code, "shim: %s fails afterwards", names[slot]); \
		return rc; \
	} while (0)

static int prepare(struct boundary *b, const struct boundary_spec *spec, struct evidence_list *evidence, struct err *err)
{
	PASS(SHIM_PREPARE, s->inner->ops->prepare(s->inner, spec, evidence, err));
}

static int create_suspended(struct boundary *b, struct evidence_list *evidence, struct err *err)
{
	PASS(SHIM_CREATE_SUSPENDED, s->inner->ops->create_suspended(s->inner, evidence, err));
}

static int enroll(struct boundary *b, struct evidence_list *evidence, struct err *err)
{
	PASS(SHIM_ENROLL, s->inner->ops->enroll(s->inner, evidence, err));
}

static int launch(struct boundary *b, struct err *err)
{
	PASS(SHIM_LAUNCH, s->inner->ops->launch(s->inner, err));
}

static int observe_and_note(struct shim *s, int64_t deadline_ns, struct boundary_event *ret, struct err *err)
{
	int rc = s->inner->ops->observe(s->inner, deadline_ns, ret, err);
	if (rc == 0 && ret->kind == BOUNDARY_MAIN_EXITED) {
		s->exited = true;
		s->exit = *ret;
	}
	return rc;
}

static int observe(struct boundary *b, int64_t deadline_ns, struct boundary_event *ret, struct err *err)
{
	PASS(SHIM_OBSERVE, observe_and_note(s, deadline_ns, ret, err));
}

static int terminate(struct boundary *b, struct err *err)
{
	PASS(SHIM_TERMINATE, s->inner->ops->terminate(s->inner, err));
}

static int kill_unit(struct boundary *b, struct err *err)
{
	PASS(SHIM_KILL, s->inner->ops->kill(s->inner, err));
}

static int drain(struct boundary *b, struct boundary_drain *ret, struct err *err)
{
	PASS(SHIM_DRAIN, s->inner->ops->drain(s->inner, ret, err));
}

static int cleanup(struct boundary *b, struct boundary_usage *ret, struct err *err)
{
	PASS(SHIM_CLEANUP, s->inner->ops->cleanup(s->inner, ret, err));
}

static int verify_empty(struct boundary *b, struct err *err)
{
	PASS(SHIM_VERIFY_EMPTY, s->inner->ops->verify_empty(s->inner, err));
}

static int collect(struct boundary *b, struct artifact_list *ret, struct err *err)
{
	PASS(SHIM_COLLECT, s->inner->ops->collect(s->inner, ret, err));
}

static void interrupt(struct boundary *b)
{
	shim(b)->inner->ops->interrupt(shim(b)->inner);
}

static void free_inner(struct boundary *b)
{
	shim(b)->inner->ops->free(shim(b)->inner);
	shim(b)->inner = NULL;
}

static const struct boundary_ops ops = {
	.prepare = prepare,
	.create_suspended = create_suspended,
	.enroll = enroll,
	.launch = launch,
	.observe = observe,
	.terminate = terminate,
	.kill = kill_unit,
	.drain = drain,
	.cleanup = cleanup,
	.verify_empty = verify_empty,
	.collect = collect,
	.interrupt = interrupt,
	.free = free_inner,
};

void shim_init(struct shim *s, struct boundary *inner)
{
	*s = (struct shim){.base.ops = &ops, .inner = inner, .code = ERR_UNVERIFIED};
}
