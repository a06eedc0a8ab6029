/* sweep.c - `caisson sweep`: removes boundaries of this ledger that no unfinished attempt names. */
#include "cli/cli.h"
#include "cli/recovering.h"

static int run(struct options *options, struct err *err)
{
	int result = require_operands(options, 0, "no operand", err);

	return result ? result : recovering_run(options, RECOVERING_SWEEP, err);
}

const struct command command_sweep = {
	.name = "sweep",
	.bit = FOR_SWEEP,
	.usage = "[options]",
	.summary = "Removes cgroups, mounts and directories that carry this ledger's identity and belong to no unfinished run.\n"
		   "What belongs to one is left to recover; what is another's is never touched.",
	.examples = "  caisson sweep --dry-run\n",
	.run = run,
};
