/* cat.c - `caisson cat RUN PATH`: the bytes of one artifact. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/object.h"

static const struct artifact *find(const struct artifact_list *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].path, path) == 0)
			return &list->items[i];
	return NULL;
}

/* The path as it is; or, when there is none of that name, as receipts and lists spell it. */
static const struct artifact *find_any(const struct artifact_list *list, const char *path)
{
	const struct artifact *found = find(list, path);
	char *meant = NULL;

	if (found || artifact_parse_path(path, &meant, NULL))
		return found;
	found = find(list, meant);
	free(meant);
	return found;
}

static int write_artifact(struct wiring *wiring, const char *run_id, const char *path, struct err *err)
{
	ARTIFACT_LIST_AUTO struct artifact_list list = {0};
	struct output output;
	int result = object_list(wiring, run_id, &list, err);

	if (result)
		return result;

	const struct artifact *artifact = find_any(&list, path);

	if (!artifact)
		return err_set(err, ERR_NOT_FOUND, "%s has no artifact of this name (see caisson artifacts)", run_id);
	output_init(&output, STDOUT_FILENO);
	result = object_write(wiring->store, &artifact->sha256, &output, err);
	output_finish(&output);
	return result;
}

static int run(struct options *options, struct err *err)
{
	WIRING_AUTO struct wiring wiring = WIRING_INIT;
	char run_id[ID_SIZE];
	int result = require_operands(options, 2, "one run and one path", err);

	if (result == 0)
		result = wiring_open_run(options->ledger, options->operands[0], &wiring, run_id, err);
	return result ? result : write_artifact(&wiring, run_id, options->operands[1], err);
}

const struct command command_cat = {
	.name = "cat",
	.bit = FOR_CAT,
	.usage = "[options] RUN PATH",
	.summary = "Writes one artifact of a run to standard output, byte for byte, checked against its digest first.",
	.examples = "  caisson cat latest result.json\n"
		    "  caisson cat run-abcdefghijklmnop dir/a.out > a.out\n",
	.run = run,
};
