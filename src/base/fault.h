/* fault.h - numbered places where a test may make the program die, stop or fail; compiled in with -Dfault_points=true only.
 *
 * CAISSON_FAULT="NAME:kill|stop|eio|enospc|delay_MS[,…]" arms them, each at its first passage ("NAME@3:kill" at its third); CAISSON_FAULT_MARK
 * names a file that is made when one comes to pass, once: not again in the process that takes up from a dead one. CAISSON_FAULT_GATE names
 * one before whose being nothing counts. In a production build fault_hit() is 0 and the names are not in the program: use
 * the macro, never a string of one's own. */
#pragma once

#include "base/error.h"

#ifdef CAISSON_FAULT_POINTS
/* Returns 0, or a negative err_code for eio/enospc; does not return for kill; returns after SIGCONT for stop. */
int fault_hit(const char *name);

/* The same, with the error set: for a step that may fail where the point stands. */
static inline int fault_error(const char *name, struct err *err)
{
	int code = fault_hit(name);

	return code < 0 ? err_set(err, code, "injected fault at %s", name) : 0;
}

/* Is `name` listed in CAISSON_OMIT (comma-separated)? Then the protection of that evidence line is to be left out. */
int fault_omits(const char *name);
#define FAULT(name) fault_hit(name)
#define FAULT_ERR(name, err) fault_error(name, err)
#define OMITTED(name) fault_omits(name)
#else
#define FAULT(name) 0
#define FAULT_ERR(name, err) 0
#define OMITTED(name) 0
#endif
