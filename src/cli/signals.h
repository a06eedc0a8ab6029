/* signals.h - INT, TERM and HUP while a run is on: the first cancels it, the second kills it. */
#pragma once

#include <signal.h>

#include "base/error.h"
#include "keeper/keeper.h"

/* A reader that goes away must not end us. For the whole life of the program. */
void signals_ignore_pipe(void);

/* From now on the three signals are counted and wake the worker's channel. The worker must outlive it. */
int signals_catch(struct worker *worker, struct err *err);

/* From now on they end the program again, as they do any other: the run is sealed, only its output may still be on its way. */
void signals_release(void);

/* How many were heard; the number of the first, 0 for none. */
const volatile sig_atomic_t *signals_count(void);
int signals_first(void);
