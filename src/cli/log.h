/* log.h - what a keeper tells its operator: one event, one line of JSON, on standard error. */
#pragma once

#include <jansson.h>

/* Takes details over; NULL: none. From any thread. A collector that does not read is not waited for: the line is dropped, and the next one that
 * is written says how many were (`dropped`). context is not used: it is as callbacks want it. */
void log_event(void *context, const char *event, json_t *details);
