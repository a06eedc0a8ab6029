/* cancel.c - `caisson cancel`: cancels a run of a keeper. */
#include "cli/cli.h"
#include "cli/handover.h"

static int run(struct options *options, struct err *err)
{
	return handover_run("cancel", options, err);
}

const struct command command_cancel = {
	.name = "cancel",
	.bit = FOR_CANCEL,
	.usage = "[options] RUN",
	.summary = "Cancels a run that was submitted.\n"
		   "Exit status 1: it was sealed before, and nothing changes.",
	.examples = "  caisson cancel run-abcdefghijklmnop\n",
	.run = run,
};
