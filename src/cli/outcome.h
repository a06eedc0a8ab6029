/* outcome.h - what a run comes to for its caller: a line, a receipt, an exit status. */
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "keeper/keeper.h"

/* With --json the receipt, or the provisional result, on standard output; else, on standard error, a line after anything but
 * success (never with --quiet, always with --summary, then with the boundary's state, and the usage on a terminal). */
int outcome_show(const struct keeper_result *result, const struct options *options, struct err *err);

/* first_signal: the first of INT, TERM, HUP that was heard, or 0. A result that is still provisional is nobody's success: 125. */
int outcome_status(const struct keeper_result *result, int first_signal);
