/* feed.c - the events of a run, as the text that every client gets: read from the ledger once for all who wait for the same change.
 *
 * A place for a few runs at a time, by their ids. Who comes first after a change reads, and the others wait for that and share
 * it. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "keeper/api/api_internal.h"

enum {
	FEED_EVENTS_MAX = 1024, /* an attempt has some twenty; one that cannot be recovered gets a few with each try */
	FEED_TEXT_MAX = 4 * 1024 * 1024,
};

struct event {
	int64_t attempt, seq;
	size_t begin, end; /* of its text */
};

struct feed {
	atomic_int users;
	char run_id[ID_SIZE];
	uint64_t changes;
	int64_t read_at_ns;
	struct ledger_run_state state;
	struct event events[FEED_EVENTS_MAX];
	size_t count;
	int64_t last_at_ms; /* of the last record: of a sealed run the moment of its seal */
	struct buf text;
};

void feeds_init(struct api *api)
{
	for (size_t i = 0; i < API_FEEDS; i++)
		pthread_mutex_init(&api->feeds[i].lock, NULL);
}

void feeds_done(struct api *api)
{
	for (size_t i = 0; i < API_FEEDS; i++) {
		feed_put(api->feeds[i].feed);
		pthread_mutex_destroy(&api->feeds[i].lock);
	}
}

void feed_put(struct feed *feed)
{
	if (!feed || atomic_fetch_sub(&feed->users, 1) > 1)
		return;
	buf_done(&feed->text);
	free(feed);
}

uint64_t feed_changes(const struct feed *feed)
{
	return feed->changes;
}

const char *feed_principal(const struct feed *feed)
{
	return feed->state.principal;
}

/* Takes the reference of data. */
static int add_event(struct feed *feed, struct event event, const char *kind, json_t *data, struct err *err)
{
	JSON_AUTO json_t *owned = data;
	if (!owned)
		return err_set(err, ERR_NO_MEMORY, "out of memory for an event");
	if (feed->count == FEED_EVENTS_MAX)
		return err_set(err, ERR_LIMIT, "a run with more than %d records", FEED_EVENTS_MAX);
	event.begin = feed->text.len;
	int result = buf_printf(&feed->text, err, "id: %lld-%lld\nevent: %s\ndata: ", (long long)event.attempt,
	                        (long long)event.seq, kind);
	if (result == 0)
		result = json_canonical(owned, &feed->text, err);
	if (result == 0)
		result = buf_puts(&feed->text, "\n\n", err);
	event.end = feed->text.len;
	if (result == 0)
		feed->events[feed->count++] = event;
	return result;
}

struct reading {
	struct feed *feed;
	int64_t attempt;
	struct ledger_attempt attempts[LEDGER_ATTEMPTS_MAX];
	size_t count;
	struct err *err;
};

static int take_record(void *context, const struct ledger_record *record, const struct digest *digest)
{
	struct reading *reading = context;
	(void)digest;
	const struct event event = {.attempt = reading->attempt, .seq = record->seq};
	reading->feed->last_at_ms = record->at_ms;
	return add_event(reading->feed, event, record->kind, public_record(record), reading->err);
}

/* Kept, and read afterwards: the ledger is not called from within a call of its own. */
static int take_attempt(void *context, const struct ledger_attempt *attempt)
{
	struct reading *reading = context;
	if (reading->count < LEDGER_ATTEMPTS_MAX)
		reading->attempts[reading->count++] = *attempt;
	return 0;
}

/* The seal has no record of its own: it comes behind the last one, which was written with it. */
static int add_seal(struct feed *feed, struct err *err)
{
	struct event event = {.attempt = 1};
	if (feed->count > 0)
		event = feed->events[feed->count - 1];
	event.seq++;
	char at[CLOCK_TEXT_SIZE];
	json_t *data = json_pack("{s:s, s:s, s:s, s:s}", "at", clock_format(feed->last_at_ms, at), "run", feed->run_id, "verdict",
	                         feed->state.verdict, "reason", feed->state.reason);
	return add_event(feed, event, "sealed", data, err);
}

static int fill(struct feed *feed, struct ledger *ledger, struct err *err)
{
	struct reading reading = {.feed = feed, .err = err};
	int result = ledger->ops->run_state(ledger, feed->run_id, &feed->state, err);
	if (result == 0)
		result = ledger->ops->attempts(ledger, feed->run_id, take_attempt, &reading, err);
	for (size_t i = 0; result == 0 && i < reading.count; i++) {
		reading.attempt = reading.attempts[i].number;
		result = ledger->ops->records(ledger, reading.attempts[i].attempt_id, take_record, &reading, err);
	}
	return result == 0 && feed->state.sealed ? add_seal(feed, err) : result;
}

static int read_feed(struct api *api, const char *run_id, struct feed **ret, struct err *err)
{
	struct feed *feed = malloc(sizeof(*feed));
	if (!feed)
		return err_set(err, ERR_NO_MEMORY, "out of memory for events");
	feed->users = 1;
	feed->count = 0;
	feed->last_at_ms = 0;
	feed->text = BUF_INIT(FEED_TEXT_MAX);
	memcpy(feed->run_id, run_id, strlen(run_id) + 1);
	feed->changes = schedule_changes(api, run_id);
	feed->read_at_ns = clock_mono_ns();
	int result = fill(feed, api->options.ledger, err);
	if (result) {
		feed_put(feed);
		return result;
	}
	*ret = feed;
	return 0;
}

/* What another keeper of this ledger did shows by time only; a sealed run changes no more. */
static bool is_fresh(struct api *api, const struct feed *feed, const char *run_id)
{
	if (!feed || strcmp(feed->run_id, run_id) != 0)
		return false;
	return feed->state.sealed || (feed->changes == schedule_changes(api, run_id) &&
	                              clock_mono_ns() - feed->read_at_ns < API_LOOK_AGAIN_MS / 2 * NS_PER_MS);
}

static struct feed_slot *slot_of(struct api *api, const char *run_id)
{
	size_t sum = 0;
	for (; *run_id; run_id++)
		sum = sum * 31 + (unsigned char)*run_id;
	return &api->feeds[sum % API_FEEDS];
}

int feed_get(struct api *api, const char *run_id, struct feed **ret, struct err *err)
{
	struct feed_slot *slot = slot_of(api, run_id);
	int result = 0;
	pthread_mutex_lock(&slot->lock);
	if (!is_fresh(api, slot->feed, run_id)) {
		feed_put(slot->feed);
		slot->feed = NULL;
		result = read_feed(api, run_id, &slot->feed, err);
	}
	if (result == 0) {
		atomic_fetch_add(&slot->feed->users, 1);
		*ret = slot->feed;
	}
	pthread_mutex_unlock(&slot->lock);
	return result;
}

static bool is_behind(const struct event *event, const struct feed_piece *position)
{
	return event->attempt > position->attempt || (event->attempt == position->attempt && event->seq > position->seq);
}

int feed_read(const struct feed *feed, struct feed_piece *position, struct buf *ret, struct err *err)
{
	size_t i = 0;
	int result = 0;
	while (i < feed->count && !is_behind(&feed->events[i], position))
		i++;
	for (; result == 0 && i < feed->count; i++) {
		const struct event *event = &feed->events[i];
		if (ret->len > 0 && ret->len + (event->end - event->begin) > API_EVENTS_BYTES)
			break;
		result = buf_append(ret, feed->text.data + event->begin, event->end - event->begin, err);
		position->attempt = event->attempt;
		position->seq = event->seq;
	}
	position->end = feed->state.sealed && i == feed->count;
	return result;
}
