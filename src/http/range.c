/* range.c - reads a Range header (RFC 9110, 14.2). */
#include "http/range.h"

#include <stdbool.h>
#include <stdlib.h>
#include <strings.h>

/* Digits, and how far they go. A number that is too large for any object is as good as the largest. */
static bool read_number(const char **at, uint64_t *ret)
{
	char *end;
	if (**at < '0' || **at > '9')
		return false;
	*ret = strtoull(*at, &end, 10);
	*at = end;
	return true;
}

static enum range_kind part(uint64_t first, uint64_t last, uint64_t size, struct range *ret)
{
	if (first >= size)
		return RANGE_OUTSIDE;
	if (last >= size)
		last = size - 1;
	*ret = (struct range){.first = first, .length = last - first + 1};
	return RANGE_PART;
}

enum range_kind range_parse(const char *text, uint64_t size, struct range *ret)
{
	static const char unit[] = "bytes=";
	uint64_t first = 0, last = UINT64_MAX;
	if (!text || strncasecmp(text, unit, sizeof(unit) - 1) != 0)
		return RANGE_ALL;
	const char *at = text + sizeof(unit) - 1;
	if (*at == '-') { /* the last so many */
		at++;
		if (!read_number(&at, &last) || *at)
			return RANGE_ALL;
		return last == 0 ? RANGE_OUTSIDE : part(last < size ? size - last : 0, UINT64_MAX, size, ret);
	}
	if (!read_number(&at, &first) || *at++ != '-')
		return RANGE_ALL;
	if (*at && (!read_number(&at, &last) || *at || last < first))
		return RANGE_ALL;
	return part(first, last, size, ret);
}
