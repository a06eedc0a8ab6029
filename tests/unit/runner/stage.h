/* stage.h - a run on the recording boundary, scripted, on a real ledger behind a shim. */
#pragma once

#include "boundary/recording/recording.h"
#include "ledger_shim.h"
#include "scene.h"

struct stage {
	struct scene scene;
	struct ledger_shim ledger;
	struct recording_world *world;
	struct boundary_provider provider;
	struct recording_script script;
	struct scene_run run;
};

/* Everything set up, the run compiled but not accepted: the test may still change plan, time to live and script. */
void stage_open(struct stage *stage, const char *limits);
/* Accepts, opens the boundary, drives. */
void stage_drive(struct stage *stage);
/* Also checks that the model saw no violation of the contract. */
void stage_close(struct stage *stage);

void stage_assert_verdict(const struct stage *stage, enum verdict_kind kind, const char *reason);
bool stage_is_recorded(struct stage *stage, const char *kind);
struct recording_unit_view stage_view(const struct stage *stage);
