/* ledger.h - the contract of a ledger: what is recorded, in which transaction, and what may never be undone.
 *
 * A ledger is a directory. ledger.h is one vtable; one suite runs against every store. Constraints that must not depend on code
 * (append-only tables, one launch intent per run, a generation that only grows) are enforced by the store itself.
 *
 * Durability: `durable` marks a transaction that must survive a power cut (contract, "Durability"); the others survive a crash of the
 * process, and each durable commit carries what came before it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/id.h"

enum {
	LEDGER_KIND_MAX = 32,         /* of a record: "accepted", "prepared", "launch_intent", … */
	LEDGER_STREAM_ROW_MAX = 65536, /* a stream up to this many bytes is a row; above, an object of the store */
	LEDGER_STATE_MAX = 16,
	LEDGER_SLOTS_MAX = 1024,
	LEDGER_ATTEMPTS_MAX = 3,      /* of a run */
	LEDGER_IDEMPOTENCY_MAX = 255, /* bytes of a key */
};

struct ledger;

/* A keeper's identity. While it lives it holds an flock on its own file in the ledger's owners/ directory. */
struct ledger_owner {
	char owner_id[ID_SIZE];
	struct digest epoch; /* digest of the runtime epoch */
	char boot_id[40];
	int64_t started_at_ms;
};

struct ledger_run {
	char run_id[ID_SIZE];
	char principal[64];      /* "uid:0" */
	bool attached;           /* `caisson run`: sealed not_launched when its keeper dies before the intent */
	const char *manifest;    /* canonical text */
	const char *plan;        /* canonical text; NULL when compilation was refused */
	struct digest manifest_digest, plan_digest;
	int64_t created_at_ms;
	const char *labels;      /* canonical JSON object */
};

struct ledger_attempt {
	char attempt_id[ID_SIZE];
	char run_id[ID_SIZE];
	int number;                      /* 1..LEDGER_ATTEMPTS_MAX */
	char boundary_id[ID_SIZE];
	char profile[16];
	int slot;
	char owner_id[ID_SIZE];          /* of the lease */
	int64_t generation, renewals, ttl_ms;
	char state[LEDGER_STATE_MAX];    /* life_state_name */
	bool intent;                     /* a launch intent exists for the run */
	bool attached;
	bool owner_alive;                /* filled by queries: its flock is held */
};

/* One record of an attempt's chain: {seq, at, kind, body, prev_digest}, digest over all of it and the attempt's id. */
struct ledger_record {
	int64_t seq, at_ms;
	char kind[LEDGER_KIND_MAX];
	const char *body; /* canonical JSON object */
};

struct ledger_stream {
	const char *name; /* "stdout", "stderr" */
	struct digest sha256;
	int64_t bytes, kept_bytes, dropped_bytes;
	bool drained;
	const void *data;   /* kept bytes when kept_bytes <= LEDGER_STREAM_ROW_MAX, else NULL: they are in the store */
};

/* Its bytes are an object of the store, which is durable before the seal. mode: 0644 or 0755. */
struct ledger_artifact {
	const char *path; /* any bytes but NUL */
	int64_t size_bytes;
	struct digest sha256;
	uint32_t mode;
};

/* An object of the store that a row names. */
struct ledger_reference {
	const char *run_id;
	const char *kind; /* "artifact", or "stream" */
	const char *name; /* its path, or which stream */
	struct digest sha256;
};

/* What the seal commits in one transaction. build() is called inside it, after the stream rows are in and the attempt's state is
 * `sealed`; it gets the numbers that only the transaction knows and must give receipt, signature and key (all owned by the caller). */
struct ledger_seal_numbers {
	int64_t seal_seq;               /* of this key's chain, from 1 */
	struct digest previous;         /* digest of the chain's last seal; the genesis digest for the first */
	struct digest last_record;      /* digest of the attempt's last record */
	int64_t lease_generations;
};

struct ledger_seal_built {
	const char *receipt;            /* canonical JSON, signature included */
	struct digest digest;           /* of the seal: what the next one points to */
	char key[DIGEST_HEX_SIZE];      /* fingerprint of the signing key */
	uint8_t public_key[32];
	uint8_t signature[64];
};

struct ledger_seal {
	const char *attempt_id;
	int64_t generation;             /* fence: must still be the lease's */
	const char *owner_id;
	char key[DIGEST_HEX_SIZE];
	bool cancel_heard;              /* the caller knows of a cancellation of the run, if there is one */
	const struct ledger_record *records; /* appended before the rows record */
	size_t record_count;
	const struct ledger_stream *streams;
	size_t stream_count;
	const struct ledger_artifact *artifacts;
	size_t artifact_count;
	const char *verdict, *reason;   /* copies for lists; derived, recomputed by verify */
	int (*build)(void *context, const struct ledger_seal_numbers *numbers, struct ledger_seal_built *ret, struct err *err);
	void *context;
};

struct ledger_list_query {
	int64_t limit;
	int64_t before;        /* position of the last row that was seen; 0: from the newest on */
	const char *principal; /* NULL: everybody's */
	const char *stem;      /* runs whose id begins so (id_begins); NULL: all */
};

struct ledger_list_row {
	int64_t position;      /* in order of arrival */
	char run_id[ID_SIZE];
	char attempt_id[ID_SIZE]; /* the latest one; "" when there is none yet */
	char principal[64];
	/* `queued` of a run without an attempt, or whose last one was abandoned. */
	char state[LEDGER_STATE_MAX], verdict[24], reason[64];
	int64_t created_at_ms;
	const char *argv0; /* first words of the command, for display */
};

/* A run that waits to be claimed. */
struct ledger_queued {
	int64_t position; /* in order of arrival; a run that is queued again has its old one */
	char run_id[ID_SIZE], principal[64], profile[16]; /* profile: "" when no plan can be read */
	int attempts;     /* abandoned ones */
	bool cancelled;   /* it is claimed all the same, to be sealed */
	int64_t created_at_ms;
};

struct ledger_run_state {
	char principal[64];
	bool attached;
	int64_t created_at_ms;
	int attempts;
	struct ledger_attempt latest; /* when attempts > 0; an abandoned one when the run is queued again */
	bool cancelled, sealed;
	char verdict[24], reason[64]; /* when sealed */
};

typedef int (*ledger_attempt_fn)(void *context, const struct ledger_attempt *attempt);
typedef int (*ledger_list_fn)(void *context, const struct ledger_list_row *row);
typedef int (*ledger_artifact_fn)(void *context, const struct ledger_artifact *artifact);
typedef int (*ledger_reference_fn)(void *context, const struct ledger_reference *reference);
typedef int (*ledger_queued_fn)(void *context, const struct ledger_queued *queued);
typedef int (*ledger_run_fn)(void *context, const char *run_id);
typedef int (*ledger_record_fn)(void *context, const struct ledger_record *record, const struct digest *digest);

struct ledger_ops {
	/* Identity of the ledger: "led-…". */
	const char *(*id)(struct ledger *ledger);

	/* Makes this process known as a keeper: takes the flock of its own file, then records the row. Once per process. */
	int (*register_owner)(struct ledger *ledger, const struct ledger_owner *owner, struct err *err);

	/* Accepts a run together with its first attempt, its lease (generation 1) and its first record(s), in one transaction. The
	 * boundary's binding is therefore recorded before anything is made. attempt->slot is assigned: the lowest that no unsealed
	 * attempt of this profile holds, so that a quarantined slot stays taken. ERR_BUSY when all LEDGER_SLOTS_MAX are. */
	int (*accept)(struct ledger *ledger, const struct ledger_run *run, struct ledger_attempt *attempt,
	              const struct ledger_record *records, size_t count, bool durable, struct err *err);

	/* Accepts a detached run without an attempt: it is queued. Durable. With a key: when the principal has submitted a run under it, that
	 * one's id is written to run->run_id and *ret_existing is set, if the manifests are the same; ERR_CONFLICT if not. ERR_LIMIT
	 * ("queue_full") when queue_max runs are queued. ERR_INVALID: an attached run, or a key of 0 or more than
	 * LEDGER_IDEMPOTENCY_MAX bytes. */
	int (*submit)(struct ledger *ledger, struct ledger_run *run, const char *idempotency_key, int64_t queue_max, bool *ret_existing,
	              struct err *err);

	/* The next attempt of a queued run, its lease (generation 1) and its first record(s), in one transaction. Given: run_id, the new
	 * ids, profile, owner, ttl_ms, state. Filled: number, slot (as by accept), generation, renewals. ERR_NOT_FOUND; ERR_STATE when the
	 * run is not queued; ERR_BUSY when all slots are taken. */
	int (*claim)(struct ledger *ledger, struct ledger_attempt *attempt, const struct ledger_record *records, size_t count,
	             struct err *err);

	/* Ends an attempt without a launch intent, and without a receipt: state `abandoned`, final; its slot is free and its run is queued
	 * again. Fenced. The last record's kind is "abandoned", and none follows it. ERR_CONFLICT when the run has its launch intent,
	 * ERR_STATE when it is attached, ERR_LIMIT when it is the last attempt that the run may have: that one is sealed. */
	int (*abandon)(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation,
	               const struct ledger_record *records, size_t count, struct err *err);

	/* Queued runs with a position behind `after`, in order. */
	int (*queued)(struct ledger *ledger, int64_t after, int64_t limit, ledger_queued_fn fn, void *context, struct err *err);

	/* Appends records and sets the attempt's state, fenced by (owner, generation): ERR_FENCED when the lease is not ours any more.
	 * seq is assigned by the ledger. state NULL leaves it. */
	int (*append)(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, const char *state,
	              const struct ledger_record *records, size_t count, bool durable, struct err *err);

	/* As append, and inserts the run's launch intent, durable. ERR_CONFLICT when the run has one, ERR_FENCED, ERR_STATE when a
	 * cancellation is recorded. */
	int (*commit_launch_intent)(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation,
	                            const struct ledger_record *records, size_t count, struct err *err);

	/* Sticky and durable; idempotent. *ret_sealed: it changes nothing any more. ERR_NOT_FOUND. */
	int (*request_cancel)(struct ledger *ledger, const char *run_id, bool *ret_sealed, struct err *err);
	int (*cancel_requested)(struct ledger *ledger, const char *run_id, bool *ret, struct err *err);

	/* Lease: renewals + 1. ERR_FENCED. */
	int (*renew)(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, struct err *err);

	/* Takes over the lease of an attempt whose owner's flock is free: generation + 1, our owner. ERR_BUSY when the owner lives or
	 * somebody else was faster. */
	int (*take_over)(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t *ret_generation, struct err *err);

	/* Takes a lease over although its owner's flock is held, because the caller has itself seen (generation, renewals) unchanged for its
	 * ttl_ms (lease/lease.h): such an owner is stopped. ERR_BUSY when they are not the same any more, or the attempt is over. */
	int (*expire)(struct ledger *ledger, const char *attempt_id, const char *owner_id, int64_t generation, int64_t renewals,
	              int64_t *ret_generation, struct err *err);

	/* The seal (see struct ledger_seal): records, streams, state, rows record, receipt and seal chain, one durable transaction.
	 * ERR_CONFLICT when a cancellation is recorded that the caller has not heard of: it came before the seal, so it counts (R8). */
	int (*seal)(struct ledger *ledger, const struct ledger_seal *seal, struct err *err);

	/* Every row of every table as one JSON object a call, in primary-key order, blobs as "sha256:…" of their bytes: for verification,
	 * which must not trust the store's own constraints. `table` comes with it. */
	int (*dump)(struct ledger *ledger, int (*row)(void *context, const char *table, const char *json), void *context, struct err *err);

	/* Attempts that are neither sealed nor abandoned, owner_alive filled in. */
	int (*unsealed)(struct ledger *ledger, ledger_attempt_fn fn, void *context, struct err *err);
	/* All attempts of a run, in order, owner_alive filled in. */
	int (*attempts)(struct ledger *ledger, const char *run_id, ledger_attempt_fn fn, void *context, struct err *err);
	/* Runs that are not sealed, queued ones too, as of one moment, in no order. */
	int (*open_runs)(struct ledger *ledger, ledger_run_fn fn, void *context, struct err *err);
	/* ERR_NOT_FOUND. */
	int (*run_state)(struct ledger *ledger, const char *run_id, struct ledger_run_state *ret, struct err *err);

	/* The newest first. */
	int (*list)(struct ledger *ledger, const struct ledger_list_query *query, ledger_list_fn fn, void *context, struct err *err);
	/* Text is the caller's (free). NULL receipt when not sealed. run_id may be an unambiguous beginning of one (id_begins), or
	 * "latest"; the full id is written to ret_run_id. */
	int (*find_run)(struct ledger *ledger, const char *name, char ret_run_id[static ID_SIZE], struct err *err);
	int (*receipt)(struct ledger *ledger, const char *run_id, char **ret_receipt, struct err *err);
	int (*manifest)(struct ledger *ledger, const char *run_id, char **ret_manifest, char **ret_plan, struct err *err);
	/* *ret_data is the caller's (free), NULL with *ret_in_store set when the bytes are an object of the store. */
	int (*stream)(struct ledger *ledger, const char *run_id, const char *name, struct ledger_stream *ret, void **ret_data,
	              bool *ret_in_store, struct err *err);
	/* In the order of their paths. Nothing for a run that has none. */
	int (*artifacts)(struct ledger *ledger, const char *run_id, ledger_artifact_fn fn, void *context, struct err *err);
	/* Every object of the store that a row names, in no order. A non-zero result of fn ends the walk and is passed on; of artifacts
	 * too. The inputs in plans are not among them. */
	int (*references)(struct ledger *ledger, ledger_reference_fn fn, void *context, struct err *err);
	int (*records)(struct ledger *ledger, const char *attempt_id, ledger_record_fn fn, void *context, struct err *err);

	/* May be NULL. For a moment in which the caller waits for something else: gets ready what the coming intent and seal will need, and
	 * writes back what is due. Nothing that anybody could see changes; what fails here fails again, and is told, when it matters. */
	void (*warm)(struct ledger *ledger);

	/* May be NULL, all three. Between begin and end each call is whole or absent by itself, and all that succeeded are committed together
	 * by end: nobody may be told of a success, nor act on it, before that. An error of end: none of them took place. durable: whether a
	 * call within it may ask for that (ERR_STATE if it does all the same). */
	int (*batch_begin)(struct ledger *ledger, bool durable, struct err *err);
	int (*batch_end)(struct ledger *ledger, struct err *err);
	/* From now on touched is called, with the run's id, within each call that writes about a run; it may not call the ledger. */
	void (*watch)(struct ledger *ledger, void (*touched)(void *context, const char *run_id), void *context);

	/* May be NULL. As close, for a process that ends now: what is due is written back and the owner released, and memory, locks and
	 * descriptors are left to the kernel. */
	void (*leave)(struct ledger *ledger);
	void (*close)(struct ledger *ledger);
};

struct ledger {
	const struct ledger_ops *ops;
};
