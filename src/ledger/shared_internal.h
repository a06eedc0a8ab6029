/* shared_internal.h - a call on its way to the ledger's thread and back. Private to shared*.c. */
#pragma once

#include <pthread.h>

#include "ledger/shared.h"

/* The first member of each call's own structure, which holds its arguments, on the stack of the thread that waits. */
struct shared_call {
	int (*run)(struct ledger *inner, struct shared_call *call, struct err *err);
	bool writes, durable;
	bool reads;  /* it only reads, and nothing of its own thread's: the reader may do it */
	bool silent; /* nobody is told of the change */

	/* Of the ledger's thread. */
	struct shared_call *next;
	char run_id[ID_SIZE]; /* what it wrote about; "": nothing */
	int result;
	struct err err;
	bool done;
	pthread_cond_t ended;
};

/* Hands the call over and waits for its end. */
int shared_ask(struct ledger *ledger, struct shared_call *call, struct err *err);

/* The name of the inner ledger, which never changes. */
const char *shared_id(struct ledger *ledger);

extern const struct ledger_ops shared_ops;

/* shared.c */
void shared_close(struct ledger *ledger);

/* shared_writes.c */
int shared_accept(struct ledger *ledger, const struct ledger_run *run, struct ledger_attempt *attempt,
                  const struct ledger_record *records, size_t count, bool durable, struct err *err);
int shared_submit(struct ledger *ledger, struct ledger_run *run, const char *idempotency_key, int64_t queue_max, bool *ret_existing,
                  struct err *err);
int shared_claim(struct ledger *ledger, struct ledger_attempt *attempt, const struct ledger_record *records, size_t count,
                 struct err *err);
int shared_abandon(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation,
                   const struct ledger_record *records, size_t count, struct err *err);
int shared_append(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, const char *state,
                  const struct ledger_record *records, size_t count, bool durable, struct err *err);
int shared_commit_launch_intent(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation,
                                const struct ledger_record *records, size_t count, struct err *err);
int shared_request_cancel(struct ledger *ledger, const char *run_id, bool *ret_sealed, struct err *err);
int shared_renew(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, struct err *err);
int shared_take_over(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t *ret_generation, struct err *err);
int shared_expire(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, int64_t renewals,
                  int64_t *ret_generation, struct err *err);
int shared_seal(struct ledger *ledger, const struct ledger_seal *seal, struct err *err);
