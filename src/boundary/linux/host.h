/* host.h - facts of this host, read once a provider: kernel, hierarchies, namespaces, Landlock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum {
	HOST_MOUNT_MAX = 256,
	HOST_KERNEL_FLOOR = 6 * 1000 + 1, /* 6.1 */
};

/* The controllers that a boundary uses, and the unified hierarchy itself (membership, kill). */
enum controller { CONTROLLER_MEMORY, CONTROLLER_PIDS, CONTROLLER_CPU, CONTROLLER_CPUACCT, CONTROLLER_CPUSET, CONTROLLER_COUNT };

struct host_controller {
	bool present, v2;
	char mount[HOST_MOUNT_MAX]; /* of its hierarchy */
	char root[HOST_MOUNT_MAX];  /* which group of it the mount shows: "/" but in some containers */
};

enum { NS_USER, NS_MNT, NS_PID, NS_NET, NS_IPC, NS_UTS, NS_CGROUP, NS_COUNT };

struct host {
	int kernel;                     /* major * 1000 + minor */
	int landlock_abi;               /* 0: none */
	bool unified;                   /* a v2 hierarchy is mounted */
	char unified_mount[HOST_MOUNT_MAX], unified_root[HOST_MOUNT_MAX];
	struct host_controller controllers[CONTROLLER_COUNT];
	bool memory_peak;               /* a group of the controller has a peak counter */
	ino_t namespaces[NS_COUNT];     /* our own */
	int64_t page_bytes;
};

/* ERR_UNSUPPORTED below the kernel floor; a missing controller is no error here. */
int host_read(struct host *ret, struct err *err);

/* Do groups of the pids controller count their peak? Looks at one that is there; false when there is none. */
bool host_has_pids_peak(const struct host *host);

/* Which namespaces this process is in now. */
int host_read_namespaces(ino_t ret[static NS_COUNT], struct err *err);

const char *controller_name(enum controller controller); /* "memory", … */
bool controller_in_list(const char *list, enum controller controller); /* words with blanks or commas between them */
bool controller_always_used(enum controller controller);
const char *namespace_name(int index);                   /* as in /proc/PID/ns */
