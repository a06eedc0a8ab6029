/* lifecycle.h - the contract as a pure function: (state, event with its time) -> (state, actions).
 *
 * No I/O, no clock, no log, no allocation. One table (transitions.c) holds every allowed move; an event that the table does not
 * allow in the present state is ERR_STATE and changes nothing. Recovery is the same function, fed with what ledger and
 * inspection say. After each move life_check() holds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* States of an attempt (contract, "Life of a run"). `queued` is where an attempt starts, `sealed` or `abandoned` where it ends. */
enum life_state {
	LIFE_QUEUED,
	LIFE_ADMITTED,
	LIFE_PREPARING,
	LIFE_SUSPENDED,  /* init and main exist; main waits at the gate */
	LIFE_ENROLLED,   /* every requested property verified; the only state from which launch is reachable (R1) */
	LIFE_RUNNING,
	LIFE_EXITED,     /* main's exit is known, or everything was killed; streams are being drained */
	LIFE_CLEANING,
	LIFE_CLEANED,    /* verified empty */
	LIFE_QUARANTINED,
	LIFE_RECOVERING,
	LIFE_SEALED,
	LIFE_ABANDONED,  /* it never had a launch intent, and its run is queued again: another attempt follows */
	LIFE_STATE_COUNT
};

enum life_event_kind {
	LIFE_EV_ADMIT,            /* admission said admit */
	LIFE_EV_REFUSE,           /* admission said refuse; reason is set */
	LIFE_EV_PREPARED,
	LIFE_EV_SUSPENDED,        /* create suspended is done */
	LIFE_EV_ENROLLED,
	LIFE_EV_STEP_FAILED,      /* prepare, create, enroll, fence or launch failed; step and reason set */
	LIFE_EV_INTENT_DURABLE,   /* lease fenced and launch intent durable: the gate may open */
	LIFE_EV_LAUNCHED,         /* the gate is open */
	LIFE_EV_STOP,             /* a stop cause: limit or cancellation; cause set. Sticky: the first recorded cause counts. A
	                           * cancellation of what is being terminated already kills at once ("kill now" is a second one) */
	LIFE_EV_GRACE_OVER,       /* the grace after TERM has passed */
	LIFE_EV_MAIN_EXITED,      /* main's status and stamped time, usage so far, descendants alive */
	LIFE_EV_DRAINED,          /* both streams at EOF, or drain_ms passed (retained set) */
	LIFE_EV_BOUNDARY_LOST,    /* the worker or init is gone, or said what it may not say */
	LIFE_EV_CLEANED,          /* cleanup reports every member killed and every resource removed */
	LIFE_EV_CLEANUP_FAILED,   /* within cleanup_ms it was not */
	LIFE_EV_VERIFIED_EMPTY,
	LIFE_EV_VERIFY_FAILED,
	LIFE_EV_RECOVERY_STARTED, /* an independent recovery takes over, in any state before sealed; also when the owner is dead */
	LIFE_EV_SEALED,           /* the seal's transaction is committed */
	LIFE_EV_ABANDONED,        /* the transaction that queues the run again is committed */
	LIFE_EVENT_COUNT
};

enum life_action {
	LIFE_DO_PREPARE,
	LIFE_DO_CREATE_SUSPENDED,
	LIFE_DO_ENROLL,
	LIFE_DO_COMMIT_INTENT, /* fence the lease and make the launch intent durable, in one transaction */
	LIFE_DO_LAUNCH,
	LIFE_DO_OBSERVE,       /* wait for the next event of the boundary */
	LIFE_DO_TERMINATE,     /* TERM to the guest's processes, then arm the grace */
	LIFE_DO_KILL,          /* kill the whole unit */
	LIFE_DO_DRAIN,
	LIFE_DO_CLEANUP,
	LIFE_DO_VERIFY_EMPTY,
	LIFE_DO_QUARANTINE,    /* make worker and boundary unusable, durably; hand out a provisional result */
	LIFE_DO_RECOVER,       /* clean up by identity alone, as a stranger to whatever made it */
	LIFE_DO_SEAL,
	LIFE_DO_ABANDON,       /* queue the run again, without a receipt */
	LIFE_ACTION_COUNT
};

enum stop_cause {
	STOP_NONE,
	STOP_CANCEL,
	STOP_WALL,
	STOP_CPU,
	STOP_OUTPUT,
	STOP_MEMORY, /* the kernel reported an OOM kill in the guest's group while it ran */
	STOP_CAUSE_COUNT
};

enum life_step { STEP_NONE, STEP_ADMISSION, STEP_PREPARE, STEP_CREATE, STEP_ENROLL, STEP_FENCE, STEP_LAUNCH, STEP_COUNT };

enum {
	LIFE_REASON_MAX = 64,  /* from fixed vocabularies: snake_case words */
	LIFE_DETAIL_MAX = 256, /* free text for people */
	LIFE_MAX_ACTIONS = 3,
};

/* Words of BOUNDARY_LOST and RECOVERY_STARTED that mean something to the lifecycle or are put in by it; any other reason is the
 * caller's. */
#define LIFE_REASON_WORKER_LOST "worker_lost" /* the worker died: with it the natural end of what ran is unknown */
#define LIFE_REASON_INIT_LOST "init_lost"     /* guest init died under a living worker: the boundary misbehaved */
#define LIFE_REASON_KEEPER_LOST "keeper_lost" /* RECOVERY_STARTED, when the event names no reason */
#define LIFE_REASON_NOT_VERIFIED_EMPTY "not_verified_empty"

/* How main ended. Exactly one of the first three forms. */
enum main_end { MAIN_UNKNOWN, MAIN_EXITED, MAIN_SIGNALED, MAIN_NOT_EXECUTED };

struct main_exit {
	enum main_end how;
	int code;       /* MAIN_EXITED: 0..255. MAIN_NOT_EXECUTED: errno of execve */
	int signal;     /* MAIN_SIGNALED: 1..64 */
	int64_t at_ns;  /* as init stamped it, CLOCK_MONOTONIC */
	bool killed_by_us; /* the signal is the one Caisson sent (it had begun to kill or terminate before main ended) */
};

struct life_event {
	enum life_event_kind kind;
	int64_t at_ns;
	enum stop_cause cause;            /* STOP */
	enum life_step step;              /* STEP_FAILED */
	char reason[LIFE_REASON_MAX];     /* REFUSE, STEP_FAILED, BOUNDARY_LOST, CLEANUP_FAILED, VERIFY_FAILED, RECOVERY_STARTED */
	char detail[LIFE_DETAIL_MAX];
	struct main_exit exit;            /* MAIN_EXITED */
	int descendants_alive;            /* MAIN_EXITED: -1 unknown */
	bool stdout_retained, stderr_retained; /* DRAINED */
};

/* Everything the attempt has been through that its verdict may depend on. Totals are put in by the runner before the verdict. */
struct life {
	enum life_state state;
	bool intent;              /* a launch intent is durable */
	bool launched;            /* the gate was opened, as far as we know */
	bool interrupted;         /* the supervisor died while it ran, and nothing recorded proves how it ended: set by
	                           * RECOVERY_STARTED, or by the loss of the worker, on an attempt with an intent, without a stop
	                           * cause, and without all of main's exit, drained output and a cleanup that read its usage */
	bool terminating, killing;
	int64_t grace_ms;         /* set before the first step: grace after TERM for a cancellation */
	int64_t limit_grace_ms;   /* and for a limit; 0 means kill at once */
	bool retriable;           /* set before the first step: another attempt may follow (the run is detached, this is not its last) */
	bool lost;                /* what ended it before its intent is the loss of its keeper or worker, and nothing else */
	bool requeue;             /* decided when a recovery starts: it will be abandoned, not sealed */
	enum stop_cause stop;     /* the first recorded one */
	int64_t stop_at_ns, launched_at_ns;
	enum life_step failed_step;
	char reason[LIFE_REASON_MAX]; /* of the refusal or the failed step */
	char detail[LIFE_DETAIL_MAX];
	struct main_exit exit;
	int descendants_alive;
	bool drained, retained;
	bool boundary_misbehaved; /* BOUNDARY_LOST after launch, CLEANUP_FAILED or VERIFY_FAILED ever seen */
	char boundary_reason[LIFE_REASON_MAX]; /* the first one of misbehaviour or interruption */
	char boundary_detail[LIFE_DETAIL_MAX];
	bool cleaned;             /* the cleanup in hand reported success; what is left of it is to be verified */
	bool verified_empty;
	bool was_quarantined;
};

/* What to do next, in order. They replace whatever the caller had still to do; none means that it goes on with that. */
struct life_actions {
	enum life_action list[LIFE_MAX_ACTIONS];
	size_t count;
};

void life_init(struct life *life, int64_t cancel_grace_ms, int64_t limit_grace_ms);

/* Puts an attempt whose owner is dead where the ledger says that it was. What the records say besides (stop cause, main's exit,
 * that it was drained and cleaned) is then set in *life, or fed as STOP; last comes RECOVERY_STARTED. */
void life_restore(struct life *life, enum life_state state, bool intent, bool was_quarantined);

/* One move. 0, or ERR_STATE naming state and event, or ERR_INVALID for an event that contradicts itself, or ERR_INTERNAL when
 * an invariant would break. life and *ret are untouched by all three. */
int life_step(struct life *life, const struct life_event *event, struct life_actions *ret, struct err *err);

/* The invariants (R1, R3, R6, …) over a state; ERR_INTERNAL names the one that is broken. */
int life_check(const struct life *life, struct err *err);

/* Is a cancellation still of any effect in this state? True from queued to cleaned, also when main has exited already. In
 * quarantine and in a recovery the verdict no longer depends on it, after the seal nothing does; a STOP is ERR_STATE there. Of
 * the limits only those that are met in `running` stop anything: before, they say nothing about the guest; after, the totals
 * speak. */
bool life_stoppable(const struct life *life);

/* The words of ledger, records and traces. "?" for a number that is none of ours, never NULL. */
const char *life_state_name(enum life_state state);
const char *life_event_name(enum life_event_kind kind);
const char *life_action_name(enum life_action action);
const char *life_step_name(enum life_step step);
const char *stop_cause_name(enum stop_cause cause);

/* The way back from life_state_name, for what a ledger holds. ERR_INVALID. */
int life_state_parse(const char *name, enum life_state *ret, struct err *err);
