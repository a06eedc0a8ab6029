/* batch_order.h - the results of a batch, in the order of its lines or as they come; each exactly once. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum { BATCH_READY_MAX = 1024 * 1024 * 1024 };

struct batch_order {
	bool unordered;
	struct buf *waiting; /* a ring of `room`: results that came before those of earlier lines; in order of `begun` */
	size_t room;
	int64_t begun, told; /* lines that were begun; whose result is ready, all before it included */
	struct buf ready;    /* what is to be written now; the caller empties it */
};

/* room: how many lines may be begun whose results are not ready. ERR_NO_MEMORY. */
int batch_order_init(struct batch_order *order, size_t room, bool unordered, struct err *err);
void batch_order_done(struct batch_order *order);

/* Is there room to begin another line? */
bool batch_order_has_room(const struct batch_order *order);

/* Begins a line: its place, for batch_order_put. */
int64_t batch_order_begin(struct batch_order *order);

/* The result of the line with this place: text, and a newline behind it. ERR_NO_MEMORY, ERR_LIMIT. */
int batch_order_put(struct batch_order *order, int64_t place, const char *text, struct err *err);
