/* capability.h - what of root's power this process has (capabilities(7)). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { CAPABILITIES_TEXT_SIZE = 160 };

bool capability_effective(int number);

/* Those that root needs to make a boundary, and has not; false when nothing is missing. An ordinary user needs none: what he does, he does in a
 * user namespace of his own. */
bool capabilities_missing(char ret[static CAPABILITIES_TEXT_SIZE]);
