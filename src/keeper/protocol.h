/* protocol.h - what keeper and worker may say to each other, and when: one table of phases, in the manner of a privilege-separation monitor.
 *
 * The keeper asks, the worker answers each request once, in order; REQUEST_INTERRUPT and REQUEST_FREE have no answer. A request that the
 * table does not allow in the worker's phase, or that cannot be read, ends the worker (and with it its unit).
 *
 * Where nothing is decided in between, the worker may be told to go on: from prepare by way of create to enroll, and from main's exit by
 * way of drain and cleanup to verify. It answers each step as if it had been asked for it, and a step that fails is the last. Nothing
 * goes on to the launch. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "boundary/boundary.h"
#include "capture/capture.h"

enum request_kind {
	REQUEST_OPEN,      /* open a boundary */
	REQUEST_PREPARE,   /* with identity, plan (the message's document) and PREPARE_FDS descriptors */
	REQUEST_CREATE,
	REQUEST_ENROLL,
	REQUEST_LAUNCH,
	REQUEST_OBSERVE,   /* with deadline */
	REQUEST_TERMINATE,
	REQUEST_KILL,
	REQUEST_DRAIN,
	REQUEST_CLEANUP,
	REQUEST_VERIFY,
	REQUEST_COLLECT,   /* with COLLECT_FDS descriptors: a list of artifacts may be longer than a message */
	REQUEST_INTERRUPT, /* wakes a blocked observe by its mere arrival */
	REQUEST_FREE,
	REQUEST_COUNT
};

/* What the worker's boundary has come to. A failed step ends in WORKER_EXITED as well: nothing may start there any more. */
enum worker_phase {
	WORKER_IDLE,
	WORKER_OPENED,
	WORKER_PREPARED,
	WORKER_SUSPENDED,
	WORKER_ENROLLED,
	WORKER_LAUNCHED,
	WORKER_EXITED,  /* main is over, killed, or will never start */
	WORKER_CLEANED, /* cleanup reported success */
	WORKER_PHASE_COUNT
};

/* Descriptors of REQUEST_PREPARE, in this order. */
enum prepare_fd { PREPARE_STDOUT_SPOOL, PREPARE_STDOUT_NOTIFY, PREPARE_STDERR_SPOOL, PREPARE_STDERR_NOTIFY, PREPARE_STORE, PREPARE_FDS };

/* Descriptors of REQUEST_COLLECT: an empty file, into which the worker writes the list as artifact_list_write does. */
enum collect_fd { COLLECT_LIST, COLLECT_FDS };

struct request {
	enum request_kind kind;
	struct boundary_identity identity; /* PREPARE */
	int64_t deadline_ns;               /* OBSERVE */
	int64_t lease_ends_at_ns;          /* what protocol_begins(): CLOCK_BOOTTIME, after which it is not begun any more */
	bool go_on;                        /* PREPARE, OBSERVE: with what follows, unasked */
};

struct reply {
	enum request_kind kind;        /* which one it answers */
	int64_t at_ns;                 /* when, CLOCK_MONOTONIC: it may be read later */
	struct err error;              /* code 0: it succeeded, and the part that belongs to the kind is there */
	struct evidence_list evidence; /* PREPARE, CREATE, ENROLL: lines added, also by a step that failed */
	struct boundary_event event;   /* OBSERVE */
	struct boundary_drain drain;   /* DRAIN */
	struct boundary_usage usage;   /* CLEANUP */
	struct capture_state standard_output, standard_error; /* DRAIN: also when it failed */
};

bool protocol_allows(enum worker_phase phase, enum request_kind kind);
bool protocol_replies(enum request_kind kind);
/* How many descriptors come with a request. */
size_t protocol_fds(enum request_kind kind);

/* Does it make or start something? That needs a lease, and a keeper that lives. */
bool protocol_begins(enum request_kind kind);

/* Was it begun? What came too late for its lease (ERR_FENCED) was not: the phase is what it was, and it may be asked for again. */
bool protocol_begun(const struct reply *reply);

/* The phase behind a request that was allowed. event: what an observe that succeeded reported, else NULL. */
enum worker_phase protocol_next(enum worker_phase phase, enum request_kind kind, bool succeeded, const struct boundary_event *event);

/* What the worker does unasked behind this answer to a request that lets it go on; REQUEST_COUNT: nothing. */
enum request_kind protocol_then(const struct reply *reply);

const char *request_name(enum request_kind kind);
const char *worker_phase_name(enum worker_phase phase);

/* The JSON text of a message, appended. ERR_NO_MEMORY, ERR_LIMIT. */
int request_encode(const struct request *request, struct buf *ret, struct err *err);
int reply_encode(const struct reply *reply, struct buf *ret, struct err *err);

/* ERR_PROTOCOL names what is wrong; *ret is then not to be used. */
int request_decode(const char *text, size_t length, struct request *ret, struct err *err);
int reply_decode(const char *text, size_t length, struct reply *ret, struct err *err);
