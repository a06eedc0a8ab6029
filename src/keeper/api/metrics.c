/* metrics.c - the statistics as Prometheus text. */
#include <inttypes.h>

#include "keeper/api/stats_internal.h"

#define US_PER_S 1e6

struct metric {
	const char *name, *kind, *help;
	uint64_t value;
};

static int put_head(struct buf *ret, const char *name, const char *kind, const char *help, struct err *err)
{
	return buf_printf(ret, err, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static int put_plain(const struct metric *metric, struct buf *ret, struct err *err)
{
	int result = put_head(ret, metric->name, metric->kind, metric->help, err);
	return result ? result : buf_printf(ret, err, "%s %" PRIu64 "\n", metric->name, metric->value);
}

static int put_verdicts(const struct api_stats *stats, struct buf *ret, struct err *err)
{
	int result = put_head(ret, "caisson_runs_sealed_total", "counter", "Runs sealed, by verdict.", err);
	for (int i = 0; result == 0 && i < VERDICT_COUNT; i++)
		result = buf_printf(ret, err, "caisson_runs_sealed_total{verdict=\"%s\"} %" PRIu64 "\n",
		                    verdict_name((enum verdict_kind)i), stats->verdicts[i]);
	return result;
}

static int put_workers(const struct api_stats *stats, struct buf *ret, struct err *err)
{
	int result = put_head(ret, "caisson_workers", "gauge", "Workers, by state.", err);
	for (int i = 0; result == 0 && i < STATS_WORKER_COUNT; i++)
		result = buf_printf(ret, err, "caisson_workers{state=\"%s\"} %" PRIu64 "\n",
		                    stats_worker_name((enum stats_worker)i), stats->workers[i]);
	return result;
}

static int put_step(const char *step, const struct stats_histogram *histogram, struct buf *ret, struct err *err)
{
	uint64_t below = 0;
	int result = 0;
	for (size_t i = 0; result == 0 && i < STATS_BUCKETS; i++) {
		below += histogram->buckets[i];
		result = buf_printf(ret, err, "caisson_step_seconds_bucket{step=\"%s\",le=\"%g\"} %" PRIu64 "\n", step,
		                    (double)stats_bounds_us[i] / US_PER_S, below);
	}
	if (result == 0)
		result = buf_printf(ret, err,
		                    "caisson_step_seconds_bucket{step=\"%s\",le=\"+Inf\"} %" PRIu64 "\n"
		                    "caisson_step_seconds_sum{step=\"%s\"} %.6f\n"
		                    "caisson_step_seconds_count{step=\"%s\"} %" PRIu64 "\n",
		                    step, histogram->count, step, (double)histogram->sum_us / US_PER_S, step, histogram->count);
	return result;
}

static int put_steps(const struct api_stats *stats, struct buf *ret, struct err *err)
{
	int result = put_head(ret, "caisson_step_seconds", "histogram", "How long the steps of a run took.", err);
	for (int i = 0; result == 0 && i < STATS_STEP_COUNT; i++)
		result = put_step(stats_step_name((enum stats_step)i), &stats->steps[i], ret, err);
	return result;
}

int metrics_render(const struct api_stats *stats, uint64_t connections, uint64_t parked, struct buf *ret, struct err *err)
{
	const struct metric metrics[] = {
		{"caisson_runs_submitted_total", "counter", "Runs accepted into the queue.", stats->submitted},
		{"caisson_runs_cancelled_total", "counter", "Cancellations recorded.", stats->cancelled},
		{"caisson_queue_length", "gauge", "Runs that wait for a worker.", stats->queued},
		{"caisson_runs_paused", "gauge", "Runs of the queue that no worker may take now.", stats->paused},
		{"caisson_runs_active", "gauge", "Runs that workers drive.", stats->running},
		{"caisson_quarantines_total", "counter", "Attempts whose boundary was not verified empty.", stats->quarantines},
		{"caisson_recoveries_total", "counter", "Attempts recovered.", stats->recoveries},
		{"caisson_stream_dropped_bytes_total", "counter", "Output of guests beyond their limits.", stats->dropped_bytes},
		{"caisson_ledger_commits_total", "counter", "Transactions of the ledger.", stats->ledger_commits},
		{"caisson_ledger_fsyncs_total", "counter", "Transactions that were made durable.", stats->ledger_fsyncs},
		{"caisson_api_connections", "gauge", "Connections of clients.", connections},
		{"caisson_api_waiting", "gauge", "Requests that wait for a change.", parked},
	};
	int result = put_verdicts(stats, ret, err);
	for (size_t i = 0; result == 0 && i < sizeof(metrics) / sizeof(metrics[0]); i++)
		result = put_plain(&metrics[i], ret, err);
	if (result == 0)
		result = put_workers(stats, ret, err);
	return result ? result : put_steps(stats, ret, err);
}
