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

/* A worker: the other end of the channel (worker.h). Forked early, before the ledger is opened, from a small single-threaded process. */
struct worker;

/* Makes a worker serve the providers in the list. The child never returns. store_dir: path of the ledger directory's store. */
int worker_spawn(const struct boundary_provider *const *providers, const char *ledger_dir, struct worker **ret, struct err *err);
/* A boundary that lives in the worker: every call travels over the channel. Freed by boundary->ops->free. profile names the provider. */
int worker_boundary(struct worker *worker, const char *profile, struct boundary **ret, struct err *err);
/* Wakes a blocked observe; async-signal-safe. */
void worker_interrupt(struct worker *worker);
/* Closes the channel and reaps the worker (it kills its unit and exits). NULL is allowed. */
void worker_free(struct worker *worker);

/* Opens the key, registers us as an owner, fills principal. dir, ledger and store are taken over from the caller (wiring opened them). */
int keeper_open(int dir, struct ledger *ledger, struct store *store, struct keeper **ret, struct err *err);
void keeper_free(struct keeper *keeper);

struct keeper_once {
	struct keeper *keeper;
	struct worker *worker;
	const struct manifest *manifest;
	const struct plan *plan;     /* NULL: refused at compilation */
	const char *plan_refusal;    /* then the text; reason `limit_unenforceable` or `unsupported` in plan_reason */
	const char *plan_reason;
	/* Signals heard by the program: how many INT/TERM/HUP so far. The first cancels, the second kills. */
	const volatile sig_atomic_t *signals;
	void (*launched)(void *context, struct capture *standard_output, struct capture *standard_error);
	void *context;
};

struct keeper_result {
	char run_id[ID_SIZE];
	struct runner_result run;
	struct capture *standard_output, *standard_error; /* owned by the caller (capture_free); NULL when refused */
};

/* Seals, admits, accepts, drives. 0 whenever the run reached a terminal or provisional state. */
int keeper_run_once(const struct keeper_once *once, struct keeper_result *ret, struct err *err);

struct keeper_recovered {
	int sealed, quarantined, busy, swept;
};

/* Recovers every unsealed attempt whose owner's flock is free, each on its own (R12), then, with sweep, boundaries of this ledger that no
 * unsealed attempt of a living owner names (R14). `report` hears a line for each; may be NULL. */
struct keeper_recovery {
	struct keeper *keeper;
	const struct boundary_provider *const *providers; /* NULL-terminated */
	bool sweep;
	bool include_quarantined; /* `caisson recover`: yes; before a run: no */
	void (*report)(void *context, const char *run_id, const char *line);
	void *context;
};
int keeper_recover(const struct keeper_recovery *recovery, struct keeper_recovered *ret, struct err *err);
