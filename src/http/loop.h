/* loop.h - the front's one loop. */
#pragma once

#include "http/front.h"

/* Serves until the keeper closes the intake: 0 then. */
int loop_run(struct err *err);
