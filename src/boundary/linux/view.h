/* view.h - what the guest sees: all of its mounts, made detached by the worker; guest init only puts them in place.
 *
 * Nothing is ever mounted in the host's namespace, so nothing can be left there: a detached mount is gone with its last descriptor. The work
 * space is a tmpfs, or an image on disk (scratch.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "artifact/store.h"
#include "base/error.h"
#include "boundary/boundary.h"
#include "boundary/linux/ids.h"
#include "manifest/plan.h"

enum { VIEW_MAX_MOUNTS = 1180, VIEW_TARGET_MAX = 4096 };

enum view_flags {
	VIEW_READ_ONLY = 1,
	VIEW_NO_EXEC = 2,
	VIEW_NO_DEVICES = 4,
	VIEW_TREE = 8, /* may have mounts of the host below it, just as read-only */
};

struct view_mount {
	int fd; /* -1: this path of the work space, which init takes out of it */
	unsigned flags;
	char *target; /* without a leading slash; "" is the root */
};

struct view {
	struct view_mount *mounts; /* the root first, parents before children */
	size_t count, capacity;
	bool bound;                /* of an ordinary user: device nodes are the host's, bound, and inputs are found again by path */
	int work, out;             /* the two writable file systems, for the space_full check; -1 */
	dev_t root_dev, work_dev;
	ino_t root_ino;
};

/* For this process's user: see `bound`. */
void view_init(struct view *view);
void view_done(struct view *view);
/* Closes the mounts, keeping what enroll compares with. */
void view_close_mounts(struct view *view);

/* The part that does not depend on a plan: the root and the host's base. For a worker to make ahead; single use. */
int view_make_host_base(struct view *view, const char *const *base, struct err *err);

/* What the view of one run is made of. All borrowed. */
struct view_spec {
	const char *name; /* of the boundary */
	const struct plan *plan;
	struct store *store;
	const struct ids *ids;
};

/* Makes everything but /proc. A view that has its base already must have been made for this plan's. Input digests are checked here;
 * ERR_DAMAGED names the target whose bytes do not match. The two spaces' sizes are read back, an evidence line each. */
int view_make(struct view *view, const struct view_spec *spec, struct evidence_list *evidence, struct err *err);

/* The same file or directory as fd, O_PATH, by its path in the mount namespace that we are in now: what another shows cannot be cloned. */
int view_reopen(int fd, struct err *err);

/* The regular file, opened for reading through a read-only mount of its own: whoever gets the descriptor, and be he the file's owner, cannot
 * change it nor its attributes by it. */
int view_open_read_only(int file, struct err *err);

/* Was the work or output space found without a free block or inode? */
bool view_space_full(const struct view *view);
