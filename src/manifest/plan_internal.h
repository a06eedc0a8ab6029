/* plan_internal.h - what writes and reads a plan's JSON; private to this folder. */
#pragma once

#include "base/json.h"
#include "manifest/internal.h"
#include "manifest/plan.h"

/* The numbers of plan_limits, with the range that a plan may hold. `cpus` and the two words are apart. */
enum {
	PLAN_LIMIT_FIELDS = 19,
	PLAN_MAX_DRAIN_MS = 5000,
	PLAN_MIN_CLEANUP_MS = 1000,
	PLAN_MAX_CLEANUP_MS = 120000,
};
extern const struct number_field plan_limit_fields[PLAN_LIMIT_FIELDS];

/* The words of enum plan_endpoint; NULL-terminated. */
extern const char *const plan_input_kind_names[]; /* NULL-terminated; by enum plan_input_kind */
extern const char *const plan_endpoint_names[];

/* Builds the JSON, its canonical text and its digest from the rest of the plan. ERR_LIMIT, ERR_NO_MEMORY. */
int plan_render(struct plan *plan, struct err *err);
