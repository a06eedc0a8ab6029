/* passthrough.h - shows the guest's output while it runs, out of the captures.
 *
 * The guest writes into the captures, whatever happens here: a reader that is slow, or gone, never touches the run. A thread of
 * our own waits for growth and blocks on the caller's descriptors, so that the keeper does not have to. */
#pragma once

#include "base/error.h"
#include "capture/capture.h"
#include "manifest/plan.h"

struct passthrough;

/* limits: of the plan whose captures will come; borrowed for the call. The descriptors are borrowed for good. */
int passthrough_new(const struct plan_limits *limits, int stdout_fd, int stderr_fd, struct passthrough **ret, struct err *err);

/* keeper_once.lasts, with the passthrough as its context: starts the thread. Without a thread all is shown at the end. */
void passthrough_follow(void *context, struct capture *standard_output, struct capture *standard_error);

/* Waits for the thread, then writes what is left. The captures are the run's, settled by now; NULL when there was no run. Blocks
 * as long as the readers do. */
void passthrough_finish(struct passthrough *passthrough, struct capture *standard_output, struct capture *standard_error);

/* Also stops a thread that still runs. NULL is allowed. */
void passthrough_free(struct passthrough *passthrough);
static inline void passthrough_free_p(struct passthrough **passthrough)
{
	passthrough_free(*passthrough);
}
#define PASSTHROUGH_AUTO __attribute__((cleanup(passthrough_free_p)))
