/* logs.c - `caisson logs RUN`: what a run wrote, byte for byte, checked against its digest first. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/handover.h"
#include "cli/object.h"
#include "cli/wiring.h"
#include "print/output.h"

static void free_bytes(void **bytes)
{
	free(*bytes);
}

static int copy_stream(struct wiring *wiring, const char *run_id, const char *name, int fd, struct err *err)
{
	__attribute__((cleanup(free_bytes))) void *data = NULL;
	struct ledger_stream stream;
	struct output output;
	struct digest digest;
	bool in_store = false;
	int result = wiring->ledger->ops->stream(wiring->ledger, run_id, name, &stream, &data, &in_store, err);

	if (result)
		return result;
	output_init(&output, fd);
	if (in_store) {
		result = object_write(wiring->store, &stream.sha256, &output, err);
		output_finish(&output);
		return result ? err_context(err, result, "%s", name) : 0;
	}
	digest_of(data, (size_t)stream.kept_bytes, &digest);
	if (!digest_equal(&digest, &stream.sha256))
		return err_set(err, ERR_DAMAGED, "%s does not match its digest (see caisson verify)", name);
	output_bytes(&output, data, (size_t)stream.kept_bytes);
	output_finish(&output);
	return 0;
}

static int run(struct options *options, struct err *err)
{
	WIRING_AUTO struct wiring wiring = WIRING_INIT;
	char run_id[ID_SIZE];
	int result = require_operands(options, 1, "one run", err);

	if (result == 0 && options->follow)
		return handover_run("logs", options, err);
	if (result == 0)
		result = wiring_open_run(options->ledger, options->operands[0], &wiring, run_id, err);
	if (result)
		return result;
	if (options->only_stdout && !options->only_stderr)
		return copy_stream(&wiring, run_id, "stdout", STDOUT_FILENO, err);
	if (options->only_stderr && !options->only_stdout)
		return copy_stream(&wiring, run_id, "stderr", STDOUT_FILENO, err);
	result = copy_stream(&wiring, run_id, "stdout", STDOUT_FILENO, err);
	return result ? result : copy_stream(&wiring, run_id, "stderr", STDERR_FILENO, err);
}

const struct command command_logs = {
	.name = "logs",
	.bit = FOR_LOGS,
	.usage = "[options] RUN",
	.summary = "Writes what a run wrote: each stream to its own, or one of them to standard output.\n"
		   "With -f that of a run of a keeper, until its end.",
	.examples = "  caisson logs latest\n"
		    "  caisson logs -f latest\n"
		    "  caisson logs --stderr run-abcdefghijklmnop > errors.txt\n",
	.run = run,
};
