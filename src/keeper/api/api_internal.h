/* api_internal.h - what the files of the API share: connections, the calls that come on them, and who holds what. Private to this
 * folder.
 *
 * A connection is at any time in one place: armed in the epoll (IDLE), in the queue (READY), with one thread (BUSY), or waiting for
 * a change of its run (PARKED, and armed too: what becomes readable then is the end). It is freed by the loop alone, when no event
 * can name it. */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/json.h"
#include "keeper/api/api.h"
#include "keeper/channel.h"

enum {
	API_BUCKETS = 256,         /* of runs, by their id */
	API_FEEDS = 16,            /* runs whose events are kept at hand */
	API_LOOK_AGAIN_MS = 1000,  /* for what another keeper of this ledger did */
	API_FOLLOW_MS = 50,        /* for output, which nothing announces */
	API_BODY_MAX = 8 * 1024 * 1024,
	API_EVENTS_BYTES = 32 * 1024, /* of one answer, unless a single event is longer */
};

struct connection;

struct peer {
	uid_t uid;
	char principal[API_PRINCIPAL_MAX];
	bool admin; /* root, or the keeper's own user: sees all */
};

/* What is answered. All of it is the call's. */
struct reply {
	json_t *ok;          /* members besides the body */
	struct buf body;
	int fd;              /* -1: the body is in `body` */
	int64_t offset, bytes; /* of fd */
};

/* One request, from its message to its answer; parked and taken up again as often as it takes. */
struct call {
	struct api *api;
	const struct peer *peer;
	const struct operation *operation; /* NULL: there is no call */
	json_t *arguments;
	const char *document; /* of the message: gone when the call is taken up again, as is fd */
	size_t document_length;
	int fd;
	int *spool;           /* the connection's */
	char run_id[ID_SIZE]; /* the run whose changes it waits for */
	uint64_t seen;        /* how often that had changed when it looked */
	bool woken;           /* first, or by a change: not just by time */
	bool refused;         /* by us: a permission that the kernel did not give us is another thing, and not told */
	int64_t deadline_ns;  /* 0: not set yet */
	int64_t again_ms;     /* looks again after so long without a change */
	struct capture *capture; /* a live stream, across parking */
	struct reply reply;
};

#define CALL_NONE ((struct call){.operation = NULL, .fd = -1, .reply = {.fd = -1}})

enum { CALL_PARK = 1 };

/* 0: answered. CALL_PARK: nothing to say yet, and time left. */
struct operation {
	const char *name;
	const char *const *keys; /* of its message, besides "op"; NULL-terminated */
	int (*handle)(struct call *call, struct err *err);
};

enum connection_state { CONNECTION_IDLE, CONNECTION_READY, CONNECTION_BUSY, CONNECTION_PARKED, CONNECTION_DEAD };

struct connection {
	struct connection *next, *previous;           /* of all */
	struct connection *place_next, **place;       /* in the queue, or among the parked of a bucket */
	int channel;
	struct peer peer;
	enum connection_state state;
	int64_t look_at_ns;                           /* of a parked one */
	struct call call;
	int spool;                                    /* an object that is being sent; -1 */
};

struct bucket {
	uint64_t changes;
	struct connection *parked;
};

struct feed;
struct feed_slot {
	pthread_mutex_t lock;
	struct feed *feed;
};

struct listener {
	int fd;
	char *path;
	dev_t device;
	ino_t inode;
};

/* The front as a process. */
struct front_process {
	int intake; /* -1: there is none */
	int pidfd;
	int64_t started_at_ns;
};

struct api {
	struct api_options options;
	uid_t own_uid;
	struct listener listener;
	struct front_process front;
	int epoll, wake;
	pthread_t loop, threads[API_THREADS];
	bool loop_runs;
	size_t thread_count;
	struct feed_slot feeds[API_FEEDS];

	pthread_mutex_t lock; /* for all below */
	pthread_cond_t work;
	bool stopping;
	struct connection *all, *dead, *queue, **queue_end;
	size_t connection_count, parked_count, upload_count;
	int64_t next_look_ns;      /* when the loop looks at the parked, at the latest */
	struct bucket buckets[API_BUCKETS];
};

/* listen.c */
int listener_open(const char *path, struct listener *ret, struct err *err);
void listener_close(struct listener *listener);
/* Accepts what is there, and hands it to the front. ERR_LOST: the front does not listen. Another error: descriptors or memory are
 * short, and who waits goes on waiting. */
int listener_accept(struct api *api, struct err *err);

/* front_process.c */
int front_start(struct api *api, struct err *err);
/* Closes the intake, by which it ends, and waits for that; after a moment it is killed. */
void front_end(struct front_process *front);

/* loop.c */
int loop_prepare(struct api *api, struct err *err);
void *loop_run(void *api);
void loop_wake(struct api *api);

/* schedule.c */
/* Takes the channel over on success. ERR_NO_MEMORY. */
int schedule_add(struct api *api, int channel, const struct peer *peer, struct err *err);
/* For the loop: something came on an armed connection. */
void schedule_readable(struct api *api, struct connection *connection);
/* For the loop: puts those whose time has come into the queue. When the next one's comes; INT64_MAX: none is parked. */
int64_t schedule_due(struct api *api, int64_t now_ns);
void schedule_free_dead(struct api *api);
void schedule_close_all(struct api *api);
/* For a thread: waits for a connection to serve; NULL when the API stops. */
struct connection *schedule_next(struct api *api);
/* And what becomes of it. */
void schedule_idle(struct api *api, struct connection *connection);
void schedule_park(struct api *api, struct connection *connection);
void schedule_drop(struct api *api, struct connection *connection);
/* How often this run has changed. Before it is looked at: what changes afterwards is then not missed. */
uint64_t schedule_changes(struct api *api, const char *run_id);

/* serve.c */
void *serve_run(void *api);
void call_done(struct call *call);

/* reply.c: sends what the call has, or the error. What a client is not told goes to the log. */
int reply_send(struct connection *connection, int result, const struct err *error, struct err *err);
void reply_done(struct reply *reply);
/* Sets the body to a value's canonical form and a line feed; takes the reference. */
int reply_json(struct call *call, json_t *body, struct err *err);

/* access.c */
bool peer_may_see(const struct peer *peer, const char *principal);
/* Reads the argument "run", remembers it in call->run_id, and reads its state. ERR_NOT_FOUND also for what is somebody else's. */
int access_run(struct call *call, struct ledger_run_state *ret, struct err *err);
int access_run_id(struct call *call, struct err *err);
int access_refused(struct err *err);
/* ERR_PERMISSION, in words for the client. */
int access_denied(struct call *call, const char *why, struct err *err);
int argument_number(const struct call *call, const char *name, int64_t max, int64_t *ret, struct err *err);
/* NULL when absent. */
int argument_text(const struct call *call, const char *name, size_t max, const char **ret, struct err *err);
/* Is the time over that the argument "wait_ms" gives? */
int argument_waits(struct call *call, bool *ret_over, struct err *err);

/* public.c: what of a record anybody may know who may see the run. NULL when out of memory. */
json_t *public_record(const struct ledger_record *record);

/* feed.c: the events of a run as text, read once for all who wait for the same. feed_put gives it back. */
struct feed_piece {
	int64_t attempt, seq;
	bool end;
};
int feed_get(struct api *api, const char *run_id, struct feed **ret, struct err *err);
void feed_put(struct feed *feed);
uint64_t feed_changes(const struct feed *feed);
const char *feed_principal(const struct feed *feed);
/* Appends events behind (attempt, seq) of *position, which moves on. */
int feed_read(const struct feed *feed, struct feed_piece *position, struct buf *ret, struct err *err);
void feeds_init(struct api *api);
void feeds_done(struct api *api);

/* The operations, one file for each kind. */
extern const struct operation operation_submit, operation_list, operation_run, operation_cancel, operation_logs,
	operation_artifacts,
	operation_artifact, operation_events, operation_object_begin, operation_object_seal, operation_tree_seal,
	operation_workers, operation_recover, operation_health, operation_readiness, operation_metrics;
