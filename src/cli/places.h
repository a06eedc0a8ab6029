/* places.h - where things are: the ledger's directory and the installed programs. Reads the environment. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

/* Appends the ledger's directory: the option, else CAISSON_LEDGER, else /var/lib/caisson for root, else $XDG_STATE_HOME/caisson or
 * ~/.local/state/caisson. ERR_NOT_FOUND when nothing of that is known. */
int places_ledger(const char *option, struct buf *ret, struct err *err);

/* Appends the path of a keeper's socket: the option, else api.sock in the ledger's directory. ERR_LIMIT when it is
 * longer than a socket's path may be. */
int places_socket(const char *option, const char *ledger_option, struct buf *ret, struct err *err);

/* Appends the path of guest init: the installed one; or, for a program that runs from its build tree, the one built with it.
 * ERR_NOT_FOUND. */
int places_init(struct buf *ret, struct err *err);
/* Of the HTTP front, likewise. */
int places_front(struct buf *ret, struct err *err);
/* Of the program that speaks to a keeper, likewise. */
int places_client(struct buf *ret, struct err *err);

/* Appends the path of this program. */
int places_self(struct buf *ret, struct err *err);

/* --cgroup-parent, else CAISSON_CGROUP_PARENT, else NULL. */
const char *places_cgroup_parent(const char *option);

/* Appends where runs of this user lock what they share: /run/caisson for root, else $XDG_RUNTIME_DIR/caisson or /tmp/caisson-UID. */
int places_runtime(struct buf *ret, struct err *err);
/* It, made if need be; ours alone, or an error. The descriptor. */
int places_open_runtime(struct err *err);
