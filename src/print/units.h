/* units.h - sizes, times and counts as people write them, and back. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { UNITS_TEXT_SIZE = 32 };

/* "4096", "64K", "256M", "1G" (multiples of 1024): bytes. ERR_INVALID. */
int units_parse_size(const char *text, int64_t *ret_bytes, struct err *err);

/* "250ms", "2s", "1.5m", "1h": milliseconds. A number without a unit is refused, because half of its readers would take it for
 * seconds and the other half for milliseconds; so is a fraction that is no whole number of milliseconds. ERR_INVALID. */
int units_parse_time_ms(const char *text, int64_t *ret_ms, struct err *err);

/* A plain decimal number. ERR_INVALID. */
int units_parse_count(const char *text, int64_t *ret, struct err *err);

/* The figure as a person reads it: "1.5 MiB", "250 ms", "2.125 s"; "unknown" for a negative one. Return text. */
const char *units_format_size(int64_t bytes, char text[static UNITS_TEXT_SIZE]);
const char *units_format_time_ms(int64_t ms, char text[static UNITS_TEXT_SIZE]);
