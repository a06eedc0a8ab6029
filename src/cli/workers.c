/* workers.c - `caisson workers`: the workers of a keeper. */
#include "cli/cli.h"
#include "cli/handover.h"

static int run(struct options *options, struct err *err)
{
	int result = require_operands(options, 0, "no operand", err);

	return result ? result : handover("workers", options, NULL, err);
}

const struct command command_workers = {
	.name = "workers",
	.bit = FOR_WORKERS,
	.usage = "[options]",
	.summary = "Lists the workers of a keeper: slot, profile, state, what runs on it, why it is quarantined.",
	.examples = "  caisson workers\n",
	.run = run,
};
