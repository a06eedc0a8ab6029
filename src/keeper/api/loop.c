/* loop.c - the thread that waits: for clients, for what the front asks, for time, and for the front's end. */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "keeper/api/api_internal.h"

enum {
	EVENTS_MAX = 256,
	PAUSE_MS = 100,         /* of accepting, when descriptors are short */
	FRONT_AGAIN_MS = 1000,  /* between two starts of the front */
	TICK_MS = 10,           /* the least between two looks at the parked */
};

/* What else than a connection an event may name: by the address of these. */
static const char for_listener, for_front, for_wake;

static void log_line(const struct api *api, const struct err *err)
{
	api->options.core->log(api->options.core->context, err->text);
}

static int watch(const struct api *api, int fd, const void *what, struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = (void *)(uintptr_t)what};
	return epoll_ctl(api->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? err_sys(err, errno, "watch a descriptor") : 0;
}

int loop_prepare(struct api *api, struct err *err)
{
	api->epoll = epoll_create1(EPOLL_CLOEXEC);
	api->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (api->epoll < 0 || api->wake < 0)
		return err_sys(err, errno, "make an epoll");
	int result = watch(api, api->wake, &for_wake, err);
	if (result == 0)
		result = watch(api, api->listener.fd, &for_listener, err);
	if (result == 0)
		result = watch(api, api->front.pidfd, &for_front, err);
	return result;
}

void loop_wake(struct api *api)
{
	const uint64_t one = 1;
	ssize_t written = write(api->wake, &one, sizeof(one));
	(void)written; /* full is awake enough */
}

struct pause {
	int64_t until_ns; /* 0: not paused */
};

static void listen_again(struct api *api, struct pause *pause, bool listens)
{
	struct epoll_event event = {.events = listens ? EPOLLIN : 0, .data.ptr = (void *)(uintptr_t)&for_listener};
	epoll_ctl(api->epoll, EPOLL_CTL_MOD, api->listener.fd, &event);
	pause->until_ns = listens ? 0 : clock_mono_ns() + PAUSE_MS * NS_PER_MS;
}

/* Its connections end with it: their channels are closed, and the clients see theirs closed. */
static void lose_front(struct api *api, const char *why)
{
	struct err err = ERR_INIT;
	err_set(&err, ERR_LOST, "%s; it is started again", why);
	log_line(api, &err);
	if (api->front.pidfd >= 0)
		epoll_ctl(api->epoll, EPOLL_CTL_DEL, api->front.pidfd, NULL);
	front_end(&api->front);
}

static void start_front(struct api *api)
{
	struct err err = ERR_INIT;
	if (clock_mono_ns() - api->front.started_at_ns < FRONT_AGAIN_MS * NS_PER_MS)
		return;
	int result = front_start(api, &err);
	if (result == 0)
		result = watch(api, api->front.pidfd, &for_front, &err);
	if (result)
		log_line(api, &err);
}

static void accept_some(struct api *api, struct pause *pause)
{
	struct err err = ERR_INIT;
	int result = listener_accept(api, &err);
	if (result == 0)
		return;
	if (result == ERR_LOST)
		lose_front(api, err.text);
	else
		log_line(api, &err);
	listen_again(api, pause, false);
}

static void take(struct api *api, struct pause *pause, const struct epoll_event *event)
{
	uint64_t count;
	if (event->data.ptr == &for_wake) {
		ssize_t got = read(api->wake, &count, sizeof(count));
		(void)got;
	} else if (event->data.ptr == &for_front) {
		lose_front(api, "the front has ended");
		listen_again(api, pause, false);
	} else if (event->data.ptr == &for_listener) {
		if (api->front.intake >= 0)
			accept_some(api, pause);
	} else {
		schedule_readable(api, event->data.ptr);
	}
}

static int timeout_ms(int64_t next_ns, const struct pause *pause)
{
	int64_t now_ns = clock_mono_ns();
	if (pause->until_ns && pause->until_ns < next_ns)
		next_ns = pause->until_ns;
	if (next_ns == INT64_MAX)
		return -1;
	int64_t ms = (next_ns - now_ns) / NS_PER_MS + 1;
	return ms < TICK_MS ? TICK_MS : ms > API_LOOK_AGAIN_MS ? API_LOOK_AGAIN_MS : (int)ms;
}

static void end_pause(struct api *api, struct pause *pause)
{
	if (!pause->until_ns || clock_mono_ns() < pause->until_ns)
		return;
	if (api->front.intake < 0)
		start_front(api);
	listen_again(api, pause, api->front.intake >= 0);
}

static bool stopping(struct api *api)
{
	pthread_mutex_lock(&api->lock);
	bool result = api->stopping;
	pthread_mutex_unlock(&api->lock);
	return result;
}

void *loop_run(void *context)
{
	struct api *api = context;
	struct epoll_event events[EVENTS_MAX];
	struct pause pause = {0};
	while (!stopping(api)) {
		int64_t next_ns = schedule_due(api, clock_mono_ns());
		int count = epoll_wait(api->epoll, events, EVENTS_MAX, timeout_ms(next_ns, &pause));
		for (int i = 0; i < count; i++)
			take(api, &pause, &events[i]);
		end_pause(api, &pause);
		schedule_free_dead(api);
	}
	return NULL;
}
