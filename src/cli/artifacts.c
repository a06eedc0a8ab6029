/* artifacts.c - `caisson artifacts RUN`: the files that a run has left. */
#include <inttypes.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/object.h"
#include "print/page.h"

/* In the spelling of receipts, which has no line breaks and no controls: a line is an artifact, on a terminal or not. */
static int print_text_list(const struct artifact_list *list, struct err *err)
{
	PAGE_AUTO struct page page = PAGE_INIT;
	JSON_AUTO json_t *items = artifact_list_items(list);

	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *item = json_array_get(items, i);

		page_add(&page, "%s %12" PRId64 "  %s  %s\n", json_string_value(json_object_get(item, "mode")),
		         list->items[i].size_bytes, json_string_value(json_object_get(item, "sha256")),
		         json_string_value(json_object_get(item, "path")));
	}
	return items ? page_print(&page, STDOUT_FILENO, err) : err_set(err, ERR_NO_MEMORY, "out of memory");
}

static int print_json_list(const struct artifact_list *list, struct err *err)
{
	JSON_AUTO json_t *items = artifact_list_items(list);

	return items ? print_json(STDOUT_FILENO, items, err) : err_set(err, ERR_NO_MEMORY, "out of memory");
}

static int run(struct options *options, struct err *err)
{
	WIRING_AUTO struct wiring wiring = WIRING_INIT;
	ARTIFACT_LIST_AUTO struct artifact_list list = {0};
	char run_id[ID_SIZE];
	int result = require_operands(options, 1, "one run", err);

	if (result == 0)
		result = wiring_open_run(options->ledger, options->operands[0], &wiring, run_id, err);
	if (result == 0)
		result = object_list(&wiring, run_id, &list, err);
	if (result)
		return result;
	return options->json ? print_json_list(&list, err) : print_text_list(&list, err);
}

const struct command command_artifacts = {
	.name = "artifacts",
	.bit = FOR_ARTIFACTS,
	.usage = "[options] RUN",
	.summary = "Lists the files that a run has left in /out: mode, size, digest, path.",
	.examples = "  caisson artifacts latest\n"
		    "  caisson artifacts --json run-abcdefghijklmnop\n",
	.run = run,
};
