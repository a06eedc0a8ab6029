/* linux.h - the native Linux boundary: namespaces, cgroups, mounts, ids, seccomp, Landlock, under guest init.
 *
 * Kernel floor 6.1. Runs as root, or as an ordinary user to whom a cgroup was delegated (place.h). Controllers are used in v2 or v1,
 * whichever is mounted (facts: a hybrid host is an ordinary one). What cannot be enforced is refused by name. */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "boundary/boundary.h"

struct linux_options {
	const char *init_path;     /* guest init, a static program; opened when the provider is made */
	const char *cgroup_parent; /* path below each hierarchy's mount, without a leading slash; NULL: found (place.h) */
	const char *runtime_dir;   /* where this user's runs lock the ids that they use; made if need be. NULL: root's place */
	pid_t caller;              /* who would have to be placed in a delegated cgroup; for a message */
	int wake_fd;               /* readable: observe returns BOUNDARY_INTERRUPTED (not consumed); -1: none */
};

/* Reads the host's facts and opens what every run shares; effects nothing. ERR_UNSUPPORTED names what a native run needs and this host
 * lacks. On success *ret is the caller's. */
int linux_provider_new(const struct linux_options *options, struct boundary_provider **ret, struct err *err);

/* NULL is allowed. Boundaries opened by it must be freed first. */
void linux_provider_free(struct boundary_provider *provider);
