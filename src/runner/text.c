/* text.c - events and their texts, safe for records and receipts whatever bytes they came from. */
#include "runner/drive.h"

#include <string.h>

void say(char *to, size_t size, const char *from)
{
	size_t length = strnlen(from, size - 1);
	for (size_t i = 0; i < length; i++)
		to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
	to[length] = '\0';
}

const char *reason_of(int code)
{
	return code == ERR_LOST ? LIFE_REASON_WORKER_LOST : err_code_name(code);
}

struct life_event event_of(enum life_event_kind kind, int64_t at_ns)
{
	return (struct life_event){.kind = kind, .at_ns = at_ns, .descendants_alive = -1};
}

struct life_event event_failed(enum life_event_kind kind, int64_t at_ns, const char *reason, const char *detail)
{
	struct life_event event = event_of(kind, at_ns);
	say(event.reason, sizeof(event.reason), reason);
	say(event.detail, sizeof(event.detail), detail);
	return event;
}
