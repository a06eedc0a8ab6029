/* loop.c - waits for the intake, for MHD, for answers and for time; everything else is called from here. */
#include "http/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/fd.h"

enum {
	EVENTS_MAX = 64,
	TICK_MS = 250, /* how exact deadlines are */
};

/* Names and values come as they were sent: what is decoded, and when, is decided in route.c. */
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text)
{
	(void)context, (void)connection;
	size_t length = 0;
	while (text[length])
		length++;
	return length;
}

/* MHD is not strict, but head.c is: of what MHD refuses while it reads a head, version 0.9.75 sends the head of its answer twice.
 * That is left to what nobody but MHD sees, such as a length that is no number. */
static int start_daemon(struct front *front, struct err *err)
{
	unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
	front->daemon = MHD_start_daemon(flags, 0, NULL, NULL, request_handle, front, MHD_OPTION_CONNECTION_LIMIT,
	                                 (unsigned)WIRE_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	                                 (size_t)FRONT_POOL_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)FRONT_STALL_S,
	                                 MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
	                                 MHD_OPTION_NOTIFY_COMPLETED, request_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION,
	                                 client_notify, front, MHD_OPTION_END);
	return front->daemon ? 0 : err_set(err, ERR_UNSUPPORTED, "libmicrohttpd cannot serve with epoll here");
}

static int watch(const struct front *front, int fd, struct watch *watch, struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
	return epoll_ctl(front->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? err_sys(err, errno, "watch a descriptor") : 0;
}

static int start(struct front *front, struct watch *intake, struct watch *http, struct err *err)
{
	front->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (front->epoll < 0)
		return err_sys(err, errno, "make an epoll");
	int result = channel_init(&front->intake, FRONT_INTAKE_FD, err);
	if (result)
		return result;
	/* A message is dealt with before the next one is received, so that one buffer is enough. */
	front->incoming = front->intake.incoming;
	result = start_daemon(front, err);
	if (result == 0)
		result = watch(front, FRONT_INTAKE_FD, intake, err);
	if (result == 0)
		result = watch(front, MHD_get_daemon_info(front->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, http, err);
	return result;
}

/* One connection a turn, so that those which are here are served in between. */
static int take_in(struct front *front, struct err *err)
{
	struct channel_message message;
	int result = channel_receive(&front->intake, &message, err);
	if (result)
		return result;
	result = client_arrive(front, &message, err);
	channel_message_done(&message);
	return result;
}

static int dispatch(struct front *front, const struct watch *watch, struct err *err)
{
	switch (watch->kind) {
	case WATCH_INTAKE:
		return take_in(front, err);
	case WATCH_HTTP: /* MHD_run comes after every wait */
		return 0;
	case WATCH_CHANNEL:
		client_hear(watch->client);
		return 0;
	case WATCH_SOCKET:
		client_lose(watch->client);
		return 0;
	}
	return 0;
}

static int wait_ms(const struct front *front)
{
	MHD_UNSIGNED_LONG_LONG http_ms;
	int ms = front->clients ? TICK_MS : -1;
	if (MHD_get_timeout(front->daemon, &http_ms) == MHD_YES && (ms < 0 || http_ms < (MHD_UNSIGNED_LONG_LONG)ms))
		ms = (int)http_ms;
	return ms;
}

static void check_deadlines(const struct front *front, int64_t *next_ns)
{
	int64_t now_ns = clock_mono_ns();
	if (now_ns < *next_ns)
		return;
	for (struct client *client = front->clients; client; client = client->next)
		client_check_deadline(client, now_ns);
	*next_ns = now_ns + TICK_MS * NS_PER_MS;
}

static int turn(struct front *front, int64_t *next_ns, struct err *err)
{
	struct epoll_event events[EVENTS_MAX];
	int count = epoll_wait(front->epoll, events, EVENTS_MAX, wait_ms(front));
	if (count < 0 && errno != EINTR)
		return err_sys(err, errno, "wait");
	for (int i = 0; i < count; i++) {
		int result = dispatch(front, events[i].data.ptr, err);
		if (result)
			return result;
	}
	if (MHD_run(front->daemon) != MHD_YES)
		return err_set(err, ERR_INTERNAL, "libmicrohttpd gave up");
	check_deadlines(front, next_ns);
	clients_free_closed(front);
	return 0;
}

int loop_run(struct err *err)
{
	struct front front = {.epoll = -1, .intake.fd = -1};
	struct watch intake = {.kind = WATCH_INTAKE}, http = {.kind = WATCH_HTTP};
	int64_t next_ns = 0;
	int result = start(&front, &intake, &http, err);
	while (result == 0)
		result = turn(&front, &next_ns, err);
	/* Without its keeper there is nothing left to say to anybody: the connections end with the process. */
	return result == ERR_LOST ? 0 : result;
}
