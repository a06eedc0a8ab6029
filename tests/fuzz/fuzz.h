/* fuzz.h - what every harness needs: the entry point's prototype, and an assertion that no build switches off. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Says which promise was broken by where it ends. */
#define HOLDS(condition)                                                                                                           \
	do {                                                                                                                       \
		if (!(condition))                                                                                                  \
			abort();                                                                                                   \
	} while (0)
