/* owner.h - the files of living keepers: who holds the flock of its own is alive. Private to this folder. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Makes owners/ID and locks it; the lock lives as long as the descriptor. dir: the ledger's directory. */
int owner_hold(int dir, const char *owner_id, int *ret_fd, struct err *err);

/* Removes our own file and gives up the lock. */
void owner_release(int dir, const char *owner_id, int *fd);

/* Is somebody holding the file's lock? No file: no. */
int owner_is_alive(int dir, const char *owner_id, bool *ret, struct err *err);

/* Removes the files of the dead, at most OWNER_SWEEP_MAX a call. Best effort: what stays is dead all the same. */
void owner_sweep(int dir);
