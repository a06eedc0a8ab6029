/* boundary.h - the contract of an isolation boundary: one struct of function pointers, each slot with its must and may.
 *
 * A boundary holds every process of one attempt. The runner calls the slots in the order of the lifecycle (lifecycle.h decides it); a
 * backend may rely on that order and must refuse (ERR_STATE) a call out of it. Nothing in here is a descriptor, a pid or a uid: streams
 * and inputs are opaque, identity is a name. Every slot is called from one thread, except `interrupt`.
 *
 * A provider makes boundaries, and cleans up by identity alone what a dead process left. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "manifest/plan.h"

struct artifact_list;
struct capture;
struct store;
struct boundary;

enum {
	EVIDENCE_NAME_MAX = 48,
	EVIDENCE_DETAIL_MAX = 160,
	EVIDENCE_MAX = 96, /* lines of one attempt */
};

/* How well a line is known (contract, "Evidence grades"). */
enum evidence_grade {
	EVIDENCE_OBSERVED, /* read from outside by the worker */
	EVIDENCE_ATTESTED, /* guest init's own return values */
	EVIDENCE_PROBED,   /* the same code path tried for real on this host in this boot */
};

/* One property of the boundary that was verified. Names are dotted and stable: "ns.pid", "limit.memory", "seccomp". */
struct evidence_line {
	char name[EVIDENCE_NAME_MAX];
	enum evidence_grade grade;
	char detail[EVIDENCE_DETAIL_MAX];
};

struct evidence_list {
	struct evidence_line lines[EVIDENCE_MAX];
	size_t count;
};

/* Appends; ERR_LIMIT when full. */
int evidence_add(struct evidence_list *list, const char *name, enum evidence_grade grade, struct err *err, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

const char *evidence_grade_name(enum evidence_grade grade);

/* Who a boundary belongs to: with the ledger's id it names every resource that the boundary creates. */
struct boundary_identity {
	char ledger_id[ID_SIZE];
	char boundary_id[ID_SIZE];
};

/* What prepare needs. All borrowed; valid until the boundary is freed. */
struct boundary_spec {
	struct boundary_identity identity;
	const struct plan *plan;
	struct store *store;             /* where the sealed inputs are */
	struct capture *standard_output; /* the bounded sinks that the backend pumps into */
	struct capture *standard_error;
};

enum boundary_event_kind {
	BOUNDARY_MAIN_EXITED,
	BOUNDARY_LIMIT,       /* a limit was met; the backend has begun to kill the unit already when its grace is 0 */
	BOUNDARY_INTERRUPTED, /* interrupt() was called */
	BOUNDARY_DEADLINE,    /* deadline_ns passed */
	BOUNDARY_LOST,        /* the guest's init or the worker is gone without a report */
};

enum boundary_limit { BOUNDARY_LIMIT_WALL, BOUNDARY_LIMIT_CPU, BOUNDARY_LIMIT_OUTPUT, BOUNDARY_LIMIT_MEMORY };

enum boundary_exit { BOUNDARY_EXITED, BOUNDARY_SIGNALED, BOUNDARY_NOT_EXECUTED };

struct boundary_event {
	enum boundary_event_kind kind;
	int64_t at_ns;               /* CLOCK_MONOTONIC */
	enum boundary_limit limit;
	enum boundary_exit how;      /* MAIN_EXITED */
	int status;                  /* exit code, signal number, or errno */
	int64_t launched_at_ns;      /* MAIN_EXITED: when the gate opened */
	bool killed_by_us;           /* MAIN_EXITED: a kill or TERM of ours was on its way before main ended */
	int descendants_alive;       /* MAIN_EXITED: members besides init at that moment; -1 unknown */
	char detail[EVIDENCE_DETAIL_MAX];
};

struct boundary_drain {
	bool stdout_retained, stderr_retained; /* a writer still held it when the time was over */
};

/* -1 for what could not be read; never 0 instead. */
struct boundary_usage {
	int64_t cpu_user_ns, cpu_system_ns, cpu_total_ns;
	int64_t memory_peak_bytes;              /* of the group, page cache included */
	int64_t memory_peak_anon_sampled_bytes; /* anonymous memory, the most that was seen; -1 when it ended before the first look */
	int64_t pids_peak;
	int64_t oom_kills;
	int survivors_killed;                   /* descendants that cleanup killed */
	bool space_full;                        /* work or output space was found full at the end */
};

#define BOUNDARY_USAGE_UNKNOWN \
	((struct boundary_usage){.cpu_user_ns = -1, .cpu_system_ns = -1, .cpu_total_ns = -1, .memory_peak_bytes = -1, \
	                         .memory_peak_anon_sampled_bytes = -1, .pids_peak = -1, .oom_kills = -1})

/* The slots. All return 0 or a negative err_code. `b` is what the provider's open gave. */
struct boundary_ops {
	/* Must: set every limit of the plan and read it back; check the inputs' digests; make private work and output places.
	 * Must not: create a process that could run guest code. ERR_UNENFORCEABLE names the limit that cannot be enforced here,
	 * ERR_DAMAGED the input whose bytes do not match. May add evidence lines (limits). */
	int (*prepare)(struct boundary *b, const struct boundary_spec *spec, struct evidence_list *evidence, struct err *err);

	/* Must: bring init and main into existence inside the boundary, main waiting at the gate, with no instruction of the guest's
	 * code executed. Must fail when init dies or reports a failed step; the text names the step. */
	int (*create_suspended)(struct boundary *b, struct evidence_list *evidence, struct err *err);

	/* Must: verify membership and every requested property, one line each; the first that does not hold is ERR_UNVERIFIED, its
	 * text beginning with the line's name and ": ". Must not repair anything. */
	int (*enroll)(struct boundary *b, struct evidence_list *evidence, struct err *err);

	/* Must: open the gate, once. Called only after enroll succeeded and the launch intent is durable. */
	int (*launch)(struct boundary *b, struct err *err);

	/* Must: wait for the next event, pumping both streams and enforcing wall, CPU, memory and output limits meanwhile. Each limit is
	 * reported once; main's exit once. deadline_ns: CLOCK_MONOTONIC, INT64_MAX for none. */
	int (*observe)(struct boundary *b, int64_t deadline_ns, struct boundary_event *ret, struct err *err);

	/* Must: send SIGTERM to the guest's processes, by guest init, never by a list of pids from outside. */
	int (*terminate)(struct boundary *b, struct err *err);

	/* Must: begin to kill the whole unit; idempotent. Main's exit is still reported by observe. */
	int (*kill)(struct boundary *b, struct err *err);

	/* Must: read both streams until EOF, at most drain_ms of the plan. Called after main's exit or a kill. */
	int (*drain)(struct boundary *b, struct boundary_drain *ret, struct err *err);

	/* Must: kill every member, read usage, remove every resource that carries the identity, within cleanup_ms. Must be callable in
	 * every state, after any failure, and again. ERR_TIMEOUT or ERR_UNVERIFIED when something is left. */
	int (*cleanup)(struct boundary *b, struct boundary_usage *ret, struct err *err);

	/* Must: by the kernel's or engine's own word: zero members, identity absent. ERR_UNVERIFIED names what is left. */
	int (*verify_empty)(struct boundary *b, struct err *err);

	/* May be NULL: then there are no outputs, and prepare must refuse (ERR_UNSUPPORTED) a plan that requires some. Must: collect the
	 * output place by the plan's rules into the spec's store (artifact/collect.h), what breaks a rule being a result too. Called at
	 * most once, after verify_empty said so: what is needed for it outlives cleanup, until free, and is no resource that carries the
	 * identity. An error is a failure of ours. *ret is empty before, and the caller's (artifact_list_done). */
	int (*collect)(struct boundary *b, struct artifact_list *ret, struct err *err);

	/* May be NULL. ends_at_ns: CLOCK_BOOTTIME. Of what makes or starts something (prepare, create_suspended, launch) nothing may be
	 * begun after that, until told otherwise: it fails with ERR_FENCED. */
	void (*lease)(struct boundary *b, int64_t ends_at_ns);

	/* May be called from a signal handler or another thread: makes the present or next observe return BOUNDARY_INTERRUPTED. */
	void (*interrupt)(struct boundary *b);

	/* Releases memory and descriptors; kills first if something still runs. NULL is allowed. */
	void (*free)(struct boundary *b);
};

struct boundary {
	const struct boundary_ops *ops;
	int64_t done_ns; /* when the step that returned last was done, CLOCK_MONOTONIC; 0: when it returned */

	/* Set by who drives it; may be NULL. Called about every half second, in the same thread, by a slot that waits for somebody else: so a
	 * lease is kept also while gigabytes are hashed. Not by observe, which has a deadline. */
	void (*meanwhile)(void *context);
	void *meanwhile_context;
};

enum { PROBE_REMEDY_MAX = 1024 };

/* A line of `doctor`: what this host can enforce. */
enum probe_result { PROBE_OK, PROBE_DEGRADED, PROBE_MISSING };

struct probe_line {
	char name[EVIDENCE_NAME_MAX];
	enum probe_result result; /* MISSING: a run that needs it is refused; `required` says whether every run needs it */
	bool required;
	char reason[EVIDENCE_DETAIL_MAX];
	char remedy[PROBE_REMEDY_MAX]; /* empty when there is nothing to do */
};

typedef int (*boundary_found_fn)(void *context, const struct boundary_identity *identity);
typedef int (*boundary_probe_fn)(void *context, const struct probe_line *line);

struct boundary_provider_ops {
	const char *kind; /* "linux", "recording", … : the profile's name */

	/* A new boundary for this identity. Effects nothing outside the process yet. */
	int (*open)(void *provider, struct boundary **ret, struct err *err);

	/* Must: kill and remove whatever carries exactly this identity, with nothing known but the identity, and verify that it is gone;
	 * idempotent; absent is success. Must leave foreign or partial identity untouched (ERR_FOREIGN). survivors: processes killed. */
	int (*recover)(void *provider, const struct boundary_identity *identity, int64_t cleanup_ms, int *survivors, struct err *err);

	/* Calls `found` for each boundary of this ledger that exists on the host (a sweep). A non-zero result ends the walk. */
	int (*enumerate)(void *provider, const char *ledger_id, boundary_found_fn found, void *context, struct err *err);

	/* May be NULL. Makes ahead what any next boundary will need and that is gone with the process. For a moment in which nobody waits;
	 * what fails here fails again, and is told, when it is needed. */
	void (*ahead)(void *provider);

	/* Tries what this host can enforce, one line each. */
	int (*probe)(void *provider, boundary_probe_fn line, void *context, struct err *err);
};

struct boundary_provider {
	const struct boundary_provider_ops *ops;
	void *context;
};
