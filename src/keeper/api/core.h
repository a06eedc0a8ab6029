/* core.h - what the API needs of the keeper that it belongs to: a few calls, each of them safe from any thread.
 *
 * What is recorded the API reads from the ledger; here is what is decided now, and what only lives in memory. The API checks who
 * may ask; the core does not. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "capture/capture.h"
#include "keeper/api/stats.h"
#include "manifest/manifest.h"

enum {
	API_REASON_MAX = 128,
	API_PRINCIPAL_MAX = 64, /* "uid:1000" */
};

struct api_submission {
	const char *principal;
	const char *idempotency_key;      /* NULL: none */
	const struct manifest *manifest;  /* its inputs and stdin are texts and digests, never sources */
};

struct api_submitted {
	char run_id[ID_SIZE];
	bool existing; /* the same key and manifest came before */
};

/* The keeper's own view of a run that is not sealed. */
struct api_live {
	bool driven;                 /* it is being driven here, or what a lost worker left of it is being recovered */
	bool paused;                 /* queued, and no worker may take it, or can */
	char reason[API_REASON_MAX]; /* why: "no_safe_worker", or "damaged": its documents cannot be read; "" otherwise */
};

struct api_worker {
	int slot;
	const char *profile;
	enum stats_worker state;
	const char *reason;    /* of a quarantine, in public words; "" otherwise */
	const char *run_id;    /* what it drives; "" for none */
	const char *principal; /* whose that is; "" for none */
};

/* Borrowed for the call. A non-zero result ends the walk and is passed on. */
typedef int (*api_worker_fn)(void *context, const struct api_worker *worker);

struct api_core {
	/* Seals the inputs, compiles, and queues durably. ERR_CONFLICT: the key was used for another manifest. ERR_LIMIT: the queue
	 * is full. ERR_INVALID names the JSON path; ERR_NOT_FOUND an input whose digest is not in the store; ERR_UNENFORCEABLE,
	 * ERR_UNSUPPORTED. */
	int (*submit)(void *context, const struct api_submission *submission, struct api_submitted *ret, struct err *err);

	/* Durable when it returns; then it acts. *ret_sealed: it changes nothing any more. */
	int (*cancel)(void *context, const char *run_id, bool *ret_sealed, struct err *err);

	/* ERR_NOT_FOUND when the run is not one that this keeper queues or drives. */
	int (*live)(void *context, const char *run_id, struct api_live *ret, struct err *err);

	/* An object of the caller's own (capture_free) to read along with a stream, which is 0 for stdout and 1 for stderr, of a
	 * run that is being driven here. ERR_NOT_FOUND when it is not, or has none yet. */
	int (*stream)(void *context, const char *run_id, int stream, struct capture **ret, struct err *err);

	int (*workers)(void *context, api_worker_fn fn, void *fn_context, struct err *err);

	/* Recovers the slot's boundary by a new worker, and waits for it. *ret_recovered: it is available again. ERR_NOT_FOUND: no
	 * such slot; ERR_STATE: it is not quarantined. */
	int (*recover)(void *context, int slot, bool *ret_recovered, struct err *err);

	/* Would a run of some profile get a verified worker now? reason: why not. */
	bool (*ready)(void *context, char reason[static API_REASON_MAX]);

	void (*stats)(void *context, struct api_stats *ret);

	/* One line for the keeper's log: what a client is not told. */
	void (*log)(void *context, const char *line);

	void *context;
};
