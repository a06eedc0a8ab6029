/* notify.h - tells the service manager how the keeper stands: sd_notify(3)'s datagrams.
 *
 * The protocol is one datagram to one unix socket, "KEY=VALUE" lines; libsystemd would make the static program a dynamic one for it. */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct notify {
	int fd; /* -1: there is no manager */
};

/* path: $NOTIFY_SOCKET; NULL or "": none, and everything else does nothing then. "@…" is an abstract name. ERR_INVALID for what is no unix
 * socket's. */
int notify_open(const char *path, struct notify *ret, struct err *err);
void notify_close(struct notify *notify);

/* Sends these lines, such as "READY=1". A manager that does not listen is no error: it is never waited for. */
void notify_send(const struct notify *notify, const char *lines);

/* $WATCHDOG_USEC and $WATCHDOG_PID, which is to be ours: how often "WATCHDOG=1" is due, half of what the manager waits, in milliseconds; -1 for
 * never. */
int64_t notify_watchdog_ms(const char *watchdog_usec, const char *watchdog_pid);
