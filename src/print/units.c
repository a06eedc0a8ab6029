/* units.c - reads and writes sizes, times and counts. */
#include "print/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FRACTION_DIGITS_MAX = 3 };

struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit sizes[] = {{"", 1}, {"K", 1024}, {"M", 1024 * 1024}, {"G", 1024 * 1024 * 1024}, {NULL, 0}};
static const struct unit times[] = {{"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 60 * 60 * 1000}, {NULL, 0}};

static const char *read_digits(const char *text, int64_t *value)
{
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, *text - '0', value))
			return NULL;
	return text;
}

static const struct unit *find_unit(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (strcmp(units->name, name) == 0)
			return units;
	return NULL;
}

int units_parse_count(const char *text, int64_t *ret, struct err *err)
{
	int64_t value = 0;
	const char *end = read_digits(text, &value);

	if (!end || end == text || *end)
		return err_set(err, ERR_INVALID, "\"%s\" is not a whole number", text);
	*ret = value;
	return 0;
}

int units_parse_size(const char *text, int64_t *ret_bytes, struct err *err)
{
	int64_t value = 0;
	const char *end = read_digits(text, &value);
	const struct unit *unit = end && end != text ? find_unit(sizes, end) : NULL;

	if (!unit)
		return err_set(err, ERR_INVALID, "\"%s\" is not a size; write bytes, or a number with K, M or G, such as 256M",
		               text);
	if (__builtin_mul_overflow(value, unit->factor, &value))
		return err_set(err, ERR_INVALID, "\"%s\" is too large", text);
	*ret_bytes = value;
	return 0;
}

int units_parse_time_ms(const char *text, int64_t *ret_ms, struct err *err)
{
	int64_t value = 0, scale = 1;
	const char *end = read_digits(text, &value);

	if (end && end != text && *end == '.') {
		const char *fraction = end + 1;

		end = read_digits(fraction, &value);
		if (end == fraction || (end && end - fraction > FRACTION_DIGITS_MAX))
			end = NULL;
		for (const char *digit = fraction; end && digit < end; digit++)
			scale *= 10;
	}
	if (end && end != text && !*end)
		return err_set(err, ERR_INVALID, "\"%s\" has no unit; write ms, s, m or h behind it, such as 2s", text);

	const struct unit *unit = end && end != text ? find_unit(times, end) : NULL;

	if (!unit)
		return err_set(err, ERR_INVALID, "\"%s\" is not a time; write a number with ms, s, m or h, such as 2s", text);
	if (__builtin_mul_overflow(value, unit->factor, &value))
		return err_set(err, ERR_INVALID, "\"%s\" is too large", text);
	if (value % scale)
		return err_set(err, ERR_INVALID, "\"%s\" is not a whole number of milliseconds", text);
	*ret_ms = value / scale;
	return 0;
}

const char *units_format_size(int64_t bytes, char text[static UNITS_TEXT_SIZE])
{
	static const char *const names[] = {"bytes", "KiB", "MiB", "GiB"};
	int64_t tenths = bytes * 10;
	size_t step = 0;

	if (bytes < 0 || bytes > INT64_MAX / 10) {
		snprintf(text, UNITS_TEXT_SIZE, "unknown");
		return text;
	}
	while (tenths >= 10240 && step + 1 < sizeof(names) / sizeof(names[0])) {
		tenths /= 1024;
		step++;
	}
	if (tenths % 10)
		snprintf(text, UNITS_TEXT_SIZE, "%" PRId64 ".%" PRId64 " %s", tenths / 10, tenths % 10, names[step]);
	else
		snprintf(text, UNITS_TEXT_SIZE, "%" PRId64 " %s", tenths / 10, names[step]);
	return text;
}

const char *units_format_time_ms(int64_t ms, char text[static UNITS_TEXT_SIZE])
{
	if (ms < 0)
		snprintf(text, UNITS_TEXT_SIZE, "unknown");
	else if (ms < 1000)
		snprintf(text, UNITS_TEXT_SIZE, "%" PRId64 " ms", ms);
	else
		snprintf(text, UNITS_TEXT_SIZE, "%" PRId64 ".%03" PRId64 " s", ms / 1000, ms % 1000);
	return text;
}
