/* server_internal.h - what the files of the server share. Private to server*.c and slot*.c.
 *
 * One lock for all that more than one thread touches; it is never held while the ledger, a worker or the disk is waited for. */
#pragma once

#include <pthread.h>

#include "keeper/attempt.h"
#include "keeper/queue.h"
#include "keeper/router.h"
#include "keeper/server.h"

enum {
	SLOT_IDLE_MS = 3,         /* without a run, before the worker opens its next boundary ahead: whoever waits for the last one goes first */
	SLOT_RETRY_MS = 5 * 1000, /* after a verification, or the ledger, failed */
	HOUSE_TICK_MS = 1000,     /* what other keepers did to the ledger is seen within this */
	HOUSE_RECOVER_TICKS = 5,
	HOUSE_RESCAN_ROUNDS = 6,  /* of recovery: then all of the queue is read again */
};

/* One attempt under way in a slot, and what it holds on to. Kept while it is quarantined. */
struct passage {
	struct queue_entry entry;
	struct manifest *manifest;
	struct plan *plan;
	struct attempt attempt;
	struct boundary *boundary;
	struct capture *captures[2];
	struct runner_result result;
	bool claimed;
};

enum slot_task { SLOT_STOP, SLOT_VERIFY, SLOT_OPEN, SLOT_DRIVE, SLOT_RECOVER };

struct slot {
	struct server *server;
	int index;
	const char *profile;
	pthread_t thread;

	/* Its own thread's. */
	struct store *store;
	struct boundary_identity left_over;    /* of a verification that could not be emptied */
	bool has_left_over;

	/* Under the lock. */
	pthread_cond_t wake;                   /* there is something to do for its thread */
	struct worker *worker;                 /* replaced by its own thread only; NULL: none */
	struct passage *passage;               /* as the worker; under way, or quarantined */
	enum stats_worker state;
	bool verifying;
	char reason[API_REASON_MAX];           /* why it is quarantined, or unverified */
	int64_t verified_at_ns;                /* CLOCK_BOOTTIME */
	int64_t open_at_ns;                    /* CLOCK_BOOTTIME: when an available one opens ahead; INT64_MAX: it has */
	int64_t retry_at_ns;                   /* CLOCK_BOOTTIME: when an unverified one tries again; of a quarantine INT64_MAX, or when it may */
	char last_owner[QUEUE_PRINCIPAL_SIZE];
	bool has_job;
	struct queue_entry job;
	bool recovery_asked;
	int64_t recoveries_tried;
	int stop_level;                        /* 0, 1 cancel, 2 kill */
	bool shown;                            /* captures may be read along */
};

/* As others see it: who has a job is busy, also when what it will be next is decided already. With the lock. */
static inline enum stats_worker slot_state(const struct slot *slot)
{
	return slot->has_job ? STATS_BUSY : slot->state;
}

struct server {
	struct server_options options;
	struct api_core core;
	pthread_mutex_t lock;
	pthread_cond_t house_wake;             /* there is something to do for the house */
	pthread_cond_t settled;                /* a slot is done with its job, or with a recovery */
	struct slot slots[SERVER_WORKERS_MAX];
	size_t slot_count;
	pthread_t house;
	bool house_runs;
	struct keeper_watch *watch;            /* of the house: the leases of other keepers */

	/* Under the lock. */
	struct queue *queue;
	int64_t queue_read_to;                 /* position in the ledger's queue */
	bool rescan;                           /* something earlier is queued again */
	bool poked;
	struct queue *cancelled;               /* to be sealed without a worker */
	struct queue *damaged;                 /* whose documents cannot be read: shown as such, and driven by nobody */
	bool draining, stopping;
	struct api_stats stats;
};

static inline void server_lock(struct server *server)
{
	pthread_mutex_lock(&server->lock);
}

static inline void server_unlock(struct server *server)
{
	pthread_mutex_unlock(&server->lock);
}

/* Waits for one of the conditions, at most until this moment of CLOCK_MONOTONIC. With the lock. */
void server_wait(struct server *server, pthread_cond_t *condition, int64_t deadline_ns);
void server_init_condition(pthread_cond_t *condition);

/* Has the house look at the queue of the ledger. With the lock. */
void server_wake_house(struct server *server);

/* Gives runs to workers. With the lock. */
void server_dispatch(struct server *server);

/* What would become of a run of this profile and owner now? With the lock. */
enum route server_route(const struct server *server, const char *profile, const char *owner, size_t *ret_index);

/* The format is json_pack's; NULL: no details. Never with the lock. */
void server_log(struct server *server, const char *event, const char *format, ...);

/* A run that nobody can drive for what stands in the ledger; told in the log when it is the first time. Never with the lock. */
void server_set_aside(struct server *server, const struct queue_entry *entry, const char *reason);

void server_tell_changed(struct server *server, const char *run_id);

/* A run came to its end here, or is queued again. Takes the lock. */
void server_count_sealed(struct server *server, const struct passage *passage);

/* passage.c */
int passage_load(struct server *server, const struct queue_entry *entry, struct passage **ret, struct err *err);
/* Binds the run to this attempt in the ledger. ERR_STATE: it is not queued any more. */
int passage_claim(struct server *server, struct passage *passage, struct err *err);
void passage_free(struct passage *passage);

/* slot.c */
void *slot_main(void *slot);
/* Ends its worker, whatever it is doing. With the lock. */
void slot_kill_worker(struct slot *slot);

/* server_core.c */
void server_fill_core(struct server *server);

/* house.c */
void *house_main(void *server);
/* Recovers and, with sweep, sweeps once. */
int house_recover(struct server *server, bool sweep, struct err *err);
/* Reads what is new in the ledger's queue. */
int house_read_queue(struct server *server, struct err *err);
