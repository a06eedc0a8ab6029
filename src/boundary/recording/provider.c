/* provider.c - opens recording boundaries, and recovers or lists what is left in the world by identity alone. */
#include "boundary/recording/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What `--profile recording` does when nobody scripted anything: main exits with 0 and writes nothing. */
static const struct recording_event default_events[] = {{.at_ms = 0, .happening = RECORDING_EXIT, .status = 0}};
static const struct recording_script default_script = {.events = default_events, .event_count = 1};

static int provider_open(void *provider, struct boundary **ret, struct err *err)
{
	struct recording_world *world = provider;
	struct recording_boundary *b = calloc(1, sizeof(*b));
	if (!b)
		return err_set(err, ERR_NO_MEMORY, "recording boundary");
	b->base.ops = &recording_ops;
	b->world = world;
	b->script = world->script ? world->script : &default_script;
	b->killed_at_ns = -1;
	*ret = &b->base;
	return 0;
}

void recording_abandon(struct boundary *boundary)
{
	free(boundary);
}

static int provider_recover(void *provider, const struct boundary_identity *identity, int64_t cleanup_ms, int *survivors,
                            struct err *err)
{
	struct recording_world *world = provider;
	(void)cleanup_ms; /* virtual time: nothing takes long */
	if (recording_unit_is_foreign(world, identity)) {
		recording_trace(world, "recover", err_code_name(ERR_FOREIGN));
		return err_set(err, ERR_FOREIGN, "boundary %s belongs to another ledger", identity->boundary_id);
	}
	int killed = 0;
	struct recording_unit *unit = recording_unit_find(world, identity);
	if (unit && unit->exists) {
		killed = unit->main_alive;
		killed += recording_unit_kill(unit);
		if (unit->recover_failures_left > 0) {
			unit->recover_failures_left--;
			unit->quarantined = true;
			recording_trace(world, "recover", err_code_name(ERR_UNVERIFIED));
			return err_set(err, ERR_UNVERIFIED, "scripted: a member is left");
		}
		unit->exists = false;
	}
	if (unit)
		unit->quarantined = false;
	*survivors = killed;
	recording_trace(world, "recover", "ok");
	return 0;
}

static int provider_enumerate(void *provider, const char *ledger_id, boundary_found_fn found, void *context, struct err *err)
{
	const struct recording_world *world = provider;
	(void)err;
	for (size_t i = 0; i < world->unit_count; i++) {
		const struct recording_unit *unit = world->units[i];
		if (unit->exists && !strcmp(unit->identity.ledger_id, ledger_id)) {
			int rc = found(context, &unit->identity);
			if (rc != 0)
				return rc;
		}
	}
	return 0;
}

static int provider_probe(void *provider, boundary_probe_fn line, void *context, struct err *err)
{
	(void)provider;
	(void)err;
	struct probe_line model = {.name = "model", .result = PROBE_OK, .required = true};
	snprintf(model.reason, sizeof(model.reason), "a model in memory: it runs no program and isolates nothing");
	return line(context, &model);
}

static const struct boundary_provider_ops provider_ops = {
	.kind = "recording",
	.open = provider_open,
	.recover = provider_recover,
	.enumerate = provider_enumerate,
	.probe = provider_probe,
};

struct boundary_provider recording_provider(struct recording_world *world)
{
	return (struct boundary_provider){.ops = &provider_ops, .context = world};
}
