/* seal.h - copies a manifest's inputs into the store before anything else happens; from then on only their digests count. */
#pragma once

#include "artifact/store.h"
#include "base/error.h"
#include "manifest/manifest.h"
#include "manifest/plan.h"

#define SEAL_MAX_BYTES (INT64_C(8) << 30)       /* of one input; of a directory all files together */
#define SEAL_STDIN_MAX_BYTES (INT64_C(1) << 30) /* what comes from a pipe has no size to refuse it by before */

struct sealed {
	struct plan_sealed plan; /* as the plan compiler wants it; points into this struct's memory */
	struct plan_input *inputs;
};

/* Reads every `source` (stdin's may be "-", the caller's standard input), stores every `text`, and finds every `digest`. store
 * NULL: only digests and sizes are computed, and a `digest` is ERR_UNSUPPORTED. The text of an error names the input. seal_done
 * in every case. */
int seal_inputs(struct store *store, const struct manifest *manifest, struct sealed *ret, struct err *err);
void seal_done(struct sealed *sealed);
#define SEAL_AUTO __attribute__((cleanup(seal_done)))
