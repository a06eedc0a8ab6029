/* shim.h - stands between runner and boundary: counts and names the calls, makes one fail, looks around before one. */
#pragma once

#include <stdbool.h>

#include "boundary/boundary.h"

enum shim_slot {
	SHIM_PREPARE,
	SHIM_CREATE_SUSPENDED,
	SHIM_ENROLL,
	SHIM_LAUNCH,
	SHIM_OBSERVE,
	SHIM_TERMINATE,
	SHIM_KILL,
	SHIM_DRAIN,
	SHIM_CLEANUP,
	SHIM_VERIFY_EMPTY,
	SHIM_COLLECT,
	SHIM_SLOT_COUNT
};

enum shim_failure {
	SHIM_INSTEAD, /* the boundary is not asked */
	SHIM_AFTER,   /* it is asked, and then a failure is reported all the same */
};

enum { SHIM_TRACE_MAX = 1024 };

struct shim {
	struct boundary base;
	struct boundary *inner;
	int calls[SHIM_SLOT_COUNT];
	char trace[SHIM_TRACE_MAX]; /* slots in the order of their calls, repeated ones once; separated by spaces */

	bool fails[SHIM_SLOT_COUNT];
	enum shim_failure failure;
	int code;                   /* ERR_UNVERIFIED unless set */
	int lost_from_observe;      /* at the first observe the worker is gone: this and every later call is ERR_LOST */

	void (*before[SHIM_SLOT_COUNT])(void *context);
	void *context;
	struct boundary_event exit; /* main's, as the boundary reported it */
	bool exited;
};

/* Takes over `inner`; freed by base.ops->free, which leaves the shim itself to its owner. */
void shim_init(struct shim *shim, struct boundary *inner);
const char *shim_slot_name(enum shim_slot slot);
