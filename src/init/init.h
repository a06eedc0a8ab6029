/* init.h - the parts of guest init, private to the program. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "init/setup.h"

/* Ends the program after reporting step and errno. Used by init and, before the gate, by main. */
_Noreturn void init_fail(const char *step, int error);

void init_report(const struct init_report *report);

const char *init_string(const struct init_setup *setup, uint32_t offset);

/* mounts.c: puts the view together and pivots into it. */
void init_build_view(const struct init_setup *setup);
/* Detaches the host's root, behind which nothing of the host is reachable. It waits for a grace period of RCU, so main is born before, and
 * comes as far as the gate meanwhile; what init reports as set up comes after, and enroll finds no such mount. */
void init_leave_host(void);

/* identity.c */
bool init_limit_namespaces(void);      /* the user namespace's own budgets (ucounts) */
void init_empty_bounding_set(void);    /* what init and main have now stays; nothing can come back by an exec */
/* Becomes init or the guest, without groups, keeps exactly the capabilities in `keep` (a bit set) and locks the securebits. */
enum init_who { INIT_ITSELF, INIT_GUEST };
uint32_t init_become(const struct init_setup *setup, enum init_who who, uint64_t keep);

/* landlock.c: false when this kernel has none. */
bool init_restrict_files(const struct init_setup *setup);

/* guest.c: what main does between its birth and execve. gate: the read end. Never returns. */
_Noreturn void init_run_main(const struct init_setup *setup, int gate);
