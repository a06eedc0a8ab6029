/* backoff.h - how long to wait before a lost call is made again. Pure. */
#pragma once

#include <stdint.h>

enum { BACKOFF_FIRST_MS = 20, BACKOFF_MAX_MS = 2000 };

/* losses: how many there were one after the other, 1 for the first. */
static inline int64_t backoff_ms(unsigned losses)
{
	int64_t ms = BACKOFF_FIRST_MS;

	while (losses-- > 1 && ms < BACKOFF_MAX_MS)
		ms *= 2;
	return ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
}
