/* show.c - `caisson show RUN`: the receipt of one run, or its state while it has none. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/wiring.h"
#include "print/output.h"
#include "print/page.h"
#include "print/report.h"

static void free_text(char **text)
{
	free(*text);
}

static bool is_queued(const struct ledger_run_state *state)
{
	return state->attempts == 0 || strcmp(state->latest.state, "abandoned") == 0;
}

static int show_state_json(const char *run_id, const struct ledger_run_state *state, struct err *err)
{
	const struct ledger_attempt *latest = &state->latest;
	JSON_AUTO json_t *object =
		is_queued(state) ? json_pack("{s:s,s:s,s:i,s:b}", "run", run_id, "state", "queued", "attempts", state->attempts,
	                                     "cancelled", state->cancelled)
				 : json_pack("{s:s,s:s,s:s,s:b,s:b}", "run", run_id, "attempt", latest->attempt_id, "state",
	                                     latest->state, "launch_intent", latest->intent, "owner_alive", latest->owner_alive);

	return object ? print_json(STDOUT_FILENO, object, err) : err_set(err, ERR_NO_MEMORY, "out of memory");
}

static int show_unsealed(struct ledger *ledger, const char *run_id, bool as_json, struct err *err)
{
	PAGE_AUTO struct page page = PAGE_INIT;
	struct ledger_run_state state;
	int result = ledger->ops->run_state(ledger, run_id, &state, err);

	if (result)
		return result;
	if (strcmp(state.latest.state, "sealed") == 0)
		return err_set(err, ERR_NOT_FOUND, "%s has neither a receipt nor an open attempt (see caisson verify)", run_id);
	if (as_json)
		return show_state_json(run_id, &state, err);
	if (is_queued(&state))
		page_add(&page, "%s is queued%s\n", run_id, state.cancelled ? ", and cancelled" : "");
	else
		page_add(&page, "%s is %s, its keeper is %s%s\n", run_id, state.latest.state, state.latest.owner_alive ? "alive" : "gone",
		         state.latest.owner_alive ? "" : " (see caisson recover)");
	return page_print(&page, STDOUT_FILENO, err);
}

static int show_receipt(const char *text, bool as_json, struct err *err)
{
	PAGE_AUTO struct page page = PAGE_INIT;
	JSON_AUTO json_t *receipt = NULL;

	if (as_json) {
		page_add(&page, "%s\n", text);
		return page_print(&page, STDOUT_FILENO, err);
	}

	int result = json_parse(text, strlen(text), &receipt, err);

	if (result)
		return err_context(err, ERR_DAMAGED, "the receipt");
	report_receipt(&page, receipt);
	return page_print(&page, STDOUT_FILENO, err);
}

static int run(struct options *options, struct err *err)
{
	WIRING_AUTO struct wiring wiring = WIRING_INIT;
	__attribute__((cleanup(free_text))) char *receipt = NULL;
	char run_id[ID_SIZE];
	int result = require_operands(options, 1, "one run", err);

	if (result == 0)
		result = wiring_open_run(options->ledger, options->operands[0], &wiring, run_id, err);
	if (result == 0)
		result = wiring.ledger->ops->receipt(wiring.ledger, run_id, &receipt, err);
	if (result)
		return result;
	return receipt ? show_receipt(receipt, options->json, err) : show_unsealed(wiring.ledger, run_id, options->json, err);
}

const struct command command_show = {
	.name = "show",
	.bit = FOR_SHOW,
	.usage = "[options] RUN",
	.summary = "Shows the receipt of a run. RUN may be shortened, or be \"latest\".",
	.examples = "  caisson show latest\n"
		    "  caisson show --json run-abcdefghijklmnop\n",
	.run = run,
};
