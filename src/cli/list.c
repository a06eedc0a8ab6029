/* list.c - `caisson list`: the newest runs. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/wiring.h"
#include "print/output.h"
#include "print/page.h"

enum { LIST_DEFAULT = 50, LIST_MAX = 100 * 1000 };

static int add_line(void *context, const struct ledger_list_row *row)
{
	struct page *page = context;
	char created[CLOCK_TEXT_SIZE];

	page_add(page, "%-20s  %s  %-14s  %-22s  %s\n", row->run_id, clock_format(row->created_at_ms, created),
	         *row->verdict ? row->verdict : row->state, row->reason, row->argv0 ? row->argv0 : "");
	return page->result;
}

static int add_object(void *context, const struct ledger_list_row *row)
{
	json_t *rows = context;
	char created[CLOCK_TEXT_SIZE];
	const char *command = row->argv0 ? row->argv0 : "";
	JSON_AUTO json_t *object =
		json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "run", row->run_id, "attempt", row->attempt_id, "state", row->state,
	                  "verdict", row->verdict, "reason", row->reason, "created_at", clock_format(row->created_at_ms, created));

	if (!object || json_set_bytes(object, "command", command, strlen(command), NULL) || json_array_append(rows, object))
		return ERR_NO_MEMORY;
	return 0;
}

static int list_json(struct ledger *ledger, int64_t limit, struct err *err)
{
	JSON_AUTO json_t *rows = json_array();
	const struct ledger_list_query query = {.limit = limit};
	int result = ledger->ops->list(ledger, &query, add_object, rows, err);

	return result ? result : print_json(STDOUT_FILENO, rows, err);
}

static int list_text(struct ledger *ledger, int64_t limit, struct err *err)
{
	PAGE_AUTO struct page page = PAGE_INIT;
	const struct ledger_list_query query = {.limit = limit};
	int result = ledger->ops->list(ledger, &query, add_line, &page, err);

	return result ? result : page_print(&page, STDOUT_FILENO, err);
}

/* Before the first run there is no ledger, and no run: both are worth saying, and neither is a failure. */
static int list_nothing(bool as_json, struct err *err)
{
	JSON_AUTO json_t *rows = json_array();

	complain("list: %s", err->text);
	return as_json ? print_json(STDOUT_FILENO, rows, err) : STATUS_OK;
}

static int run(struct options *options, struct err *err)
{
	WIRING_AUTO struct wiring wiring = WIRING_INIT;
	int64_t limit = options->limit ? options->limit : LIST_DEFAULT;
	int result = require_operands(options, 0, "no operand", err);

	if (result)
		return result;
	if (limit > LIST_MAX)
		return err_set(err, ERR_INVALID, "--limit: at most %d", LIST_MAX);
	result = wiring_open(options->ledger, WIRING_READ, &wiring, err);
	if (result == ERR_NOT_FOUND)
		return list_nothing(options->json, err);
	if (result)
		return result;
	return options->json ? list_json(wiring.ledger, limit, err) : list_text(wiring.ledger, limit, err);
}

const struct command command_list = {
	.name = "list",
	.bit = FOR_LIST,
	.usage = "[options]",
	.summary = "Lists the newest runs of the ledger.",
	.examples = "  caisson list\n"
		    "  caisson list --limit 1000 --json\n",
	.run = run,
};
