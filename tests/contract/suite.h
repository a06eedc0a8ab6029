/* suite.h - what the tests of the contract suite share: one run on a ledger, behind a shim, and what must hold of it. */
#pragma once

#include "fixture.h"
#include "scene.h"
#include "shim.h"

/* One test's stage. */
struct stage {
	struct scene scene;
	struct scene_run run;
	struct shim shim;
};

/* A new boundary of the fixture's. */
struct boundary *open_boundary(void);
/* A run of this story, accepted, with a boundary behind the shim, not yet driven. */
void begin_with(struct scene *scene, struct scene_run *run, struct shim *shim, enum story story, const char *limits);
/* The same on a stage of its own. */
void begin(struct stage *stage, enum story story, const char *limits);
void drive(struct stage *stage);
/* Takes the stage down; fails when the boundary noticed that the contract was not kept. */
void end(struct stage *stage);

void assert_verdict(const struct scene_run *run, enum verdict_kind kind, const char *reason);
/* json: as Jansson writes it, keys sorted. */
void assert_receipt(const struct runner_result *result, const char *path, const char *json);
void assert_kinds(struct stage *stage, const char *expected);
bool is_recorded(struct stage *stage, const char *kind);
/* Sealed, verified empty, nothing left on the host. */
void assert_sealed_and_gone(struct stage *stage);

/* The two halves of the suite; the number of tests that failed. */
int run_life_tests(void);
int run_recovery_tests(void);
