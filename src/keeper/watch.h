/* watch.h - what a keeper has seen of the leases of others, round by round. Private to recovery. */
#pragma once

#include <stdbool.h>

#include "keeper/keeper.h"

/* One look at the lease of a living owner's attempt. True when it has not changed for its time to live: the owner is stopped. Of what could
 * not be noted (out of memory) the answer is no. */
bool watch_look(struct keeper_watch *watch, const struct ledger_attempt *attempt);

/* Forgets what was not looked at since the last round ended. */
void watch_end_round(struct keeper_watch *watch);
