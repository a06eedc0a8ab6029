/* clock.c - the three clocks. */
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WALL_MS_LAST INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

static int64_t read_ns(clockid_t clock)
{
	struct timespec now;

	/* Without its clock no limit could be kept: there is no way on. */
	if (clock_gettime(clock, &now) != 0)
		abort();
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t clock_mono_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

int64_t clock_boot_ns(void)
{
	return read_ns(CLOCK_BOOTTIME);
}

int64_t clock_wall_ms(void)
{
	return read_ns(CLOCK_REALTIME) / NS_PER_MS;
}

const char *clock_format(int64_t wall_ms, char text[static CLOCK_TEXT_SIZE])
{
	/* What the format can spell: the years 1970 to 9999. */
	if (wall_ms < 0)
		wall_ms = 0;
	if (wall_ms > WALL_MS_LAST)
		wall_ms = WALL_MS_LAST;
	time_t seconds = wall_ms / 1000;
	struct tm tm;
	gmtime_r(&seconds, &tm);
	size_t length = strftime(text, CLOCK_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + length, CLOCK_TEXT_SIZE - length, ".%03dZ", (int)(wall_ms % 1000));
	return text;
}
