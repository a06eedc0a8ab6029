/* object.c - reads objects, and the list of a run's artifacts. */
#include "cli/object.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

enum { PIECE_BYTES = 64 * 1024 };

int object_write(struct store *store, const struct digest *digest, struct output *output, struct err *err)
{
	FD_AUTO int fd = -1;
	char piece[PIECE_BYTES];
	int64_t size = 0;
	ssize_t got = 0;

	if (!store)
		return err_set(err, ERR_NOT_FOUND, "the ledger's store is not there");

	int result = store_check(store, digest, err);

	if (result == 0)
		result = store_get(store, digest, &fd, &size, err);
	if (result)
		return result;
	while (!output->dead && (got = fd_read_full(fd, piece, sizeof(piece))) > 0)
		output_bytes(output, piece, (size_t)got);
	return got < 0 ? err_sys(err, (int)-got, "read the object") : 0;
}

struct listing {
	struct artifact_list *list;
	struct err *err;
};

static int take(void *context, const struct ledger_artifact *found)
{
	struct listing *listing = context;
	struct artifact_list *list = listing->list;

	if (list->count == ARTIFACT_FILES_MAX || !artifact_path_valid(found->path))
		return err_set(listing->err, ERR_DAMAGED, "the list of artifacts is not one of ours (see caisson verify)");
	list->items[list->count] = (struct artifact){
		.path = strdup(found->path), .size_bytes = found->size_bytes, .sha256 = found->sha256, .mode = found->mode};
	return list->items[list->count++].path ? 0 : err_set(listing->err, ERR_NO_MEMORY, "out of memory");
}

static int require_seal(struct wiring *wiring, const char *run_id, struct err *err)
{
	char *receipt = NULL;
	int result = wiring->ledger->ops->receipt(wiring->ledger, run_id, &receipt, err);

	if (result == 0 && !receipt)
		result = err_set(err, ERR_STATE, "%s is not sealed yet", run_id);
	free(receipt);
	return result;
}

int object_list(struct wiring *wiring, const char *run_id, struct artifact_list *ret, struct err *err)
{
	struct listing listing = {.list = ret, .err = err};
	int result = require_seal(wiring, run_id, err);

	if (result)
		return result;
	ret->items = calloc(ARTIFACT_FILES_MAX, sizeof(*ret->items));
	if (!ret->items)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	return wiring->ledger->ops->artifacts(wiring->ledger, run_id, take, &listing, err);
}
