/* scene.h - what a test of runner or boundary stands in: a real ledger in a directory of its own, a key, a store, runs on it. */
#pragma once

#include <stdbool.h>

#include "artifact/store.h"
#include "evidence/key.h"
#include "runner/runner.h"

enum { SCENE_PATH_MAX = 64, SCENE_KINDS_MAX = 1024 };

struct scene {
	char path[SCENE_PATH_MAX];
	int dir;
	struct ledger *ledger;
	struct key *key;
	struct store *store;
	struct ledger_owner owner;
};

void scene_open(struct scene *scene);
/* Closes and removes all. */
void scene_close(struct scene *scene);
/* The keeper dies, as far as the ledger can see, and another one opens it. */
void scene_new_owner(struct scene *scene);

/* One run: what a keeper has in hand when it calls the runner. */
struct scene_run {
	struct scene *scene;
	struct manifest *manifest;
	struct plan *plan;
	struct ledger_attempt attempt;
	struct boundary_identity identity;
	struct capture *standard_output, *standard_error;
	struct boundary *boundary;        /* freed by scene_run_done */
	int64_t ttl_ms;                   /* of the lease; set before scene_accept */
	bool detached;                    /* not a `caisson run`; set before scene_accept */

	int stop;                         /* what stop_requested answers */
	int stop_when_launched;           /* becomes that at the launch, with an interrupt */
	int stop_when_ready;              /* and once something came on stdout: asked at each renewal of the lease */
	int launched_calls, provisional_calls;
	struct verdict provisional;

	struct runner_result result;
	int rc;
	struct err err;
};

/* Compiles a plan for profile and argv; `limits` is a JSON object's text, "{}" for the defaults. Nothing is accepted yet. */
void scene_plan(struct scene *scene, const char *profile, const char *const *argv, const char *limits, struct scene_run *ret);
/* Accepts the run in the ledger and makes its captures. */
void scene_accept(struct scene_run *run);
/* Drives it on run->boundary. */
void scene_drive(struct scene_run *run);
void scene_run_done(struct scene_run *run);

/* The attempt's row as a recovery would find it; false when it is sealed. */
bool scene_find(struct scene *scene, const char *attempt_id, struct ledger_attempt *ret);
/* Recovers it as the scene's present owner. */
int scene_recover(struct scene *scene, const struct boundary_provider *provider, const char *attempt_id, struct runner_result *ret,
                  struct err *err);

/* The kinds of the attempt's records, separated by spaces. */
const char *scene_kinds(struct scene *scene, const char *attempt_id, char ret[static SCENE_KINDS_MAX]);

/* A member of the receipt by its path ("boundary.verified_empty"), as JSON text; the caller frees. */
char *scene_receipt_get(const struct runner_result *result, const char *path);
/* Do the kept bytes of this stream, read back from ledger or store, begin with `text` and are they `bytes` long? */
void scene_assert_stream(struct scene_run *run, const char *name, const char *text, int64_t bytes);
