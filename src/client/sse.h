/* sse.h - reads a stream of server-sent events (text/event-stream). Pure. */
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

enum {
	SSE_LINE_MAX = 1024 * 1024,
	SSE_DATA_MAX = 4 * 1024 * 1024,
	SSE_FIELD_SIZE = 128, /* of an id or a name */
};

/* Texts are borrowed for the call. A negative err_code ends the reading with it. */
typedef int (*sse_event_fn)(void *context, const char *id, const char *name, const char *data);

struct sse {
	sse_event_fn event;
	void *context;
	struct buf line, data;
	char id[SSE_FIELD_SIZE]; /* of the last event that was told whole, or "": where to resume */
	char next_id[SSE_FIELD_SIZE];
	char name[SSE_FIELD_SIZE];
};

#define SSE_INIT(fn, fn_context)                                                                                                   \
	((struct sse){.event = (fn), .context = (fn_context), .line = BUF_INIT(SSE_LINE_MAX), .data = BUF_INIT(SSE_DATA_MAX)})

/* ERR_LIMIT, ERR_PROTOCOL (an id or a name that is too long), ERR_NO_MEMORY, or what the function said. */
int sse_feed(struct sse *sse, const void *bytes, size_t count, struct err *err);

/* The connection was lost: what was begun is forgotten, and `id` stays. */
void sse_restart(struct sse *sse);
void sse_done(struct sse *sse);
#define SSE_AUTO __attribute__((cleanup(sse_done)))
