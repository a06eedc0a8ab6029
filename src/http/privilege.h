/* privilege.h - gives up all that the front does not need. */
#pragma once

#include "base/error.h"

/* Becomes uid and gid when started as root, without supplementary groups and capabilities; no new privileges, small limits, and a
 * filter of the few system calls that serving takes. Each is checked afterwards: an error means that the process must end. */
int privilege_drop(unsigned uid, unsigned gid, struct err *err);

/* filter.c: its part of it. */
int filter_load(struct err *err);
