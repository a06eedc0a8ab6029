/* schedule.c - where each connection is: armed, queued, being served, or waiting for a change of its run. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/fd.h"
#include "keeper/api/api_internal.h"

static struct bucket *bucket_of(struct api *api, const char *run_id)
{
	uint32_t hash = 2166136261u; /* FNV-1a */
	for (; *run_id; run_id++)
		hash = (hash ^ (unsigned char)*run_id) * 16777619u;
	return &api->buckets[hash % API_BUCKETS];
}

/* One-shot: it is reported once, and then again when it is armed again. */
static bool arm(struct api *api, struct connection *connection, int operation)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = connection};
	return epoll_ctl(api->epoll, operation, connection->channel, &event) == 0;
}

static void enqueue(struct api *api, struct connection *connection)
{
	connection->state = CONNECTION_READY;
	connection->place_next = NULL;
	*api->queue_end = connection;
	api->queue_end = &connection->place_next;
	pthread_cond_signal(&api->work);
}

static void unpark(struct api *api, struct connection *connection)
{
	*connection->place = connection->place_next;
	if (connection->place_next)
		connection->place_next->place = connection->place;
	api->parked_count--;
}

static void bury(struct api *api, struct connection *connection)
{
	connection->state = CONNECTION_DEAD;
	connection->place_next = api->dead;
	api->dead = connection;
}

int schedule_add(struct api *api, int channel, const struct peer *peer, struct err *err)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	if (!connection)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a connection");
	connection->call = CALL_NONE;
	connection->channel = channel;
	connection->peer = *peer;
	connection->spool = -1;
	connection->state = CONNECTION_IDLE;
	pthread_mutex_lock(&api->lock);
	connection->next = api->all;
	if (api->all)
		api->all->previous = connection;
	api->all = connection;
	api->connection_count++;
	if (!arm(api, connection, EPOLL_CTL_ADD)) /* no room for one more: nobody would ever be heard on it */
		bury(api, connection);
	pthread_mutex_unlock(&api->lock);
	return 0;
}

/* An event may be late: what it was armed for is over then. */
void schedule_readable(struct api *api, struct connection *connection)
{
	pthread_mutex_lock(&api->lock);
	switch (connection->state) {
	case CONNECTION_IDLE:
		enqueue(api, connection);
		break;
	case CONNECTION_PARKED: /* it may not speak now; nearly always this is the end */
		unpark(api, connection);
		bury(api, connection);
		break;
	case CONNECTION_READY:
	case CONNECTION_BUSY:
	case CONNECTION_DEAD:
		break;
	}
	pthread_mutex_unlock(&api->lock);
}

static void free_connection(struct api *api, struct connection *connection)
{
	if (connection->next)
		connection->next->previous = connection->previous;
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		api->all = connection->next;
	api->connection_count--;
	if (connection->spool >= 0)
		api->upload_count--;
	call_done(&connection->call);
	fd_close(&connection->spool);
	/* Closing alone does not do it while a front that is being started has a copy: an event would name what is gone. */
	epoll_ctl(api->epoll, EPOLL_CTL_DEL, connection->channel, NULL);
	fd_close(&connection->channel);
	free(connection);
}

void schedule_free_dead(struct api *api)
{
	pthread_mutex_lock(&api->lock);
	while (api->dead) {
		struct connection *connection = api->dead;
		api->dead = connection->place_next;
		free_connection(api, connection);
	}
	pthread_mutex_unlock(&api->lock);
}

/* When no thread serves any more; that something has changed may still be told. */
void schedule_close_all(struct api *api)
{
	pthread_mutex_lock(&api->lock);
	for (size_t i = 0; i < API_BUCKETS; i++)
		api->buckets[i].parked = NULL;
	while (api->all)
		free_connection(api, api->all);
	api->dead = api->queue = NULL;
	api->queue_end = &api->queue;
	api->parked_count = 0;
	pthread_mutex_unlock(&api->lock);
}

int64_t schedule_due(struct api *api, int64_t now_ns)
{
	int64_t next_ns = INT64_MAX;
	pthread_mutex_lock(&api->lock);
	for (size_t i = 0; i < API_BUCKETS && api->parked_count > 0; i++) {
		struct connection *following;
		for (struct connection *connection = api->buckets[i].parked; connection; connection = following) {
			following = connection->place_next;
			if (connection->look_at_ns <= now_ns) {
				unpark(api, connection);
				enqueue(api, connection);
			} else if (connection->look_at_ns < next_ns) {
				next_ns = connection->look_at_ns;
			}
		}
	}
	api->next_look_ns = next_ns;
	pthread_mutex_unlock(&api->lock);
	return next_ns;
}

struct connection *schedule_next(struct api *api)
{
	struct connection *connection = NULL;
	pthread_mutex_lock(&api->lock);
	while (!api->queue && !api->stopping)
		pthread_cond_wait(&api->work, &api->lock);
	if (!api->stopping) {
		connection = api->queue;
		api->queue = connection->place_next;
		if (!api->queue)
			api->queue_end = &api->queue;
		connection->state = CONNECTION_BUSY;
	}
	pthread_mutex_unlock(&api->lock);
	return connection;
}

void schedule_idle(struct api *api, struct connection *connection)
{
	pthread_mutex_lock(&api->lock);
	connection->state = CONNECTION_IDLE;
	arm(api, connection, EPOLL_CTL_MOD);
	pthread_mutex_unlock(&api->lock);
}

void schedule_park(struct api *api, struct connection *connection)
{
	struct call *call = &connection->call;
	struct bucket *bucket = bucket_of(api, call->run_id);
	int64_t look_at_ns = clock_mono_ns() + call->again_ms * NS_PER_MS;
	connection->look_at_ns = look_at_ns < call->deadline_ns ? look_at_ns : call->deadline_ns;
	pthread_mutex_lock(&api->lock);
	bool sooner = connection->look_at_ns < api->next_look_ns;
	call->woken = bucket->changes != call->seen;
	if (call->woken) {
		enqueue(api, connection);
	} else {
		connection->state = CONNECTION_PARKED;
		connection->place = &bucket->parked;
		connection->place_next = bucket->parked;
		if (bucket->parked)
			bucket->parked->place = &connection->place_next;
		bucket->parked = connection;
		api->parked_count++;
		arm(api, connection, EPOLL_CTL_MOD);
	}
	pthread_mutex_unlock(&api->lock);
	if (sooner)
		loop_wake(api);
}

void schedule_drop(struct api *api, struct connection *connection)
{
	pthread_mutex_lock(&api->lock);
	bury(api, connection);
	pthread_mutex_unlock(&api->lock);
	loop_wake(api);
}

uint64_t schedule_changes(struct api *api, const char *run_id)
{
	pthread_mutex_lock(&api->lock);
	uint64_t changes = bucket_of(api, run_id)->changes;
	pthread_mutex_unlock(&api->lock);
	return changes;
}

void api_changed(struct api *api, const char *run_id)
{
	struct bucket *bucket = bucket_of(api, run_id);
	struct connection *following;
	pthread_mutex_lock(&api->lock);
	bucket->changes++;
	for (struct connection *connection = bucket->parked; connection; connection = following) {
		following = connection->place_next;
		if (strcmp(connection->call.run_id, run_id) == 0) {
			unpark(api, connection);
			connection->call.woken = true;
			enqueue(api, connection);
		}
	}
	pthread_mutex_unlock(&api->lock);
}
