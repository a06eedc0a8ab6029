/* source_tree.c - sends a directory: of what it has, only what the keeper's store lacks. */
#include "client/source_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/tree.h"
#include "base/fd.h"
#include "base/json.h"
#include "client/reply.h"

/* As of what `caisson run` takes. */
#define TREE_MAX_BYTES (INT64_C(8) << 30)

/* So often the keeper may lack something: each answer names a thousand files of a hundred thousand at most, and once more for a sweep in
 * between. */
enum { ROUNDS_MAX = 2 * TREE_ENTRIES_MAX / 1000, LISTING_MAX = 32 * 1024 * 1024, LINE_BYTES = 100 /* of a file, at least */ };

struct source_tree {
	int dir;
	struct buf listing;
	int64_t bytes; /* of all files */
	struct digest digest;
	int listing_fd; /* the same bytes, to be sent */
	unsigned rounds;
	/* What the keeper lacks, in the listing's order; NULL: the listing is to be sent. */
	json_t *missing;
	size_t next;
	struct tree_cursor cursor;
	/* The file that is to be sent, as the listing has it. */
	int file;
	struct tree_line line;
};

const struct digest *source_tree_digest(const struct source_tree *tree)
{
	return &tree->digest;
}

void source_tree_free(struct source_tree *tree)
{
	if (!tree)
		return;
	fd_close(&tree->dir);
	fd_close(&tree->listing_fd);
	fd_close(&tree->file);
	buf_done(&tree->listing);
	tree_line_done(&tree->line);
	json_decref(tree->missing);
	free(tree);
}

static int keep_listing(struct source_tree *tree, struct err *err)
{
	tree->listing_fd = memfd_create("caisson-listing", MFD_CLOEXEC);
	if (tree->listing_fd < 0)
		return err_sys(err, errno, "keep its listing");

	int failed = fd_write_all(tree->listing_fd, tree->listing.data, tree->listing.len);

	return failed ? err_sys(err, -failed, "keep its listing") : 0;
}

int source_tree_open(int dir, struct source_tree **ret, struct err *err)
{
	struct source_tree *tree = calloc(1, sizeof(*tree));

	if (!tree) {
		close(dir);
		return err_set(err, ERR_NO_MEMORY, "out of memory for a directory");
	}
	*tree = (struct source_tree){.dir = dir, .listing = BUF_INIT(LISTING_MAX), .listing_fd = -1, .file = -1};

	int result = tree_list(dir, TREE_MAX_BYTES, &tree->listing, &tree->bytes, err);

	if (result == 0) {
		digest_of(tree->listing.data, tree->listing.len, &tree->digest);
		result = keep_listing(tree, err);
	}
	if (result) {
		source_tree_free(tree);
		return result;
	}
	*ret = tree;
	return 0;
}

int source_tree_call(const struct source_tree *tree, struct http_call *ret, struct err *err)
{
	const int64_t size = tree->line.size_bytes, length = (int64_t)tree->listing.len;

	return tree->missing ? http_call_upload(ret, "/v1/objects", tree->file, size, size, 1, err)
	                     : http_call_upload(ret, "/v1/trees", tree->listing_fd, length, tree->bytes, tree->listing.len / LINE_BYTES, err);
}

static int open_file(struct source_tree *tree, struct err *err)
{
	struct stat status;

	fd_close(&tree->file);
	tree->file = fd_open_beneath(tree->dir, tree->line.path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (tree->file < 0) {
		int number = -tree->file;

		tree->file = -1;
		return err_sys(err, number, "%s", tree->line.path);
	}
	if (fstat(tree->file, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size != tree->line.size_bytes)
		return err_set(err, ERR_CONFLICT, "%s: changed meanwhile", tree->line.path);
	return 1;
}

/* The next file that is missing, or the listing again. The keeper names them in the listing's order, so that one pass finds all. */
static int go_on(struct source_tree *tree, struct err *err)
{
	struct digest wanted;
	int result = 0;

	if (tree->next == json_array_size(tree->missing)) {
		json_decref(tree->missing);
		tree->missing = NULL;
		return 1;
	}

	const char *text = json_string_value(json_array_get(tree->missing, tree->next));

	if (!text || digest_parse(text, &wanted, NULL) < 0)
		return err_set(err, ERR_PROTOCOL, "the keeper misses what has no digest");
	do {
		tree_line_done(&tree->line);
		result = tree_next(&tree->cursor, &tree->line, err);
	} while (result > 0 && (tree->line.kind != TREE_FILE || !digest_equal(&tree->line.sha256, &wanted)));
	if (result <= 0)
		return err_set(err, ERR_PROTOCOL, "the keeper misses what was not listed");
	tree->next++;
	return open_file(tree, err);
}

static int hear_listing(struct source_tree *tree, json_t *answer, struct err *err)
{
	json_t *missing = json_object_get(answer, "missing");

	if (json_object_get(answer, "digest"))
		return reply_stored(answer, &tree->digest, err);
	if (json_array_size(missing) == 0)
		return err_set(err, ERR_PROTOCOL, "the keeper's answer names nothing");
	if (++tree->rounds > ROUNDS_MAX)
		return err_set(err, ERR_STATE, "the keeper still misses files that it was sent");
	tree->missing = json_incref(missing);
	tree->next = 0;
	tree->cursor = TREE_CURSOR(tree->listing.data, tree->listing.len);
	return go_on(tree, err);
}

static int hear_file(struct source_tree *tree, const json_t *answer, const struct http_call *call, struct err *err)
{
	if (!digest_equal(&call->sent, &tree->line.sha256))
		return err_set(err, ERR_CONFLICT, "%s: changed while it was sent", tree->line.path);

	int result = reply_stored(answer, &call->sent, err);

	return result ? result : go_on(tree, err);
}

int source_tree_hear(struct source_tree *tree, const struct http_call *call, struct err *err)
{
	JSON_AUTO json_t *answer = NULL;
	int result = reply_document(call, &answer, err);

	if (result)
		return result;
	return tree->missing ? hear_file(tree, answer, call, err) : hear_listing(tree, answer, err);
}
