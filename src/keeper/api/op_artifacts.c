/* op_artifacts.c - what a run has left: the list of its receipt, and one file, looked up by its exact name there. */
#include <stdlib.h>
#include <string.h>

#include "artifact/list.h"
#include "keeper/api/api_internal.h"

struct gathering {
	struct artifact_list *list;
	struct err *err;
};

static int take(void *context, const struct ledger_artifact *found)
{
	struct gathering *gathering = context;
	struct artifact_list *list = gathering->list;
	if (list->count == ARTIFACT_FILES_MAX || !artifact_path_valid(found->path))
		return err_set(gathering->err, ERR_DAMAGED, "the list of artifacts is not one of ours (see caisson verify)");
	list->items[list->count] = (struct artifact){
		.path = strdup(found->path), .size_bytes = found->size_bytes, .sha256 = found->sha256, .mode = found->mode};
	return list->items[list->count++].path ? 0 : err_set(gathering->err, ERR_NO_MEMORY, "out of memory");
}

static int gather(struct call *call, struct artifact_list *ret, struct err *err)
{
	struct ledger *ledger = call->api->options.ledger;
	struct gathering gathering = {.list = ret, .err = err};
	struct ledger_run_state state;
	int result = access_run(call, &state, err);
	if (result)
		return result;
	if (!state.sealed)
		return err_set(err, ERR_STATE, "the run is not sealed yet");
	ret->items = calloc(ARTIFACT_FILES_MAX, sizeof(*ret->items));
	if (!ret->items)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	return ledger->ops->artifacts(ledger, call->run_id, take, &gathering, err);
}

static int handle_artifacts(struct call *call, struct err *err)
{
	ARTIFACT_LIST_AUTO struct artifact_list list = {0};
	int result = gather(call, &list, err);
	return result ? result : reply_json(call, json_pack("{s:o}", "artifacts", artifact_list_items(&list)), err);
}

static const char *const run_keys[] = {"run", NULL};

const struct operation operation_artifacts = {.name = "artifacts", .keys = run_keys, .handle = handle_artifacts};

static const struct artifact *find(const struct artifact_list *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].path, path) == 0)
			return &list->items[i];
	return NULL;
}

/* The name as it is; or, when there is none like that, as receipts and lists spell it. */
static const struct artifact *find_named(const struct call *call, const struct artifact_list *list)
{
	char name[WIRE_PATH_MAX + 1], *meant = NULL;
	if (call->document_length == 0 || call->document_length > WIRE_PATH_MAX || strlen(call->document) != call->document_length)
		return NULL;
	memcpy(name, call->document, call->document_length + 1);
	const struct artifact *found = find(list, name);
	if (!found && artifact_parse_path(name, &meant, NULL) == 0)
		found = find(list, meant);
	free(meant);
	return found;
}

static int open_artifact(struct call *call, const struct artifact *artifact, struct err *err)
{
	struct store *store = NULL;
	char digest[DIGEST_TEXT_SIZE];
	int result = store_open(store_dir_fd(call->api->options.store), &store, err);
	if (result == 0)
		result = store_get_checked(store, &artifact->sha256, &call->reply.fd, &call->reply.bytes, err);
	store_free(store);
	if (result)
		return err_context(err, ERR_DAMAGED, "an artifact of %s", call->run_id);
	call->reply.ok = json_pack("{s:s}", "digest", digest_text(&artifact->sha256, digest));
	return 0;
}

static int handle_artifact(struct call *call, struct err *err)
{
	ARTIFACT_LIST_AUTO struct artifact_list list = {0};
	int result = gather(call, &list, err);
	if (result)
		return result;
	const struct artifact *artifact = find_named(call, &list);
	return artifact ? open_artifact(call, artifact, err) : err_set(err, ERR_NOT_FOUND, "the run has no artifact of this name");
}

const struct operation operation_artifact = {.name = "artifact", .keys = run_keys, .handle = handle_artifact};
