/* server.h - the keeper of many runs (`caisson serve`): a durable queue, a router, workers in slots, and recovery.
 *
 * Each slot is a thread that drives one attempt at a time over a worker of its own; the ledger is one that any thread may use
 * (ledger/shared.h). A thread of its own keeps house: it reads the queue from the ledger, ends what was cancelled while it waited, and
 * recovers what other keepers left. */
#pragma once

#include <jansson.h>

#include "keeper/api/core.h"
#include "keeper/keeper.h"
#include "keeper/nursery.h"

enum {
	SERVER_WORKERS_MAX = 64,
	SERVER_QUEUE_MAX = 100 * 1000,
	SERVER_CLEANUP_MS = 15 * 1000, /* for what a verification left behind */
};

struct server;

struct server_options {
	struct keeper *keeper;                  /* with a shared ledger */
	struct nursery *nursery;
	const struct provider_factory *factory; /* for recoveries */
	const char *const *profiles;            /* NULL-terminated: which to sweep at the start */
	const char *const *workers;             /* the profile of each slot */
	size_t worker_count;
	int per_owner;                          /* runs of one owner that may be under way at a time */
	int64_t queue_max;
	int64_t lease_ttl_ms;

	/* One event, with details that are the callee's (json_decref; may be NULL). From any thread. May be NULL. */
	void (*log)(void *context, const char *event, json_t *details);
	/* A run's state as it is seen from outside may have changed. From any thread; quick. May be NULL. */
	void (*changed)(void *context, const char *run_id);
	void *context;
};

/* Recovers what dead keepers left, sweeps, reads the queue, starts the slots. */
int server_start(const struct server_options *options, struct server **ret, struct err *err);

/* Borrowed; valid until server_free. */
const struct api_core *server_core(const struct server *server);

/* Another thread recorded something in the ledger that may concern the queue: look now. */
void server_poke(struct server *server);

/* From now on: these, whatever the options said. */
void server_adjust(struct server *server, int per_owner, int64_t queue_max);

/* No run is begun any more; those under way go on. */
void server_drain(struct server *server);

/* Waits until none is under way, at most so long. False: some still are. */
bool server_wait_idle(struct server *server, int64_t timeout_ms);

/* Ends the workers that are busy, whose runs are then sealed as interrupted, joins all threads, and frees. NULL is allowed. */
void server_free(struct server *server);
