/* events.c - `caisson events`: shows the records of a run of a keeper. */
#include "cli/cli.h"
#include "cli/handover.h"

static int run(struct options *options, struct err *err)
{
	return handover_run("events", options, err);
}

const struct command command_events = {
	.name = "events",
	.bit = FOR_EVENTS,
	.usage = "[options] RUN",
	.summary = "Shows what happened in a run, record by record; with -f until it is sealed.",
	.examples = "  caisson events -f latest\n"
		    "  caisson events --json run-abcdefghijklmnop\n",
	.run = run,
};
