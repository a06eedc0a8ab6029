/* op_events.c - the next events of a run, or the wait for them. */
#include "keeper/api/api_internal.h"

static int read_position(const struct call *call, struct feed_piece *ret, struct err *err)
{
	*ret = (struct feed_piece){.attempt = 0};
	int result = argument_number(call, "attempt", INT32_MAX, &ret->attempt, err);
	return result ? result : argument_number(call, "seq", INT64_MAX, &ret->seq, err);
}

static int answer(struct call *call, const struct feed *feed, struct err *err)
{
	struct feed_piece position;
	bool over = false;
	int result = read_position(call, &position, err);
	if (result == 0)
		result = argument_waits(call, &over, err);
	if (result == 0)
		result = feed_read(feed, &position, &call->reply.body, err);
	if (result)
		return result;
	if (call->reply.body.len == 0 && !position.end && !over) {
		call->seen = feed_changes(feed);
		return CALL_PARK;
	}
	call->reply.ok = json_pack("{s:I, s:I, s:b}", "attempt", (json_int_t)position.attempt, "seq", (json_int_t)position.seq,
	                           "end", (int)position.end);
	return 0;
}

static int handle_events(struct call *call, struct err *err)
{
	struct feed *feed = NULL;
	int result = access_run_id(call, err);
	if (result == 0)
		result = feed_get(call->api, call->run_id, &feed, err);
	if (result)
		return result == ERR_NOT_FOUND ? access_refused(err) : result;
	result = peer_may_see(call->peer, feed_principal(feed)) ? answer(call, feed, err) : access_refused(err);
	feed_put(feed);
	return result;
}

static const char *const events_keys[] = {"run", "attempt", "seq", "wait_ms", NULL};

const struct operation operation_events = {.name = "events", .keys = events_keys, .handle = handle_events};
