/* stats_internal.h - what counting and rendering share; private to this folder. */
#pragma once

#include "base/buffer.h"
#include "keeper/api/stats.h"

extern const uint64_t stats_bounds_us[STATS_BUCKETS];

const char *stats_step_name(enum stats_step step);

enum { METRICS_TEXT_MAX = 64 * 1024 };

/* Appends the Prometheus text exposition, version 0.0.4. connections, parked: of the API itself, now. */
int metrics_render(const struct api_stats *stats, uint64_t connections, uint64_t parked, struct buf *ret, struct err *err);
