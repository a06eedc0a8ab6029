/* stage.c - sets the stage of stage.h; any failure in here fails the test. */
#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

void stage_open(struct stage *stage, const char *limits)
{
	static const char *const argv[] = {"/story", NULL};
	*stage = (struct stage){.world = NULL};
	scene_open(&stage->scene);
	ledger_shim_init(&stage->ledger, stage->scene.ledger);
	stage->scene.ledger = &stage->ledger.base;
	assert_int_equal(recording_world_new(&stage->world, NULL), 0);
	stage->provider = recording_provider(stage->world);
	scene_plan(&stage->scene, "recording", argv, limits, &stage->run);
}

void stage_drive(struct stage *stage)
{
	scene_accept(&stage->run);
	recording_world_script(stage->world, &stage->script);
	assert_int_equal(stage->provider.ops->open(stage->provider.context, &stage->run.boundary, NULL), 0);
	scene_drive(&stage->run);
}

void stage_close(struct stage *stage)
{
	scene_run_done(&stage->run);
	scene_close(&stage->scene);
	assert_string_equal(recording_world_violation(stage->world), "");
	recording_world_free(stage->world);
}

void stage_assert_verdict(const struct stage *stage, enum verdict_kind kind, const char *reason)
{
	const struct verdict *verdict = &stage->run.result.verdict;
	if (stage->run.rc < 0)
		fail_msg("runner: %s", stage->run.err.text);
	if (verdict->kind != kind || strcmp(verdict->reason, reason) != 0)
		fail_msg("%s/%s (%s) instead of %s/%s", verdict_name(verdict->kind), verdict->reason, verdict->detail,
		         verdict_name(kind), reason);
}

bool stage_is_recorded(struct stage *stage, const char *kind)
{
	char kinds[SCENE_KINDS_MAX];
	return strstr(scene_kinds(&stage->scene, stage->run.attempt.attempt_id, kinds), kind) != NULL;
}

struct recording_unit_view stage_view(const struct stage *stage)
{
	struct recording_unit_view view;
	recording_world_view(stage->world, &stage->run.identity, &view);
	return view;
}
