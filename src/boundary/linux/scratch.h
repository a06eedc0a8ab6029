/* scratch.h - a work space on disk: a file system of its own for one boundary, in an image without a name.
 *
 * The image is an unnamed file (O_TMPFILE), the loop device that shows it clears itself at its last close, and its mount is attached
 * nowhere in the host's namespaces: all three are gone with the descriptors and the guest, however those end, and a reboot or a kill at any
 * instruction leaves nothing to remove. The loop device carries the boundary's name, by which it is seen that it is gone. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "boundary/boundary.h"

struct scratch_spec {
	const char *name; /* of the boundary, as its groups have it */
	int spool;        /* a directory on the disk that is to be used */
	int64_t bytes, inodes;
};

/* Makes it: the descriptor of its mount (O_PATH, nosuid, nodev). ERR_UNENFORCEABLE says what of this host, or of the figures, is in the
 * way. The disk's room is taken at once, so that a guest meets the end of its own space only. */
int scratch_make(const struct scratch_spec *spec, struct err *err);

/* Nobody will read it again: what is not yet written to the disk need not be. */
void scratch_abandon(int mount);

/* Waits until no loop device has this name, until deadline_ns (CLOCK_MONOTONIC). ERR_TIMEOUT names it. */
int scratch_await_absent(const char *name, int64_t deadline_ns, struct err *err);
/* ERR_UNVERIFIED when one has. */
int scratch_verify_absent(const char *name, struct err *err);

/* Calls found for each loop device of this ledger's. */
int scratch_enumerate(const char *ledger_id, boundary_found_fn found, void *context, struct err *err);

/* NULL, or what a scratch space on disk needs and this host has not. */
const char *scratch_missing(void);
