/* tree.h - directories in the store: sealed as a listing whose digest names them, and laid out once to be shown whole.
 *
 * The listing is canonical JSON, an array with a directory before what is in it and names sorted by their bytes:
 *   {"kind":"dir","path":P}  {"kind":"file","mode":"0444"|"0555","path":P,"sha256":D,"size_bytes":N}  {"kind":"link","path":P,"target":T}
 * P and T are spelled as artifacts' paths are (name.h). DIR/trees/abcdef…: the copy that belongs to it (docs/adr/0011). */
#pragma once

#include <stdint.h>

#include "artifact/store.h"
#include "base/buffer.h"

enum {
	TREE_ENTRIES_MAX = 100 * 1000,
	TREE_DEPTH_MAX = 64,
	TREE_LISTING_MAX = 64 * 1024 * 1024,
};

/* Reads the directory (a descriptor that can be read) and all that is in it; links are read, never followed. The digest is of the
 * listing, *ret_size the bytes of all files. ERR_INVALID names what may not be in a tree: another kind of file, or a link that is
 * absolute or could leave the tree; ERR_CONFLICT what changed meanwhile; ERR_LIMIT. */
int tree_digest(int dir, int64_t max_bytes, struct digest *ret, int64_t *ret_size, struct err *err);

/* As tree_digest, but gives the listing itself, whose digest that is; ret: BUF_INIT(TREE_LISTING_MAX) or less. */
int tree_list(int dir, int64_t max_bytes, struct buf *ret, int64_t *ret_size, struct err *err);

enum tree_kind { TREE_DIR, TREE_FILE, TREE_LINK };

/* A line of a listing. */
struct tree_line {
	enum tree_kind kind;
	char *path;   /* a valid path of name.h; owned */
	char *target; /* TREE_LINK: any text; owned */
	bool executable;
	struct digest sha256;
	int64_t size_bytes;
};
void tree_line_done(struct tree_line *line);

/* Where in a listing one is. Borrows the text. */
struct tree_cursor {
	const char *at, *end;
	size_t number; /* of lines read */
};
#define TREE_CURSOR(text, length) ((struct tree_cursor){.at = (text), .end = (text) + (length)})
/* 1: a line, for tree_line_done. 0: the listing ended as it should. ERR_INVALID names the entry; so does ERR_LIMIT, of the depth and the
 * number of names. That the order is right, and the form canonical, is not looked at. */
int tree_next(struct tree_cursor *cursor, struct tree_line *ret, struct err *err);

/* Also stores the listing and lays the tree out, both durable. A tree that is there already is kept. */
int store_put_tree(struct store *store, int dir, int64_t max_bytes, struct digest *ret, int64_t *ret_size, struct err *err);

/* The same of a listing whose files are objects of the store: for a directory that is not on this host. Calls `missing` for each file whose
 * object is not there, in the listing's order, until it returns non-zero; then nothing was made, and the result is 1. The store must be
 * held. ERR_INVALID names what may not be in a tree, or does not fit what is before it; also for a listing that is not canonical. */
typedef int (*tree_missing_fn)(void *context, const struct digest *digest);
int store_put_listing(struct store *store, const char *listing, size_t length, int64_t max_bytes, tree_missing_fn missing, void *context,
                      struct digest *ret, int64_t *ret_size, struct err *err);

/* Opens a tree's copy; it is read whole unless each name in it is by device, inode, size, mode and ctime the very file that was found
 * right before. ERR_NOT_FOUND, ERR_DAMAGED. */
int store_get_tree(struct store *store, const struct digest *digest, int *ret_fd, int64_t *ret_size, struct err *err);
/* Reads it whole. */
int store_check_tree(struct store *store, const struct digest *digest, struct err *err);

/* Within a sweep: a tree, and whatever a killed store_put_tree left in DIR/tmp. ERR_NOT_FOUND. */
int store_remove_tree(struct store *store, const struct digest *digest, struct err *err);
int store_remove_unfinished(struct store *store, struct err *err);
