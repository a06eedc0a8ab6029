/* range.h - the Range header, as far as it is honoured: one range of bytes. Pure. */
#pragma once

#include <stdint.h>

enum range_kind {
	RANGE_ALL,     /* none, or one that may be ignored: another unit, several ranges, no sense */
	RANGE_PART,
	RANGE_OUTSIDE, /* 416 */
};

struct range {
	uint64_t first, length;
};

/* text may be NULL. *ret is set for RANGE_PART, and lies within size. */
enum range_kind range_parse(const char *text, uint64_t size, struct range *ret);
