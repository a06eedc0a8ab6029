/* op_objects.c - takes an input's bytes into the store: first into a file without a name, which the front writes, then under their
 * digest; or makes a directory of them, whose listing was sent in the same way.
 *
 * What is stored is nobody's until a run names it: a sweep in between may remove it, and then it has to be sent again. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "artifact/tree.h"
#include "base/fd.h"
#include "keeper/api/api_internal.h"

/* Counts the upload, unless there are too many. Each ends with its connection's spool. */
static bool take_turn(struct api *api)
{
	pthread_mutex_lock(&api->lock);
	bool free_turn = api->upload_count < API_UPLOADS_MAX;
	api->upload_count += free_turn;
	pthread_mutex_unlock(&api->lock);
	return free_turn;
}

static void end_turn(struct call *call)
{
	if (*call->spool < 0)
		return;
	fd_close(call->spool);
	pthread_mutex_lock(&call->api->lock);
	call->api->upload_count--;
	pthread_mutex_unlock(&call->api->lock);
}

static int make_spool(struct call *call, int *ret, struct err *err)
{
	struct store *store = NULL;
	int result = store_open(store_dir_fd(call->api->options.store), &store, err);
	if (result == 0)
		result = store_spool(store, ret, err);
	store_free(store);
	return result;
}

static int handle_begin(struct call *call, struct err *err)
{
	FD_AUTO int spool = -1;
	end_turn(call); /* of one that was broken off */
	int result = make_spool(call, &spool, err);
	if (result)
		return result;
	call->reply.fd = fcntl(spool, F_DUPFD_CLOEXEC, 0);
	if (call->reply.fd < 0)
		return err_sys(err, errno, "share a file");
	if (!take_turn(call->api))
		return err_set(err, ERR_BUSY, "%d objects are being sent already", API_UPLOADS_MAX);
	*call->spool = fd_take(&spool);
	return 0;
}

const struct operation operation_object_begin = {.name = "object_begin", .handle = handle_begin};

/* The store, for as long as something is put into it, and what was sent, from its beginning. */
static int open_held(struct call *call, struct store **ret, struct err *err)
{
	if (*call->spool < 0)
		return err_set(err, ERR_STATE, "nothing was sent");
	if (lseek(*call->spool, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "read what was sent");
	int result = store_open(store_dir_fd(call->api->options.store), ret, err);
	return result == 0 ? store_hold(*ret, err) : result; /* a sweep of the moment waits, or we do */
}

static int seal(struct call *call, struct digest *ret, int64_t *ret_size, struct err *err)
{
	struct store *store = NULL;
	int result = open_held(call, &store, err);
	if (result == 0)
		result = store_put_fd(store, *call->spool, WIRE_OBJECT_MAX, true, ret, ret_size, err);
	store_free(store);
	return result;
}

static int reply_stored(struct call *call, const struct digest *digest, int64_t size, struct err *err)
{
	char text[DIGEST_TEXT_SIZE];
	return reply_json(call, json_pack("{s:s, s:I}", "digest", digest_text(digest, text), "size_bytes", (json_int_t)size), err);
}

static int handle_seal(struct call *call, struct err *err)
{
	struct digest digest;
	int64_t size = 0;
	int result = seal(call, &digest, &size, err);
	end_turn(call);
	return result ? result : reply_stored(call, &digest, size, err);
}

const struct operation operation_object_seal = {.name = "object_seal", .handle = handle_seal};

/* Non-zero: that is enough of them for one answer. */
static int note_missing(void *context, const struct digest *digest)
{
	char text[DIGEST_TEXT_SIZE];
	json_t *missing = context;
	return json_array_append_new(missing, json_string(digest_text(digest, text))) < 0 || json_array_size(missing) == WIRE_MISSING_MAX;
}

static int make_tree(struct call *call, json_t *missing, struct digest *ret, int64_t *ret_size, struct err *err)
{
	BUF_AUTO struct buf listing = BUF_INIT(WIRE_LISTING_MAX);
	struct store *store = NULL;
	int result = open_held(call, &store, err);
	if (result == 0)
		result = fd_read_rest(*call->spool, &listing, err);
	if (result == 0)
		result = store_put_listing(store, listing.data ? listing.data : "", listing.len, WIRE_OBJECT_MAX, note_missing, missing, ret,
		                           ret_size, err);
	store_free(store);
	return result;
}

static int handle_tree(struct call *call, struct err *err)
{
	JSON_AUTO json_t *missing = json_array();
	struct digest digest;
	int64_t size = 0;
	int result = make_tree(call, missing, &digest, &size, err);
	end_turn(call);
	if (result < 0)
		return result;
	call->reply.ok = json_pack("{s:b}", "stored", result == 0);
	return result == 0 ? reply_stored(call, &digest, size, err) : reply_json(call, json_pack("{s:O}", "missing", missing), err);
}

const struct operation operation_tree_seal = {.name = "tree_seal", .handle = handle_tree};
