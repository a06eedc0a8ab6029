/* recovering.h - what recover and sweep share. */
#pragma once

#include "base/error.h"
#include "cli/options.h"

enum recovering { RECOVERING_ALL, RECOVERING_SWEEP };

/* Recovers and sweeps, or only sweeps, and says what came of it. An exit status, or a negative err_code. */
int recovering_run(const struct options *options, enum recovering what, struct err *err);
