/* record.h - the hash chain of an attempt's records. Pure. */
#pragma once

#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

/* Digest of a record: SHA-256 over the canonical JSON of {at, attempt, body, kind, prev_digest, seq}. The first record's prev_digest is
 * the digest of the attempt's id. body: canonical JSON text. */
int record_digest(const char *attempt_id, int64_t seq, int64_t at_ms, const char *kind, const char *body, const struct digest *previous,
                  struct digest *ret, struct err *err);
