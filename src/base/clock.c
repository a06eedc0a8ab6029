/* clock.c - the three clocks. */
#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DAY_MS = 24 * 60 * 60 * 1000, ANY_NUMBERS_SIZE = 96 };

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

struct date {
	int year, month, day;
};

static bool is_leap(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* gmtime_r(3) would do, but it looks at TZ and reads /etc/localtime first, whatever is asked for. */
static struct date date_of(int days)
{
	static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	struct date date = {.year = 1970, .month = 1};
	for (int length; days >= (length = is_leap(date.year) ? 366 : 365); date.year++)
		days -= length;
	for (int length; days >= (length = month_days[date.month - 1] + (date.month == 2 && is_leap(date.year))); date.month++)
		days -= length;
	date.day = days + 1;
	return date;
}

const char *clock_format(int64_t wall_ms, char text[static CLOCK_TEXT_SIZE])
{
	/* What the format can spell: the years 1970 to 9999. */
	if (wall_ms < 0)
		wall_ms = 0;
	if (wall_ms > WALL_MS_LAST)
		wall_ms = WALL_MS_LAST;
	struct date date = date_of((int)(wall_ms / DAY_MS));
	int ms = (int)(wall_ms % DAY_MS);
	char wide[ANY_NUMBERS_SIZE] = ""; /* a compiler that does not see the ranges has nothing to fear */
	snprintf(wide, sizeof(wide), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", date.year, date.month, date.day, ms / 3600000,
	         ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
	memcpy(text, wide, CLOCK_TEXT_SIZE);
	return text;
}
