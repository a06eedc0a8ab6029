/* nursery.h - a small, single-threaded process that forks workers for a keeper that has threads.
 *
 * Forked before the keeper has a thread or a ledger. It is the parent of its workers and the reaper of what they leave; it ends when its keeper is
 * gone, and they, who see the same, after it. When it dies no worker can be made any more: the keeper has to stop. */
#pragma once

#include "keeper/worker.h"

struct nursery;

/* Forks it. The same conditions hold as for worker_spawn. */
int nursery_start(const struct provider_factory *factory, struct nursery **ret, struct err *err);

/* A new worker, as from worker_spawn; released by worker_free. From any thread. ERR_LOST when the nursery is dead. */
int nursery_spawn(struct nursery *nursery, const char *profile, struct worker **ret, struct err *err);

/* Readable when it is dead. Borrowed. */
int nursery_pidfd(const struct nursery *nursery);

/* Ends and reaps it; the workers by then freed. NULL is allowed. */
void nursery_free(struct nursery *nursery);
