/* trial.h - a whole no-op run through a boundary, without a ledger: what `doctor` ends with. */
#pragma once

#include "base/error.h"
#include "boundary/boundary.h"

/* prepare → create suspended → enroll → launch /bin/true → clean up → verify empty. *ret says how it went: PROBE_MISSING with the step's own
 * words when one failed. The boundary carries the identity of no ledger; it is gone when this returns. An error only for what has nothing
 * to do with the boundary. */
int trial_run(const struct boundary_provider *provider, struct probe_line *ret, struct err *err);
