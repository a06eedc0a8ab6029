/* batch.c - `caisson batch FILE`: gives many runs to a keeper, which is one of its own where none answers. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/handover.h"
#include "cli/places.h"

enum { IN_FLIGHT_DEFAULT = 32, IN_FLIGHT_MAX = 1024 };

/* What caisson-client needs to start a keeper: not where a socket was named, for then it is that keeper or none. */
static int add_keeper(const struct options *options, json_t *what, struct err *err)
{
	BUF_AUTO struct buf ledger = BUF_INIT(PATH_MAX);
	BUF_AUTO struct buf program = BUF_INIT(PATH_MAX);
	int result = options->socket ? 0 : places_ledger(options->ledger, &ledger, err);

	if (options->socket)
		return 0;
	if (result == 0)
		result = places_self(&program, err);
	if (result)
		return result;
	if (json_object_set_new(what, "ledger", json_string(ledger.data)) < 0 ||
	    json_object_set_new(what, "program", json_string(program.data)) < 0)
		return err_set(err, ERR_INVALID, "the ledger's path is not valid UTF-8");
	return 0;
}

static int run(struct options *options, struct err *err)
{
	int64_t in_flight = options->in_flight ? options->in_flight : IN_FLIGHT_DEFAULT;
	int result = require_operands(options, 1, "one file, or - for standard input", err);

	if (result)
		return result;
	if (in_flight > IN_FLIGHT_MAX)
		return err_set(err, ERR_INVALID, "--in-flight: at most %d", IN_FLIGHT_MAX);

	JSON_AUTO json_t *what = json_pack("{s:s,s:b,s:I,s:s*}", "file", options->operands[0], "unordered", options->unordered,
	                                   "in_flight", (json_int_t)in_flight, "key", options->key);

	if (!what)
		return err_set(err, ERR_INVALID, "the file's name or --key is not valid UTF-8");
	result = add_keeper(options, what, err);
	return result ? result : handover("batch", options, what, err);
}

const struct command command_batch = {
	.name = "batch",
	.bit = FOR_BATCH,
	.usage = "[options] FILE|-",
	.summary = "Gives a keeper many runs, a manifest a line, and prints a result a line, in the order of the lines.\n"
		   "A line is a manifest, or {\"key\": KEY, \"manifest\": MANIFEST}; a result has the line's number, its key, the "
                   "run,\n"
		   "and its receipt, or the error. Where no keeper answers, it is one itself while it lasts.\n"
		   "Exit status 1: a line has no receipt. The first INT, TERM or HUP cancels what is in flight.",
	.examples = "  caisson batch jobs.jsonl > results.jsonl\n"
		    "  generate | caisson batch --unordered --in-flight 100 -\n"
		    "  caisson batch --key nightly-7 jobs.jsonl   # again: the same runs\n",
	.run = run,
};
