/* key.h - idempotency keys: the word under which a submission is the same one, however often it is sent. Pure. */
#pragma once

#include "base/error.h"

enum { KEY_MAX = 128 };

/* A key becomes a header of HTTP: printable ASCII, without a space. ERR_INVALID. */
int key_check(const char *key, struct err *err);
