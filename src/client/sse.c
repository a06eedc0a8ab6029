/* sse.c - reads server-sent events, a line at a time. */
#include "client/sse.h"

#include <string.h>

void sse_restart(struct sse *sse)
{
	sse->line.len = sse->data.len = 0;
	*sse->name = '\0';
	memcpy(sse->next_id, sse->id, sizeof(sse->id));
}

void sse_done(struct sse *sse)
{
	buf_done(&sse->line);
	buf_done(&sse->data);
}

static int set_field(char field[static SSE_FIELD_SIZE], const char *value, struct err *err)
{
	size_t length = strlen(value);

	if (length >= SSE_FIELD_SIZE)
		return err_set(err, ERR_PROTOCOL, "an event's id or name is too long");
	memcpy(field, value, length + 1);
	return 0;
}

/* The empty line that ends an event. One without data is none, but its id counts. */
static int finish_event(struct sse *sse)
{
	int result = 0;

	if (sse->data.len) {
		sse->data.data[--sse->data.len] = '\0'; /* the newline behind the last line of data */
		result = sse->event(sse->context, sse->next_id, *sse->name ? sse->name : "message", sse->data.data);
	}
	if (result == 0)
		memcpy(sse->id, sse->next_id, sizeof(sse->id));
	sse->data.len = 0;
	*sse->name = '\0';
	return result;
}

static int add_data(struct sse *sse, const char *value, struct err *err)
{
	int result = buf_puts(&sse->data, value, err);

	return result ? result : buf_puts(&sse->data, "\n", err);
}

static int take_line(struct sse *sse, struct err *err)
{
	char *name = sse->line.data, *colon = strchr(name, ':');
	const char *value = "";

	if (!*name)
		return finish_event(sse);
	if (colon) {
		*colon = '\0';
		value = colon[1] == ' ' ? colon + 2 : colon + 1;
	}
	if (strcmp(name, "data") == 0)
		return add_data(sse, value, err);
	if (strcmp(name, "id") == 0)
		return set_field(sse->next_id, value, err);
	if (strcmp(name, "event") == 0)
		return set_field(sse->name, value, err);
	return 0; /* a comment (its name is empty), or a field that is not ours */
}

int sse_feed(struct sse *sse, const void *bytes, size_t count, struct err *err)
{
	const char *at = bytes, *end = at + count;
	int result = 0;

	while (result == 0 && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		result = buf_append(&sse->line, at, (size_t)(stop - at), err);
		at = stop + (newline != NULL);
		if (result || !newline)
			continue;
		if (sse->line.len && sse->line.data[sse->line.len - 1] == '\r')
			sse->line.data[--sse->line.len] = '\0';
		result = take_line(sse, err);
		sse->line.len = 0;
	}
	return result;
}
