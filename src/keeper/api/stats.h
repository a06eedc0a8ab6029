/* stats.h - what the keeper counts, for /metrics. The core fills it in; metrics.c renders it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lifecycle/verdict.h"

/* The steps whose durations are told. */
enum stats_step {
	STATS_QUEUED,  /* submission to claim */
	STATS_PREPARE, /* claim to enrolled */
	STATS_LAUNCH,  /* the launch intent's commit and the gate */
	STATS_RUN,     /* gate to main's exit */
	STATS_CLEANUP, /* to verified empty */
	STATS_SEAL,    /* the seal's commit */
	STATS_TOTAL,   /* submission to receipt */
	STATS_STEP_COUNT
};

enum { STATS_BUCKETS = 16 }; /* upper bounds in stats_bounds_us; what is above the last is in count alone */

struct stats_histogram {
	uint64_t buckets[STATS_BUCKETS]; /* not cumulative */
	uint64_t count;
	uint64_t sum_us;
};

enum stats_worker { STATS_UNVERIFIED, STATS_AVAILABLE, STATS_BUSY, STATS_QUARANTINED, STATS_WORKER_COUNT };

/* Counters since the keeper's start, unless they say "now". */
struct api_stats {
	uint64_t submitted, cancelled;
	uint64_t verdicts[VERDICT_COUNT];         /* sealed runs */
	struct stats_histogram steps[STATS_STEP_COUNT];
	uint64_t queued, paused, running;         /* now */
	uint64_t workers[STATS_WORKER_COUNT];     /* now */
	uint64_t quarantines, recoveries;         /* attempts that came into quarantine; attempts recovered */
	uint64_t dropped_bytes;                   /* of streams, beyond their limits */
	uint64_t ledger_commits, ledger_fsyncs;   /* transactions; those of them that were made durable */
};

/* Adds one duration; of a negative one, which is not known, nothing. */
void stats_observe(struct stats_histogram *histogram, int64_t duration_ns);

/* The word for a worker's state: "available". "?" outside the enum. */
const char *stats_worker_name(enum stats_worker state);
