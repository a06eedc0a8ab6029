/* outcome.h - what a run came to for whoever waits: lines and a status as of `caisson run`, out of what the keeper says of it. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"
#include "client/request.h"

/* state: the document of GET /v1/runs/{id}. */

/* Is there something final to say: a receipt, or that its boundary is quarantined (contract, R6)? */
bool outcome_known(const json_t *state);

/* Borrowed; NULL when there is none. */
const json_t *outcome_receipt(const json_t *state);
/* What a quarantined run would have been; empty when that is not known. The caller's (json_decref). */
json_t *outcome_provisional(const json_t *state);

/* With --json the receipt, or the provisional result, on standard output; else, on standard error, a line after anything but
 * success (never with --quiet, always with --summary). */
int outcome_show(const json_t *state, const struct request *request, struct err *err);

/* The exit status of `caisson run` for it. */
int outcome_status(const json_t *state);
