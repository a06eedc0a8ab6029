/* place.h - below which group a boundary's own groups are made: what was asked for, what was delegated to us, or, as root, /caisson. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "boundary/linux/host.h"

enum { PLACE_PARENT_MAX = 256 };

/* A group of PLACE_LEAF's name below the parent holds who starts runs: a group whose controllers are given on may have no member. */
#define PLACE_LEAF "callers"

struct place {
	char parent[PLACE_PARENT_MAX]; /* below each hierarchy's mount, without a leading slash; "": the mount itself */
	bool inhabited;                /* we may live in it, so that its members must move to the leaf before it can give controllers on */
};

/* given: `cgroup_parent`, or NULL. In this order: given; the nearest group around us that was delegated to our user; as root /caisson.
 * Looks, and changes nothing. ERR_UNSUPPORTED: an ordinary user has no such group, the text ends with the commands that would make one for
 * `caller`, the process to be placed in it. ERR_INVALID: given is no path below a mount. */
int place_find(const struct host *host, const char *given, pid_t caller, struct place *ret, struct err *err);

/* Appends what would delegate a group to this user: commands, for `caller` to be placed in it. */
int place_advise(const struct host *host, pid_t caller, struct buf *ret, struct err *err);

/* Moves every member of the group to the leaf below it. 0 or -errno. */
int place_vacate(int group);
