/* events.c - `caisson events [-f] RUN`: the records of a run, as they are made. */
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "client/reply.h"
#include "client/sse.h"
#include "print/output.h"
#include "print/page.h"

enum { VALUE_MAX = 80 };

struct reader {
	const struct client *client;
	struct sse sse;
	struct err err;
	bool news; /* an event came since the connection was made */
};

static int print_object(const char *id, const char *name, const char *data, struct err *err)
{
	JSON_AUTO json_t *document = NULL;
	int result = json_parse(data, strlen(data), &document, err);

	if (result)
		return err_context(err, ERR_PROTOCOL, "event %s", id);

	JSON_AUTO json_t *line = json_pack("{s:s,s:s,s:O}", "id", id, "event", name, "data", document);

	return line ? print_json(STDOUT_FILENO, line, err) : err_set(err, ERR_PROTOCOL, "event %s is not text", id);
}

/* A member besides the time, which has a column of its own. What is long is told by its size: --json has all of it. */
static void add_member(struct page *page, const char *key, const json_t *value)
{
	BUF_AUTO struct buf text = BUF_INIT(SSE_DATA_MAX);

	if (strcmp(key, "at") == 0 || json_canonical(value, &text, NULL))
		return;
	if (json_is_array(value) && text.len > VALUE_MAX)
		page_add(page, " %s=[%zu]", key, json_array_size(value));
	else if (json_is_object(value) && text.len > VALUE_MAX)
		page_add(page, " %s={%zu}", key, json_object_size(value));
	else
		page_add(page, " %s=%s", key, text.data);
}

static int print_line(const char *id, const char *name, const char *data, struct err *err)
{
	JSON_AUTO json_t *document = NULL;
	PAGE_AUTO struct page page = PAGE_INIT;
	const char *key;
	json_t *value;
	int result = json_parse(data, strlen(data), &document, err);

	if (result)
		return err_context(err, ERR_PROTOCOL, "event %s", id);

	const char *at = json_string_value(json_object_get(document, "at"));

	page_add(&page, "%-6s %-24s  %-18s", id, at ? at : "", name);
	json_object_foreach (document, key, value)
		add_member(&page, key, value);
	page_add(&page, "\n");
	return page_print(&page, STDOUT_FILENO, err);
}

static int show_event(void *context, const char *id, const char *name, const char *data)
{
	struct reader *reader = context;

	reader->news = true;
	return reader->client->request->json ? print_object(id, name, data, &reader->err)
	                                     : print_line(id, name, data, &reader->err);
}

static int take(void *context, const void *bytes, size_t count)
{
	struct reader *reader = context;

	return sse_feed(&reader->sse, bytes, count, &reader->err);
}

/* One connection, until its end. */
static int follow_once(struct client *client, const char *run_id, struct reader *reader, struct http_call *call, struct err *err)
{
	http_call_set(call, "GET", "/v1/runs/%s/events%s", run_id, client->request->follow ? "" : "?follow=false");
	call->wait_ms = -1;
	call->sink = take;
	call->context = reader;
	call->last_event_id = *reader->sse.id ? reader->sse.id : NULL;
	reader->news = false;
	sse_restart(&reader->sse);

	int result = http_perform(client->http, call, err);

	if (result && reader->err.code && err)
		*err = reader->err;
	return result;
}

/* One connection after the other. What was shown is not asked for again. */
static int follow(struct client *client, const char *run_id, struct reader *reader, struct http_call *call, struct err *err)
{
	struct losses losses = {0};

	for (;;) {
		int result = follow_once(client, run_id, reader, call, err);

		if (!client_may_retry(call))
			return result;
		if (reader->news)
			losses = (struct losses){0};
		result = client_lost(client, call, &losses, err);
		if (result)
			return result;
	}
}

int client_events(struct client *client, struct err *err)
{
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	JSON_AUTO json_t *document = NULL;
	struct reader reader = {.client = client, .sse = SSE_INIT(show_event, &reader)};
	char run_id[ID_SIZE];
	int result = client_find_run(client, run_id, err);

	if (result == 0)
		result = follow(client, run_id, &reader, &call, err);
	sse_done(&reader.sse);
	if (result)
		return result;
	return reply_good(&call) ? CLIENT_OK : reply_document(&call, &document, err);
}
