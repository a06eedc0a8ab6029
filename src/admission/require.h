/* require.h - inside admission: does a host's feature list meet one entry of `require`? */
#pragma once

#include <stdbool.h>

/* require: "name" or "name>=N". features: NULL-terminated, "name" or "name=LEVEL". Malformed entries meet nothing. */
bool admission_require_met(const char *require, const char *const *features);
