/* cgroup.h - the groups of one boundary, per controller in v2 or v1, whichever is mounted.
 *
 * v2:  PARENT/NAME/{init,guest}; processes are born into a leaf, limits and counters are guest's, kill is NAME's.
 * v1:  PARENT/NAME in each hierarchy that is used; main alone joins, while it waits at the gate.
 *
 * NAME is "<ledger id>.<boundary id>", made for one run and never used again (facts: on 6.18 a group that was ever killed gives
 * still-born children). Nothing here touches a group that does not carry such a name, except to make PARENT. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "boundary/boundary.h"
#include "boundary/linux/host.h"
#include "boundary/linux/place.h"

enum {
	CGROUP_NAME_MAX = 2 * ID_SIZE + 2,
	CGROUP_PATH_MAX = HOST_MOUNT_MAX + PLACE_PARENT_MAX + 64, /* of a parent, and a file in it */
};

/* Descriptors are directories (O_PATH is not enough to read through on every kernel, so O_RDONLY); -1: not used. */
struct cgroups {
	const struct host *host;
	const struct place *place;
	char name[CGROUP_NAME_MAX];
	bool used[CONTROLLER_COUNT];     /* this boundary needs the controller */
	int controller[CONTROLLER_COUNT];/* v1: NAME; v2: -1, see guest */
	int top, init, guest;            /* v2 */
	int64_t cpu_base_ns, user_base_ns, system_base_ns; /* counters at the gate: set-up is not charged */
};

/* host and place are borrowed; NULL for groups that are never made. */
void cgroups_init(struct cgroups *groups, const struct host *host, const struct place *place, const struct boundary_identity *identity);
/* Closes descriptors; removes nothing. */
void cgroups_done(struct cgroups *groups);

/* Makes the groups, writes every limit of the plan and reads it back, an evidence line each. ERR_UNENFORCEABLE names the limit. */
int cgroups_make(struct cgroups *groups, const struct plan_limits *limits, struct evidence_list *evidence, struct err *err);

/* Of cgroups_make the part that writes limits, when all groups are there. */
int cgroups_set_limits(struct cgroups *groups, const struct plan_limits *limits, struct evidence_list *evidence, struct err *err);

/* Descriptor of the group that has this controller's files for the guest; -1 when it is not used. Borrowed. */
int cgroups_of(const struct cgroups *groups, enum controller controller);

/* The tasks file of each v1 group, open for writing (owner: the caller). The number of descriptors, at most CONTROLLER_COUNT. */
int cgroups_open_joins(const struct cgroups *groups, int ret[static CONTROLLER_COUNT], struct err *err);

/* Is `pid` a member where it must be? An evidence line for each group; ERR_UNVERIFIED. */
int cgroups_verify(const struct cgroups *groups, pid_t init, pid_t main, struct evidence_list *evidence, struct err *err);

/* At the gate, just before launch: baselines are taken, peaks reset. */
int cgroups_start_accounting(struct cgroups *groups, struct err *err);

/* CPU time since the gate, or -1. */
int64_t cgroups_cpu_ns(const struct cgroups *groups);
/* Anonymous memory of the guest's group at this moment, or -1. The kernel's own counter, up to some 64 pages a CPU behind. */
int64_t cgroups_anon_bytes(const struct cgroups *groups);
/* OOM kills in the guest's group, or -1. */
int64_t cgroups_oom_kills(const struct cgroups *groups);
/* Processes in the guest's group (v2, else v1 pids), or -1. */
int cgroups_population(const struct cgroups *groups);
void cgroups_read_usage(const struct cgroups *groups, struct boundary_usage *usage);

/* An eventfd that becomes readable when the v1 memory group is out of memory; -1 with 0 on v2, where the kernel kills the whole group. */
int cgroups_watch_memory(const struct cgroups *groups, int *ret_fd, struct err *err);

/* Removes those of the guest's groups that have no member: ahead of cgroups_destroy, which sees to the rest. */
void cgroups_remove_guest(const struct cgroups *groups);

/* By name alone, below this parent in every hierarchy: kills what is in there (thawing v1) and removes the groups, until deadline_ns
 * (CLOCK_MONOTONIC). Absent is success. *survivors is added to. ERR_TIMEOUT names what is left. */
int cgroups_destroy(const struct host *host, const char *parent, const char *name, int64_t deadline_ns, int *survivors, struct err *err);

/* Zero members by being absent in every hierarchy. ERR_UNVERIFIED names the first that is there. */
int cgroups_verify_absent(const struct host *host, const char *parent, const char *name, struct err *err);

/* The same wherever it is: whoever recovers may be placed elsewhere than who made it. Groups of another user that carry the name are
 * his own business (R10). */
int cgroups_destroy_anywhere(const struct host *host, const char *name, int64_t deadline_ns, int *survivors, struct err *err);

/* 1 when a group of ours has this name, wherever it is; 0, or an error. */
int cgroups_find(const struct host *host, const char *name, struct err *err);

/* Is it "<ledger id>.<boundary id>" of this ledger, and nothing else? */
bool cgroups_parse_name(const char *name, const char *ledger_id, struct boundary_identity *ret);

/* Calls found for each group of ours of this ledger, wherever it is, once a name however many hierarchies it is in. */
int cgroups_enumerate(const struct host *host, const char *ledger_id, boundary_found_fn found, void *context, struct err *err);

/* The distinct mounts in which a boundary may have a group. */
struct cgroup_mounts {
	const char *mounts[CONTROLLER_COUNT + 1];
	int count;
};
struct cgroup_mounts cgroups_list_mounts(const struct host *host);
