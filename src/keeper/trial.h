/* trial.h - a whole no-op run through a boundary, without a ledger: what `doctor` ends with. */
#pragma once

#include "base/error.h"
#include "boundary/boundary.h"

/* prepare → create suspended → enroll → launch /bin/true → clean up → verify empty. *ret says how it went: PROBE_MISSING with the step's own
 * words when one failed. The boundary is gone when this returns. An error only for what has nothing to do with the boundary.
 *
 * boundary: opened, of this profile; it stays the caller's. store: of a remote boundary; else NULL. */
int trial_run(struct boundary *boundary, const char *profile, const struct boundary_identity *identity, struct store *store,
              struct probe_line *ret, struct err *err);
