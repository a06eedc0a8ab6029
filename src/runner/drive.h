/* drive.h - inside the runner: one attempt on its way, and the pieces that carry it. */
#pragma once

#include <jansson.h>

#include "artifact/list.h"
#include "base/clock.h"
#include "lifecycle/lifecycle.h"
#include "runner/runner.h"

enum {
	JOURNAL_MAX = 48,             /* records between two commits */
	RECORD_BODY_MAX = 64 * 1024,  /* canonical text; EVIDENCE_MAX lines fit */
	DRIVE_MOVES_MAX = 128,        /* lifecycle moves of one attempt; a story needs about 20 */
	SETTLE_MS = 100,              /* a run that lasts longer than this gets its `running` into the ledger at once */
	LEASE_SHARE = 3,              /* a lease is renewed when a third of its time is over */
};

/* Records that wait for the next commit. Bodies are owned. */
struct journal {
	struct ledger_record records[JOURNAL_MAX];
	size_t count;
};

/* One stream as receipt and ledger will have it. data: the kept bytes when they are a row (owned); else they are in the store. */
struct drive_stream {
	struct digest sha256;
	struct capture_state state;
	void *data;
};

struct drive {
	/* Given. Pointers are borrowed; those that a recovery lacks are NULL. */
	struct ledger *ledger;
	const struct key *key;
	struct store *store;
	struct boundary *boundary;
	const struct boundary_provider *provider; /* of a recovery */
	int64_t cleanup_ms;                       /* of a recovery */
	const struct plan *plan;                  /* NULL: refused at compilation, or not readable any more */
	struct ledger_attempt attempt;
	const char *principal;
	struct digest manifest, policy, admission;
	bool has_admission;
	struct capture *standard_output, *standard_error;
	const struct runner_request *request;     /* the callbacks; NULL when there are none */

	/* On the way. */
	struct life life;
	struct journal journal;
	struct evidence_list evidence;
	struct boundary_usage usage;
	struct boundary_drain retained;
	struct drive_stream streams[2];           /* stdout, stderr; of what was launched */
	bool holds_store;                         /* from the first object that the seal will name to its commit */
	struct artifact_list artifacts;           /* of a run that would succeed */
	char artifact_failure[LIFE_DETAIL_MAX];   /* why they could not be collected; "" when they could */
	char stream_failure[LIFE_DETAIL_MAX];     /* why the captured bytes cannot be kept; "" when they can */
	int64_t began_ns;                         /* accepted by then, nothing done yet */
	int64_t stepped_ns;                       /* of the latest event */
	int64_t now_ns;                           /* the latest moment that was seen, CLOCK_MONOTONIC */
	int64_t leased_at_ns;                     /* CLOCK_BOOTTIME, from before the lease was given or last renewed */
	int64_t renew_at_ns, lease_ends_at_ns;
	int64_t settle_at_ns, grace_at_ns, give_up_at_ns; /* INT64_MAX: not armed */
	int heard;                                /* how many stops from outside were stepped */
	int64_t cleanup_from_ns;
	int64_t admitted_at_ms, launched_at_ms, exited_at_ms, drain_ms, cleanup_took_ms;
	int64_t wall_ns;                          /* gate to main's stamped exit; -1 */
	struct runner_result result;
};

/* runner.c */
void drive_init(struct drive *drive, int64_t leased_at_ns);
void drive_done(struct drive *drive);
/* From this event to the seal or the quarantine. */
int drive_carry(struct drive *drive, const struct life_event *first, struct err *err);
/* The latest moment known: a boundary's clock may be ahead of ours, never behind. */
int64_t drive_now(struct drive *drive);
/* When the step that the boundary has returned from was done, by its word where that makes sense. */
int64_t drive_done_ns(struct drive *drive);
struct boundary_identity drive_identity(const struct drive *drive);

/* What came of an action, or of listening. CAME_FAILURE: the lease is lost or the ledger failed; err is set, and nothing further
 * may be done by us (R7). */
enum drive_came { CAME_NOTHING, CAME_EVENT, CAME_FAILURE };

/* actions.c: performs one action. */
enum drive_came drive_perform(struct drive *drive, enum life_action action, struct life_event *ret, struct err *err);

/* observe.c: waits for the next event of a running unit; keeps the lease; hears stops. */
enum drive_came drive_observe(struct drive *drive, struct life_event *ret, struct err *err);
/* Is there a stop from outside that has not been stepped yet? A cancellation is durable in the ledger when this returns. */
enum drive_came drive_hear(struct drive *drive, struct life_event *ret, struct err *err);
/* Before a step that may take its time: the lease is renewed if a third of its time is over. CAME_FAILURE: it is lost. */
enum drive_came drive_keep_lease(struct drive *drive, struct err *err);
/* Begins and ends its use. The lease is kept also while the boundary waits. */
void drive_enter_boundary(struct drive *drive, struct boundary *boundary);
void drive_leave_boundary(struct drive *drive);
/* Tells the boundary until when it may begin something. */
void drive_tell_lease(const struct drive *drive);
/* Also one that another process recorded. */
enum drive_came drive_hear_ledger(struct drive *drive, struct life_event *ret, struct err *err);

/* records.c */
void journal_done(struct journal *journal);
/* Takes over a reference of `body`, which may be NULL (out of memory). */
int journal_add(struct journal *journal, const char *kind, json_t *body, struct err *err);
void journal_drop_last(struct journal *journal);
/* Commits what waits, NORMAL, and sets the state column. */
int drive_append(struct drive *drive, struct err *err);
/* The record of an event that the lifecycle took. */
int drive_record(struct drive *drive, const struct life_event *event, struct err *err);

/* bodies.c: canonical JSON of what the records say; NULL when out of memory. */
json_t *body_of_event(const struct drive *drive, const struct life_event *event);
json_t *body_evidence(const struct evidence_list *evidence);
json_t *body_verdict(const struct verdict *verdict);
const char *body_main_end(enum main_end how);

/* restore.c: what the records of a dead keeper still say of an attempt. *ret_principal is the caller's (free). */
int drive_restore(struct drive *drive, char **ret_principal, struct err *err);

/* No sweep of the store from now until the seal is committed. */
int drive_hold_store(struct drive *drive, struct err *err);
void drive_release_store(struct drive *drive);

/* streams.c: digests, and the store for what is no row. What cannot be kept is said in drive->stream_failure. */
int drive_keep_streams(struct drive *drive, struct err *err);

/* outputs.c: collects the outputs of a run that succeeds so far; what is against the rules is said in drive->artifacts, what fails
 * in drive->artifact_failure. */
int drive_collect(struct drive *drive, struct err *err);
void drive_say_rejections(const struct artifact_list *list, char text[static LIFE_DETAIL_MAX]);

/* receipt_fill.c */
void drive_decide(const struct drive *drive, struct verdict *ret);
int drive_seal(struct drive *drive, struct err *err);

/* text.c: details come from errors, and those from names that a guest may have chosen: printable ASCII, whatever came. */
void say(char *to, size_t size, const char *from);
const char *reason_of(int code); /* an error's name; of ERR_LOST the lifecycle's word for it */
struct life_event event_of(enum life_event_kind kind, int64_t at_ns);
struct life_event event_failed(enum life_event_kind kind, int64_t at_ns, const char *reason, const char *detail);
