/* clock.h - the three clocks, each with its purpose. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/* The nearest millisecond of a time that has gone by; -1 (not known) stays -1. A limit is whole milliseconds: what is within it does not
 * come out above it, and what is above it not below. */
static inline int64_t clock_ns_to_ms(int64_t ns)
{
	return ns < 0 ? -1 : ns / NS_PER_MS + (ns % NS_PER_MS >= NS_PER_MS / 2);
}

/* CLOCK_MONOTONIC: durations and deadlines within a process. Nanoseconds. Never fails (aborts if the kernel has no such clock). */
int64_t clock_mono_ns(void);

/* CLOCK_BOOTTIME: durations that must count a suspended machine (leases, approvals). Nanoseconds. */
int64_t clock_boot_ns(void);

/* CLOCK_REALTIME, milliseconds since 1970: for display and records only, never for a decision about time elapsed. */
int64_t clock_wall_ms(void);

enum { CLOCK_TEXT_SIZE = 32 };

/* RFC 3339 in UTC with milliseconds, "2026-11-29T20:41:34.123Z". Returns text. */
const char *clock_format(int64_t wall_ms, char text[static CLOCK_TEXT_SIZE]);
