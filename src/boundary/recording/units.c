/* units.c - the modelled host: its units by identity, its trace of calls, its first violation. */
#include "boundary/recording/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int recording_world_new(struct recording_world **ret, struct err *err)
{
	struct recording_world *world = calloc(1, sizeof(*world));
	if (!world)
		return err_set(err, ERR_NO_MEMORY, "recording world");
	world->trace = BUF_INIT(RECORDING_TRACE_MAX);
	*ret = world;
	return 0;
}

void recording_world_free(struct recording_world *world)
{
	if (!world)
		return;
	for (size_t i = 0; i < world->unit_count; i++)
		free(world->units[i]);
	buf_done(&world->trace);
	free(world);
}

void recording_world_script(struct recording_world *world, const struct recording_script *script)
{
	world->script = script;
}

const char *recording_world_trace(const struct recording_world *world)
{
	return world->trace.data ? world->trace.data : "";
}

void recording_world_trace_clear(struct recording_world *world)
{
	buf_done(&world->trace);
}

const char *recording_world_violation(const struct recording_world *world)
{
	return world->violation;
}

void recording_world_view(const struct recording_world *world, const struct boundary_identity *identity,
                          struct recording_unit_view *ret)
{
	const struct recording_unit *unit = recording_unit_find(world, identity);
	*ret = (struct recording_unit_view){.exists = false};
	if (!unit)
		return;
	*ret = (struct recording_unit_view){
		.exists = unit->exists,
		.quarantined = unit->quarantined,
		.main_alive = unit->main_alive,
		.descendants_alive = recording_unit_alive(unit),
		.launches = unit->launches,
	};
}

struct recording_unit *recording_unit_find(const struct recording_world *world, const struct boundary_identity *identity)
{
	for (size_t i = 0; i < world->unit_count; i++) {
		const struct boundary_identity *known = &world->units[i]->identity;
		if (!strcmp(known->boundary_id, identity->boundary_id) && !strcmp(known->ledger_id, identity->ledger_id))
			return world->units[i];
	}
	return NULL;
}

bool recording_unit_is_foreign(const struct recording_world *world, const struct boundary_identity *identity)
{
	for (size_t i = 0; i < world->unit_count; i++) {
		const struct boundary_identity *known = &world->units[i]->identity;
		if (world->units[i]->exists && !strcmp(known->boundary_id, identity->boundary_id))
			return strcmp(known->ledger_id, identity->ledger_id) != 0;
	}
	return false;
}

int recording_unit_make(struct recording_world *world, const struct boundary_identity *identity, struct recording_unit **ret,
                        struct err *err)
{
	if (world->unit_count == RECORDING_UNITS_MAX)
		return err_set(err, ERR_LIMIT, "the recording world holds at most %d units", RECORDING_UNITS_MAX);
	struct recording_unit *unit = calloc(1, sizeof(*unit));
	if (!unit)
		return err_set(err, ERR_NO_MEMORY, "recording unit");
	unit->identity = *identity;
	world->units[world->unit_count++] = unit;
	*ret = unit;
	return 0;
}

int recording_unit_alive(const struct recording_unit *unit)
{
	int alive = 0;
	for (int i = 0; i < unit->descendant_count; i++)
		alive += unit->descendants[i].alive;
	return alive;
}

int recording_unit_kill(struct recording_unit *unit)
{
	int alive = recording_unit_alive(unit);
	for (int i = 0; i < unit->descendant_count; i++)
		unit->descendants[i].alive = false;
	unit->main_alive = false;
	return alive;
}

void recording_trace(struct recording_world *world, const char *step, const char *outcome)
{
	/* A full trace only ends the trace: the model's behaviour does not depend on it. */
	(void)buf_printf(&world->trace, NULL, "%s %s\n", step, outcome);
}

void recording_violate(struct recording_world *world, const char *format, ...)
{
	if (world->violation[0])
		return;
	va_list args;
	va_start(args, format);
	vsnprintf(world->violation, sizeof(world->violation), format, args);
	va_end(args);
}
