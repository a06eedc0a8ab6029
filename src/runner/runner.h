/* runner.h - the one conveyor: carries an attempt through the lifecycle over any boundary and any ledger.
 *
 * It holds the lease, steps the lifecycle (lifecycle.h), performs its actions, appends records, and seals. It knows no concrete backend.
 * Order (contract R2): an effect's intent is in the ledger before the effect; an observation may wait for the next commit. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "boundary/boundary.h"
#include "capture/capture.h"
#include "evidence/key.h"
#include "ledger/ledger.h"
#include "lifecycle/verdict.h"
#include "manifest/plan.h"

struct runner_request {
	struct ledger *ledger;
	const struct key *key;
	struct store *store;
	struct boundary *boundary;   /* opened, not yet prepared; the runner does not free it */
	const struct plan *plan;
	struct ledger_attempt attempt; /* as accepted: ids, slot, owner, generation; state `queued` */
	const char *principal;
	struct digest admission;
	int64_t admitted_at_ms;
	int64_t leased_at_ns;        /* CLOCK_BOOTTIME, from before the lease was given: nobody else may have it within ttl_ms of that */
	struct capture *standard_output, *standard_error;

	/* What the keeper heard from outside. Polled after each BOUNDARY_INTERRUPTED and before each step: 0 nothing, 1 cancel, 2 kill now. */
	int (*stop_requested)(void *context);
	void (*launched)(void *context);                  /* the gate is open; may be NULL */
	void (*lasts)(void *context);                     /* it has been open for 100 ms: a run that somebody may watch; may be NULL */
	void (*provisional)(void *context, const struct verdict *verdict); /* the attempt is quarantined; may be NULL */
	void (*released)(void *context); /* the seal alone is left to do: the boundary is not used any more, and may be freed; may be NULL */
	void *context;
};

/* Moments of CLOCK_MONOTONIC, nanoseconds; 0 for what did not happen. */
struct runner_times {
	int64_t begun_ns, enrolled_ns, launched_ns, exited_ns, empty_ns, sealed_ns;
};

struct runner_result {
	struct verdict verdict;
	bool provisional;            /* quarantined: no receipt yet */
	bool requeued;               /* abandoned (runner_recover): no receipt; the verdict says why, and is not its run's */
	char *receipt;               /* canonical JSON (free); NULL when provisional or requeued */
	struct boundary_usage usage;
	struct runner_times times;
};

/* Drives the attempt to its seal or its quarantine. 0 when one of both was reached, whatever the verdict; a negative code only when the
 * ledger itself failed (nothing is lost: the next recovery converges). */
int runner_drive(const struct runner_request *request, struct runner_result *ret, struct err *err);

/* Seals an attempt that never reached a boundary: refused at admission (reason, detail). */
struct runner_refusal {
	struct ledger *ledger;
	const struct key *key;
	const struct plan *plan;     /* NULL when the plan itself was refused */
	struct ledger_attempt attempt;
	struct digest manifest, policy, admission;
	const char *principal, *reason, *detail;
};
int runner_refuse(const struct runner_refusal *refusal, struct runner_result *ret, struct err *err);

/* The same for one whose run was cancelled before it was driven; reason and detail are not used. */
int runner_cancel(const struct runner_refusal *refusal, struct runner_result *ret, struct err *err);

/* Recovers one unsealed attempt of a dead owner, or of our own when its worker is dead: takes its lease over (generation + 1; our own is
 * ours already), restores from its records what its life was (the principal from `accepted`, the digest of the admission from
 * `admission`, the rest from what the runner wrote), cleans up by identity through the provider,
 * verifies, and ends it: without a launch intent that of a detached run is abandoned and its run queued again, if it is not the last that
 * may be, and sealed as `not_launched` else; `cancelled` when a cancellation is recorded; with an intent `interrupted`, or what is
 * recorded. An attempt that cannot be verified empty stays, or becomes, quarantined. ERR_BUSY: somebody else owns it. */
struct runner_recovery {
	struct ledger *ledger;
	const struct key *key;
	const struct boundary_provider *provider;
	const char *owner_id;        /* ours */
	struct ledger_attempt attempt;
	/* Its owner lives, but the caller has seen (generation, renewals) as they are in `attempt` for its ttl_ms: it is stopped. */
	bool expired;
	int64_t cleanup_ms;
};
int runner_recover(const struct runner_recovery *recovery, struct runner_result *ret, struct err *err);
