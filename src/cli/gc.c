/* gc.c - `caisson gc`: removes what no receipt, stream or unfinished run names. */
#include <inttypes.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/wiring.h"
#include "keeper/storage.h"
#include "print/output.h"
#include "print/page.h"
#include "print/units.h"

static int print_result(const struct sweep_result *result, const struct options *options, struct err *err)
{
	PAGE_AUTO struct page page = PAGE_INIT;
	char removed[UNITS_TEXT_SIZE], left[UNITS_TEXT_SIZE];

	page_add(&page, "%s %" PRId64 " objects of %s; ", options->dry_run ? "would remove" : "removed", result->removed,
	         units_format_size(result->removed_bytes, removed));
	page_add(&page, "%" PRId64 " objects of %s stay\n", result->objects - result->removed,
	         units_format_size(result->bytes - result->removed_bytes, left));
	return page_print(&page, STDOUT_FILENO, err);
}

static int print_result_json(const struct sweep_result *result, const struct options *options, struct err *err)
{
	JSON_AUTO json_t *document =
		json_pack("{s:I,s:I,s:I,s:I,s:b}", "objects", (json_int_t)result->objects, "bytes", (json_int_t)result->bytes,
	                  "removed", (json_int_t)result->removed, "removed_bytes", (json_int_t)result->removed_bytes, "dry_run",
	                  options->dry_run);

	return document ? print_json(STDOUT_FILENO, document, err) : err_set(err, ERR_NO_MEMORY, "out of memory");
}

static int run(struct options *options, struct err *err)
{
	WIRING_AUTO struct wiring wiring = WIRING_INIT;
	const struct sweep_options sweep = {
		.max_bytes = options->has_max_bytes ? options->max_bytes : -1,
		.older_ms = options->older_ms,
		.dry_run = options->dry_run,
	};
	struct sweep_result swept = {0};
	int result = require_operands(options, 0, "no operand", err);

	if (result == 0)
		result = wiring_open(options->ledger, options->dry_run ? WIRING_READ : WIRING_WRITE, &wiring, err);
	if (result == 0 && wiring.store)
		result = storage_sweep(wiring.ledger, wiring.store, &sweep, &swept, err);
	if (result)
		return result;
	return options->json ? print_result_json(&swept, options, err) : print_result(&swept, options, err);
}

const struct command command_gc = {
	.name = "gc",
	.bit = FOR_GC,
	.usage = "[options]",
	.summary = "Removes from the store what is no artifact or stream of any run, and no input of one that is not sealed.",
	.examples = "  caisson gc --dry-run\n"
		    "  caisson gc --older 168h --max-bytes 10G\n",
	.run = run,
};
