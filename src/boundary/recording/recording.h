/* recording.h - the recording boundary: a deterministic model in memory that follows a script and checks every call.
 *
 * A world stands for the host: it holds the units (main, descendants, output handles, resources) by identity, and outlives the
 * boundary objects, so that what one left behind can be recovered by another. Time is virtual: observe jumps to the next scripted
 * event, counted from the real opening of the gate, and never sleeps. A call that the contract does not allow is refused with
 * ERR_STATE and kept as the world's violation. Single-threaded, but for interrupt. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boundary/boundary.h"

enum {
	RECORDING_UNITS_MAX = 256,
	RECORDING_DESCENDANTS_MAX = 64,
	RECORDING_TRACE_MAX = 64 * 1024,
	RECORDING_VIOLATION_MAX = 160,
};

/* The slots of boundary_ops that a script can make fail. */
enum recording_step {
	RECORDING_PREPARE,
	RECORDING_CREATE_SUSPENDED,
	RECORDING_ENROLL,
	RECORDING_LAUNCH,
	RECORDING_OBSERVE,
	RECORDING_TERMINATE,
	RECORDING_KILL,
	RECORDING_DRAIN,
	RECORDING_CLEANUP,
	RECORDING_VERIFY_EMPTY,
	RECORDING_COLLECT,
	RECORDING_STEP_COUNT
};

enum recording_happening {
	RECORDING_OUTPUT,          /* `bytes` bytes arrive on `stream`: `text` over and over */
	RECORDING_FORK,            /* main gets a descendant, which holds the named streams open */
	RECORDING_DESCENDANT_EXIT, /* the oldest descendant that is alive ends */
	RECORDING_CPU,             /* `bytes` nanoseconds of CPU time were used */
	RECORDING_OOM,             /* the kernel kills main for memory */
	RECORDING_EXIT,            /* main exits with `status` */
	RECORDING_SIGNAL,          /* main dies of signal `status`, which is not ours */
	RECORDING_NOT_EXECUTED,    /* main could not be executed: errno `status` */
	RECORDING_INTERRUPT,       /* somebody outside calls interrupt() */
	RECORDING_SPOOL_FULL,      /* the spool cannot take what was read: observe fails with ERR_NO_SPACE */
	RECORDING_INIT_LOST,       /* guest init is gone without a report; everything of the unit dies with it */
	RECORDING_WORKER_LOST,     /* the worker is gone: its unit dies, its resources stay, every later call is ERR_LOST */
};

struct recording_event {
	int64_t at_ms; /* after the gate opened; a script's events are in this order */
	enum recording_happening happening;
	int stream;    /* 1 or 2 */
	const char *text;
	int64_t bytes;
	int status;
	bool holds_stdout, holds_stderr;
	void (*hook)(void *context); /* called when it happens; may be NULL */
	void *context;
};

/* What main leaves in its output place. */
struct recording_output {
	const char *path;
	const char *text;
	bool executable;
	const char *rejected; /* the reason why it breaks a rule; NULL: it does not */
};

/* Borrowed by every boundary opened while it is set; must outlive them. */
struct recording_script {
	const struct recording_event *events;
	size_t event_count;
	const struct recording_output *outputs; /* sorted by path */
	size_t output_count;
	int fail[RECORDING_STEP_COUNT]; /* an err_code: that step fails every time; 0: it does not */
	const char *fail_text;          /* its error text; NULL: "scripted failure" */
	int cleanup_failures;           /* so many calls of cleanup fail first */
	int verify_failures;            /* and of verify_empty */
	int recover_failures;           /* and of the provider's recover */
	bool ignores_term;
	bool unkillable;                /* kill has no effect; cleanup fails as long as main lives; recover works */
};

struct recording_world;

int recording_world_new(struct recording_world **ret, struct err *err);
void recording_world_free(struct recording_world *world);

/* The provider of this world, kind "recording"; valid as long as the world. */
struct boundary_provider recording_provider(struct recording_world *world);

/* What boundaries opened from now on do. NULL: main exits with 0 at once and writes nothing. */
void recording_world_script(struct recording_world *world, const struct recording_script *script);

/* A process dies with kill -9: the object goes, its unit stays in the world as it is. For boundaries of this module only. */
void recording_abandon(struct boundary *boundary);

/* The calls so far, a line each: "enroll ok", "observe main_exited", "cleanup timeout". Borrowed, until the next call. */
const char *recording_world_trace(const struct recording_world *world);
void recording_world_trace_clear(struct recording_world *world);

/* The first call that the contract does not allow; "" when there was none. */
const char *recording_world_violation(const struct recording_world *world);

/* What the host knows of a unit. */
struct recording_unit_view {
	bool exists;       /* resources with this identity are there */
	bool quarantined;  /* a cleanup or verification failed, and no recovery has verified it empty since */
	bool main_alive;
	int descendants_alive;
	int launches;      /* how often the gate was opened in the life of this identity */
};
void recording_world_view(const struct recording_world *world, const struct boundary_identity *identity,
                          struct recording_unit_view *ret);
