/* outputs.c - what a script's main leaves in its output place, collected. */
#include "boundary/recording/model.h"

#include <stdlib.h>
#include <string.h>

#include "artifact/list.h"
#include "artifact/store.h"

static int keep(struct store *store, const struct recording_output *output, struct artifact_list *list, struct err *err)
{
	struct artifact artifact = {.size_bytes = (int64_t)strlen(output->text), .mode = output->executable ? 0755 : 0644};
	int rc = store_put_bytes(store, output->text, strlen(output->text), true, &artifact.sha256, err);
	if (rc < 0)
		return rc;
	artifact.path = strdup(output->path);
	if (!artifact.path)
		return err_set(err, ERR_NO_MEMORY, "output %s", output->path);
	list->items[list->count++] = artifact;
	return 0;
}

static void check_required(const struct plan *plan, const struct recording_script *script, struct artifact_list *list)
{
	for (size_t i = 0; i < plan->required_output_count; i++) {
		bool there = false;
		for (size_t j = 0; j < script->output_count; j++)
			there = there || !strcmp(script->outputs[j].path, plan->required_outputs[i]);
		if (!there)
			artifact_reject(list, plan->required_outputs[i], "is required, and no file is there");
	}
}

int recording_collect(const struct recording_boundary *b, struct artifact_list *ret, struct err *err)
{
	const struct recording_script *script = b->script;
	for (size_t i = 0; i < script->output_count; i++) {
		if (script->outputs[i].rejected)
			artifact_reject(ret, script->outputs[i].path, "%s", script->outputs[i].rejected);
	}
	check_required(b->plan, script, ret);
	if (ret->rejected > 0 || script->output_count == 0)
		return 0;
	ret->items = calloc(script->output_count, sizeof(*ret->items));
	int rc = ret->items ? 0 : err_set(err, ERR_NO_MEMORY, "outputs");
	for (size_t i = 0; rc == 0 && i < script->output_count; i++)
		rc = keep(b->store, &script->outputs[i], ret, err);
	if (rc < 0)
		artifact_list_done(ret);
	return rc;
}
