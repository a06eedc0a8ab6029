/* tree_internal.h - walking a directory in the order of its listing; private to this folder. */
#pragma once

#include <sys/stat.h>

#include "artifact/tree.h"
#include "base/buffer.h"

enum { TREE_DIR_MODE = 0755 };

struct tree_entry {
	const char *path, *name; /* from the top; in its directory */
	int dir, copy;           /* its directory, and the one of the copy; -1: none is made */
	struct stat status;      /* links not followed */
};

/* A negative result ends the walk. The walk makes the directories of the copy itself. */
typedef int (*tree_visit_fn)(void *context, const struct tree_entry *entry, struct err *err);
int tree_walk(int dir, int copy, tree_visit_fn visit, void *context, struct err *err);

/* The bytes of all files, by their sizes. */
int tree_bytes(int tree, int64_t *ret, struct err *err);

/* What reading a tree gives. copy: an empty directory to fill, or -1. buf_done(&ret->listing) in every case. */
struct tree_reading {
	struct buf listing;
	struct digest digest;
	int64_t bytes, max_bytes;
};
#define TREE_READING_INIT(max) ((struct tree_reading){.listing = BUF_INIT(TREE_LISTING_MAX), .max_bytes = (max)})
int tree_read(int dir, int copy, struct tree_reading *ret, struct err *err);

/* A directory as a tree has it. The descriptor, or -errno. */
int tree_make_dir(int parent, const char *name);

/* ---- laying out (tree_store.c) ---- */

/* Fills an empty directory, and reads what is in it then. */
typedef int (*tree_fill_fn)(void *context, int copy, struct tree_reading *reading, struct err *err);
int tree_lay_out(struct store *store, tree_fill_fn fill, void *context, struct tree_reading *reading, struct err *err);

/* 1 when it is there; whether it is right is for whoever shows it to see. */
int tree_present(struct store *store, const struct digest *digest, struct err *err);
