/* recover.c - `caisson recover`: what dead keepers left; or, with a slot, what a living keeper has in quarantine. */
#include "cli/cli.h"
#include "cli/handover.h"
#include "cli/recovering.h"
#include "print/units.h"

static int recover_slot(const struct options *options, struct err *err)
{
	int64_t slot = 0;
	int result = require_operands(options, 1, "at most one slot", err);

	if (result == 0 && units_parse_count(options->operands[0], &slot, err) < 0)
		result = err_set(err, ERR_INVALID, "\"%s\" is no slot, such as 0 (caisson workers)", options->operands[0]);
	if (result == 0 && options->dry_run)
		result = err_set(err, ERR_INVALID, "--dry-run cannot go with a slot");
	if (result)
		return result;

	JSON_AUTO json_t *what = json_pack("{s:I}", "slot", (json_int_t)slot);

	return what ? handover("recover", options, what, err) : err_set(err, ERR_NO_MEMORY, "out of memory");
}

static int run(struct options *options, struct err *err)
{
	return options->operand_count ? recover_slot(options, err) : recovering_run(options, RECOVERING_ALL, err);
}

const struct command command_recover = {
	.name = "recover",
	.bit = FOR_RECOVER,
	.usage = "[options] [SLOT]",
	.summary = "Kills, cleans up and seals what dead keepers left; living ones are left alone.\n"
		   "With SLOT: has the living keeper recover this quarantined slot of its own.",
	.examples = "  caisson recover\n"
		    "  caisson recover --dry-run\n"
		    "  caisson recover 0\n",
	.run = run,
};
