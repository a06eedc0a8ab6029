/* wait.c - `caisson wait`: waits for a run of a keeper. */
#include "cli/cli.h"
#include "cli/handover.h"

static int run(struct options *options, struct err *err)
{
	return handover_run("wait", options, err);
}

const struct command command_wait = {
	.name = "wait",
	.bit = FOR_WAIT,
	.usage = "[options] RUN",
	.summary = "Waits for the end of a run that was submitted; exits as caisson run would have.\n"
		   "Interrupting it only ends the waiting.",
	.examples = "  caisson wait run-abcdefghijklmnop\n"
		    "  caisson wait --json latest\n",
	.run = run,
};
