/* stats.c - histograms of durations, and the words of the statistics. */
#include "keeper/api/stats_internal.h"

#include "base/clock.h"

#define NS_PER_US INT64_C(1000)

/* From the fence's commit to a run of an hour. */
const uint64_t stats_bounds_us[STATS_BUCKETS] = {
	500,    1000,   2500,    5000,    10000,    25000,    50000,     100000,
	250000, 500000, 1000000, 2500000, 10000000, 60000000, 600000000, 3600000000,
};

void stats_observe(struct stats_histogram *histogram, int64_t duration_ns)
{
	if (duration_ns < 0)
		return;
	/* Rounded up: what is above a bound is never counted as within it. */
	uint64_t duration_us = (uint64_t)duration_ns / NS_PER_US + (duration_ns % NS_PER_US != 0);
	for (size_t i = 0; i < STATS_BUCKETS; i++)
		if (duration_us <= stats_bounds_us[i]) {
			histogram->buckets[i]++;
			break;
		}
	histogram->count++;
	histogram->sum_us += duration_us;
}

const char *stats_worker_name(enum stats_worker state)
{
	switch (state) {
	case STATS_UNVERIFIED:
		return "unverified";
	case STATS_AVAILABLE:
		return "available";
	case STATS_BUSY:
		return "busy";
	case STATS_QUARANTINED:
		return "quarantined";
	case STATS_WORKER_COUNT:
		break;
	}
	return "?";
}

const char *stats_step_name(enum stats_step step)
{
	switch (step) {
	case STATS_QUEUED:
		return "queued";
	case STATS_PREPARE:
		return "prepare";
	case STATS_LAUNCH:
		return "launch";
	case STATS_RUN:
		return "run";
	case STATS_CLEANUP:
		return "cleanup";
	case STATS_SEAL:
		return "seal";
	case STATS_TOTAL:
		return "total";
	case STATS_STEP_COUNT:
		break;
	}
	return "?";
}
