/* attempt.h - an attempt as its keeper makes it: admitted, named, with the records that it begins with. */
#pragma once

#include "admission/admission.h"
#include "base/buffer.h"
#include "keeper/keeper.h"

enum {
	ATTEMPT_RECORDS_MAX = 3,
	ATTEMPT_RECORD_BYTES_MAX = 16 * 1024,
	ATTEMPT_LEASE_TTL_MS = 30 * 1000,
};

/* What an attempt begins with. Pointers are borrowed. */
struct attempt {
	const struct keeper *keeper;
	const struct manifest *manifest;
	const struct plan *plan; /* NULL: refused at compilation; then there is no admission */
	const char *principal;   /* of the run */
	struct ledger_attempt row;
	struct admission_decision decision;
	int64_t admitted_at_ms;
	int64_t leased_at_ns; /* see runner_request: it is claimed after it was admitted */
};

/* Names a new attempt of this run: fresh ids, our ownership, generation 1. number and slot are the ledger's to say. */
void attempt_name(struct attempt *attempt, const char *run_id, bool attached, int64_t ttl_ms);

/* Policy, epoch and this readiness, decided now. 0 also when the answer is no (decision.admit). */
int attempt_admit(struct attempt *attempt, const struct readiness *readiness, struct err *err);

/* The records of its first transaction: `accepted`; with a plan `admission`; and, admitted, the `intent` for all it will do up to the gate, and
 * at its end, whatever comes between (contract R2). attempt_records_done in every case. */
struct attempt_records {
	struct buf bodies[ATTEMPT_RECORDS_MAX];
	struct ledger_record list[ATTEMPT_RECORDS_MAX];
	size_t count;
};
int attempt_records(const struct attempt *attempt, struct attempt_records *ret, struct err *err);
void attempt_records_done(struct attempt_records *records);
#define ATTEMPT_RECORDS_AUTO __attribute__((cleanup(attempt_records_done)))

/* Seals it as refused, once it is in the ledger: reason and detail, or those of the decision when reason is NULL. */
int attempt_refuse(const struct attempt *attempt, const char *reason, const char *detail, struct runner_result *ret, struct err *err);

/* Seals it as cancelled, once it is in the ledger and before it is driven. */
int attempt_cancel(const struct attempt *attempt, struct runner_result *ret, struct err *err);

/* What the runner needs of it, but for the callbacks. Everything is borrowed. */
struct runner_request attempt_request(const struct attempt *attempt, struct store *store, struct boundary *boundary,
                                      struct capture *const captures[static 2]);

/* Its worker is dead, and with it all it knew. This process goes by the identity, as any recovery would, with its own lease. */
int attempt_recover(const struct attempt *attempt, const struct provider_factory *factory, struct runner_result *ret, struct err *err);

/* A pair of captures as the plan bounds them. Both are the caller's; NULL on failure. */
int attempt_captures(const struct attempt *attempt, struct store *store, struct capture *ret[static 2], struct err *err);
