/* test_metrics.c - the Prometheus text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "keeper/api/stats_internal.h"

static void assert_line(const struct buf *text, const char *line)
{
	const char *found = strstr(text->data, line);
	if (!found || (found != text->data && found[-1] != '\n') || found[strlen(line)] != '\n')
		fail_msg("no line '%s' in:\n%s", line, text->data);
}

static void figures_come_out_under_their_names(void **state)
{
	(void)state;
	BUF_AUTO struct buf text = BUF_INIT(METRICS_TEXT_MAX);
	struct api_stats stats = {.queued = 7, .dropped_bytes = UINT64_MAX, .quarantines = 2};
	stats.verdicts[VERDICT_TIMED_OUT] = 3;
	stats.workers[STATS_QUARANTINED] = 1;
	assert_int_equal(metrics_render(&stats, 5, 4, &text, NULL), 0);
	assert_line(&text, "caisson_queue_length 7");
	assert_line(&text, "caisson_runs_sealed_total{verdict=\"timed_out\"} 3");
	assert_line(&text, "caisson_runs_sealed_total{verdict=\"succeeded\"} 0");
	assert_line(&text, "caisson_workers{state=\"quarantined\"} 1");
	assert_line(&text, "caisson_stream_dropped_bytes_total 18446744073709551615");
	assert_line(&text, "caisson_quarantines_total 2");
	assert_line(&text, "caisson_api_connections 5");
	assert_line(&text, "caisson_api_waiting 4");
}

static void buckets_are_cumulative(void **state)
{
	(void)state;
	BUF_AUTO struct buf text = BUF_INIT(METRICS_TEXT_MAX);
	struct api_stats stats = {0};
	stats_observe(&stats.steps[STATS_RUN], 400 * 1000);
	stats_observe(&stats.steps[STATS_RUN], 2 * 1000 * 1000);
	stats_observe(&stats.steps[STATS_RUN], INT64_C(7200000000000));
	assert_int_equal(metrics_render(&stats, 0, 0, &text, NULL), 0);
	assert_line(&text, "caisson_step_seconds_bucket{step=\"run\",le=\"0.0005\"} 1");
	assert_line(&text, "caisson_step_seconds_bucket{step=\"run\",le=\"0.001\"} 1");
	assert_line(&text, "caisson_step_seconds_bucket{step=\"run\",le=\"0.0025\"} 2");
	assert_line(&text, "caisson_step_seconds_bucket{step=\"run\",le=\"3600\"} 2");
	assert_line(&text, "caisson_step_seconds_bucket{step=\"run\",le=\"+Inf\"} 3");
	assert_line(&text, "caisson_step_seconds_count{step=\"run\"} 3");
	assert_line(&text, "caisson_step_seconds_sum{step=\"run\"} 7200.002400");
}

static void every_metric_has_one_help_and_one_type(void **state)
{
	(void)state;
	BUF_AUTO struct buf text = BUF_INIT(METRICS_TEXT_MAX);
	const struct api_stats stats = {0};
	size_t helps = 0, types = 0;
	assert_int_equal(metrics_render(&stats, 0, 0, &text, NULL), 0);
	for (const char *at = text.data; (at = strstr(at, "# HELP ")); at++)
		helps++;
	for (const char *at = text.data; (at = strstr(at, "# TYPE ")); at++)
		types++;
	assert_int_equal(helps, types);
	assert_int_equal(helps, 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_come_out_under_their_names),
		cmocka_unit_test(buckets_are_cumulative),
		cmocka_unit_test(every_metric_has_one_help_and_one_type),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
