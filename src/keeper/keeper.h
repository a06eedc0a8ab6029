/* keeper.h - the keeper of one run (`caisson run`), and recovery of what dead keepers left.
 *
 * `caisson serve` will be a keeper with a front; both use the same worker, channel and recovery. */
#pragma once

#include <stdbool.h>
#include <signal.h>
#include <stdint.h>

#include "admission/admission.h"
#include "boundary/boundary.h"
#include "ledger/ledger.h"
#include "runner/runner.h"

/* An opened ledger directory with all that goes with it. */
struct keeper {
	int dir;                     /* the ledger's directory */
	struct ledger *ledger;
	struct store *store;
	struct key *key;
	struct ledger_owner owner;
	char principal[64];          /* "uid:0", from our own credentials */
};

/* A worker: a process of its own that drives one boundary at a time; the other end of the channel (worker.h). */
struct worker;

/* Makes the provider of a profile where it is needed: in the worker at its start, and in the keeper only when there is something to recover.
 * wake_fd: a descriptor whose readability must make a blocked observe return BOUNDARY_INTERRUPTED; level-triggered, never to be read; -1 in
 * the keeper. In the worker no descriptor opened before worker_spawn is open, but 0 to 2, which are /dev/null; and nothing is released
 * there: all of it ends with the process. ERR_UNSUPPORTED: there is no such profile, or this host cannot have it. */
struct provider_factory {
	int (*make)(void *context, const char *profile, int wake_fd, struct boundary_provider **ret, struct err *err);
	void (*release)(void *context, struct boundary_provider *provider);
	void *context;
};

/* Forks a worker for one profile. To be called early, from a small, single-threaded process, before a ledger is open; the worker makes its
 * provider and opens a boundary while the caller goes on. Makes this process the reaper of its orphans (PR_SET_CHILD_SUBREAPER), so that
 * what a dying worker leaves is no zombie of pid 1's. An error of the factory comes back from worker_boundary. factory and its context are
 * not used after the return. */
int worker_spawn(const char *profile, const struct provider_factory *factory, struct worker **ret, struct err *err);

/* The boundary that lives in the worker: every call travels over the channel. Freed by boundary->ops->free, before the worker. One at a
 * time: ERR_STATE. When the worker dies or does not answer in time every call is ERR_LOST, and observe reports BOUNDARY_LOST with the detail
 * "worker_lost". */
int worker_boundary(struct worker *worker, struct boundary **ret, struct err *err);

/* Wakes a blocked observe; async-signal-safe. NULL is allowed. */
void worker_interrupt(struct worker *worker);

/* Closes the channel and reaps the worker (it kills its unit and exits), and whatever other child of this process is dead by then. NULL is
 * allowed. */
void worker_free(struct worker *worker);

/* Opens the key, registers us as an owner, fills principal. On success dir, ledger and store are the keeper's (wiring opened them); on
 * failure they stay the caller's. */
int keeper_open(int dir, struct ledger *ledger, struct store *store, struct keeper **ret, struct err *err);
void keeper_free(struct keeper *keeper);
/* As keeper_free, for a process that ends now: what the kernel takes back anyway is left to it. NULL is allowed. */
void keeper_leave(struct keeper *keeper);

struct keeper_once {
	struct keeper *keeper;
	struct worker *worker;       /* its only run: it is dismissed at the end, and still the caller's. May be NULL when plan is */
	/* When the worker dies, the attempt is recovered at once by this process, through a provider of its own. NULL: that is left to the
	 * next recovery, and the result is provisional. */
	const struct provider_factory *factory;
	const struct manifest *manifest;
	const struct plan *plan;     /* NULL: refused at compilation */
	const char *plan_refusal;    /* then the text; reason `limit_unenforceable` or `unsupported` in plan_reason */
	const char *plan_reason;
	/* Signals heard by the program: how many INT/TERM/HUP so far. The first cancels, the second kills. */
	const volatile sig_atomic_t *signals;
	void (*launched)(void *context, struct capture *standard_output, struct capture *standard_error);
	void (*lasts)(void *context, struct capture *standard_output, struct capture *standard_error); /* as runner_request.lasts */
	void *context;
	int64_t lease_ttl_ms; /* 0: the default */
};

struct keeper_result {
	char run_id[ID_SIZE];
	struct runner_result run;
	struct capture *standard_output, *standard_error; /* NULL when refused */
};

/* Admits, accepts, drives, seals. Whoever sealed the inputs holds the store (store_hold), and it is released when the run is accepted. 0
 * whenever the run reached a terminal or provisional state, with everything in *ret the caller's
 * (keeper_result_done); a negative code when nothing was recorded, or the ledger failed and the next recovery has to converge. */
int keeper_run_once(const struct keeper_once *once, struct keeper_result *ret, struct err *err);

/* Frees receipt and captures. */
void keeper_result_done(struct keeper_result *result);

struct keeper_recovered {
	int sealed;
	int requeued;    /* abandoned without a launch intent: their runs wait in the queue again */
	int quarantined; /* not verified empty, or left alone in quarantine */
	int busy;        /* a living keeper's: left alone */
	int failed;      /* not recovered for another reason; reported, and tried again by the next recovery */
	int swept;       /* boundaries that no unsealed attempt named, removed */
};

/* What one keeper has seen of the leases of others, from one recovery to the next: of a living owner too that is stopped. */
struct keeper_watch;
struct keeper_watch *keeper_watch_new(void); /* NULL: out of memory */
void keeper_watch_free(struct keeper_watch *watch);

/* Recovers every unsealed attempt whose owner's flock is free, and with a watch those whose lease it has seen unchanged for its time to
 * live; each on its own (R12). Then, with sweep, removes the boundaries of this ledger that no unsealed attempt names (R14). `report` hears a
 * line for each; may be NULL; run_id is "" when no run is known. Costs one query when nothing is unsealed. */
struct keeper_recovery {
	struct keeper *keeper;
	const struct provider_factory *factory;
	const char *const *profiles; /* NULL-terminated: which to sweep; may be NULL without sweep */
	bool sweep;
	bool only_sweep;          /* attempts are left alone */
	bool dry_run;             /* only report what would be done; the counters say how much */
	bool include_quarantined; /* `caisson recover`: yes; before a run: no */
	struct keeper_watch *watch; /* of whoever recovers every few seconds; may be NULL */
	/* Has this process still something to do with an attempt of this run? One of its own that it has not, because the ledger failed
	 * at the wrong moment, is recovered like a dead keeper's. NULL: it always has. */
	bool (*holds)(void *context, const char *run_id);
	void (*report)(void *context, const char *run_id, const char *line);
	void *context;
};
/* A negative code when the ledger or an engine erred: it stood down there (R14), and the rest is for the next recovery. */
int keeper_recover(const struct keeper_recovery *recovery, struct keeper_recovered *ret, struct err *err);
