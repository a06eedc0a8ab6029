/* submit.c - `caisson submit`: gives a run to a keeper, and does not wait for it. */
#include "cli/cli.h"
#include "cli/handover.h"
#include "cli/job.h"

static int run(struct options *options, struct err *err)
{
	MANIFEST_AUTO struct manifest *manifest = NULL;
	JSON_AUTO json_t *document = NULL;
	int result = job_manifest(options, "submit", &manifest, err);

	if (result == 0)
		result = json_parse(manifest->canonical, manifest->canonical_length, &document, err);
	if (result)
		return result;

	JSON_AUTO json_t *what = json_pack("{s:O,s:s*}", "manifest", document, "key", options->key);

	return what ? handover("submit", options, what, err) : err_set(err, ERR_INVALID, "--key: is not valid UTF-8");
}

const struct command command_submit = {
	.name = "submit",
	.bit = FOR_SUBMIT,
	.usage = "[options] -- PROGRAM [ARGUMENT...]\n       caisson submit [options] --manifest FILE",
	.summary = "Gives a run to a keeper (caisson serve), after its inputs, and prints the run's id.\n"
		   "Sent again under the same key, the same manifest is the same run.",
	.examples = "  caisson submit -- python3 -c 'print(6*7)'\n"
		    "  caisson submit --key build-42 --input main.cc:/box/main.cc -- c++ -o /out/main main.cc\n"
		    "  caisson submit --wait --manifest job.json\n",
	.run = run,
};
