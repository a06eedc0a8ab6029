/* ps.c - `caisson ps`: the runs of a keeper that are not over. */
#include "cli/cli.h"
#include "cli/handover.h"

static int run(struct options *options, struct err *err)
{
	int result = require_operands(options, 0, "no operand", err);

	return result ? result : handover("ps", options, NULL, err);
}

const struct command command_ps = {
	.name = "ps",
	.bit = FOR_PS,
	.usage = "[options]",
	.summary = "Lists the runs of a keeper that are not sealed, the newest first.",
	.examples = "  caisson ps\n"
		    "  caisson ps --json\n",
	.run = run,
};
