/* version.c - `caisson version`. */
#include <unistd.h>

#include "cli/cli.h"
#include "evidence/receipt.h"
#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "print/output.h"

static int print_versions(struct err *err)
{
	JSON_AUTO json_t *version = json_pack("{s:s,s:s,s:s,s:s}", "version", CAISSON_VERSION, "manifest", MANIFEST_VERSION, "plan",
	                                      PLAN_VERSION, "receipt", RECEIPT_VERSION);

	if (!version)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	return print_json(STDOUT_FILENO, version, err);
}

static int run(struct options *options, struct err *err)
{
	BUF_AUTO struct buf line = BUF_INIT(OUTPUT_CHUNK);
	int result = require_operands(options, 0, "no operand", err);

	if (result || options->json)
		return result ? result : print_versions(err);
	result = buf_puts(&line, "caisson " CAISSON_VERSION "\n", err);
	if (result == 0)
		print_text(STDOUT_FILENO, &line);
	return result;
}

const struct command command_version = {
	.name = "version",
	.bit = FOR_VERSION,
	.usage = "[--json]",
	.summary = "Shows the version of the program; with --json also those of its documents.",
	.examples = "  caisson version\n",
	.run = run,
};
