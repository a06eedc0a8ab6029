/* model.h - the inside of the recording boundary: units in a world, their virtual time, and the events of a script. */
#pragma once

#include <signal.h>

#include "boundary/recording/recording.h"
#include "base/buffer.h"
#include "capture/capture.h"

struct recording_descendant {
	bool alive, holds_stdout, holds_stderr;
};

/* One boundary_id on the modelled host. */
struct recording_unit {
	struct boundary_identity identity;
	bool exists, quarantined;
	bool main_alive;
	struct recording_descendant descendants[RECORDING_DESCENDANTS_MAX];
	int descendant_count;
	int launches;
	const struct recording_script *script;
	int cleanup_failures_left, verify_failures_left, recover_failures_left;
};

struct recording_world {
	struct recording_unit *units[RECORDING_UNITS_MAX];
	size_t unit_count;
	const struct recording_script *script;
	struct buf trace;
	char violation[RECORDING_VIOLATION_MAX];
};

/* How far the calls on one boundary object have come. FAILED: a step before launch failed, or the worker is gone. */
enum recording_phase {
	PHASE_OPENED,
	PHASE_PREPARED,
	PHASE_SUSPENDED,
	PHASE_ENROLLED,
	PHASE_LAUNCHED,
	PHASE_EXITED, /* main's exit was reported, or the unit was killed or lost */
	PHASE_FAILED,
	PHASE_CLEANED,
	PHASE_EMPTY,
	PHASE_COLLECTED,
	PHASE_COUNT
};

/* The object that a provider's open gives. */
struct recording_boundary {
	struct boundary base;
	struct recording_world *world;
	struct recording_unit *unit; /* NULL before prepare */
	const struct recording_script *script;
	const struct plan *plan;
	struct store *store;
	struct capture *standard_output, *standard_error;
	enum recording_phase phase;
	volatile sig_atomic_t interrupted;
	bool worker_lost;

	int64_t launched_at_ns, now_ns; /* virtual */
	size_t next_event;
	int64_t cpu_ns, oom_kills, killed_at_ns; /* killed_at_ns: -1 when no kill or TERM of ours was sent */
	bool wall_reported, cpu_reported, output_reported, spool_full;
	bool exit_pending, exit_reported;
	struct boundary_event exit; /* what main's end will be reported as */
	int survivors_killed, descendants_peak;
};

/* units.c */
struct recording_unit *recording_unit_find(const struct recording_world *world, const struct boundary_identity *identity);
/* Is this boundary there as another ledger's? Partial identity, which nobody touches (R10). */
bool recording_unit_is_foreign(const struct recording_world *world, const struct boundary_identity *identity);
int recording_unit_make(struct recording_world *world, const struct boundary_identity *identity, struct recording_unit **ret,
                        struct err *err);
int recording_unit_alive(const struct recording_unit *unit); /* descendants */
int recording_unit_kill(struct recording_unit *unit);        /* main and all; the number of descendants that were alive */
void recording_trace(struct recording_world *world, const char *step, const char *outcome);
void recording_violate(struct recording_world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* model.c */
enum recording_next { NEXT_EVENT, NEXT_NOTHING }; /* is there something to report? */

/* Lets the script run until something must be reported, or until `until_ns`. */
int recording_advance(struct recording_boundary *b, int64_t until_ns, enum recording_next *ret_next, struct boundary_event *ret,
                      struct err *err);
/* Main and all die by our hand now. */
void recording_kill_now(struct recording_boundary *b);
void recording_end_main(struct recording_boundary *b, enum boundary_exit how, int status, bool killed_by_us);

/* outputs.c: puts what the script leaves into the store, by the rules for what is required. */
int recording_collect(const struct recording_boundary *b, struct artifact_list *ret, struct err *err);

/* slots.c */
extern const struct boundary_ops recording_ops;
