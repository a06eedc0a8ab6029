/* client.c - a client's connection: its socket, which MHD owns, and its channel to the keeper. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "http/front.h"

enum { QUESTION_MAX = 16 * 1024 };

static int watch(struct client *client, int fd, uint32_t events, struct watch *watch)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};
	return epoll_ctl(client->front->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void unwatch(const struct client *client, int fd)
{
	epoll_ctl(client->front->epoll, EPOLL_CTL_DEL, fd, NULL);
}

static void link_client(struct client *client)
{
	struct front *front = client->front;
	client->next = front->clients;
	if (front->clients)
		front->clients->previous = client;
	front->clients = client;
}

static void unlink_client(struct client *client)
{
	struct front *front = client->front;
	if (client->next)
		client->next->previous = client->previous;
	if (client->previous)
		client->previous->next = client->next;
	else
		front->clients = client->next;
	client->next = front->closed;
	front->closed = client;
}

static struct client *client_new(struct front *front, struct channel_message *message)
{
	struct client *client = calloc(1, sizeof(*client));
	if (!client)
		return NULL;
	*client = (struct client){
		.front = front,
		.channel_watch = {.kind = WATCH_CHANNEL, .client = client},
		.socket_watch = {.kind = WATCH_SOCKET, .client = client},
		.socket = fd_take(&message->fds[0]),
		.channel = fd_take(&message->fds[1]),
	};
	link_client(client);
	client_deadline(client, clock_mono_ns(), FRONT_HEAD_MS, 0);
	return client;
}

/* ERR_PROTOCOL for a message that is none of the keeper's; one connection that cannot be taken is only closed. */
int client_arrive(struct front *front, struct channel_message *message, struct err *err)
{
	if (message->fd_count != 2)
		return err_set(err, ERR_PROTOCOL, "a connection came with %zu descriptors", message->fd_count);
	struct client *client = client_new(front, message);
	if (!client)
		return 0;
	if (watch(client, client->channel, EPOLLIN, &client->channel_watch) < 0) {
		fd_close(&client->socket);
		fd_close(&client->channel);
		unlink_client(client);
		return 0;
	}
	front->arriving = client;
	enum MHD_Result added = MHD_add_connection(front->daemon, client->socket, NULL, 0);
	front->arriving = NULL;
	/* MHD has closed the socket. What it told us about, client_notify has cleared up. */
	if (added != MHD_YES && client->channel >= 0) {
		fd_close(&client->channel);
		unlink_client(client);
	}
	return 0;
}

void client_notify(void *context, struct MHD_Connection *connection, void **socket_context,
                   enum MHD_ConnectionNotificationCode code)
{
	struct front *front = context;
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		front->arriving->connection = connection;
		*socket_context = front->arriving;
		return;
	}
	struct client *client = *socket_context;
	client->connection = NULL;
	fd_close(&client->channel);
	unlink_client(client);
}

void clients_free_closed(struct front *front)
{
	while (front->closed) {
		struct client *client = front->closed;
		front->closed = client->next;
		free(client);
	}
}

void client_deadline(struct client *client, int64_t from_ns, int64_t fixed_ms, uint64_t bytes)
{
	client->deadline_ns = from_ns + (fixed_ms + (int64_t)(bytes / FRONT_RATE_MIN) * 1000) * NS_PER_MS;
}

void client_check_deadline(struct client *client, int64_t now_ns)
{
	if (client->deadline_ns == 0 || now_ns < client->deadline_ns)
		return;
	client->deadline_ns = 0;
	client->gone = true;
	shutdown(client->socket, SHUT_RDWR); /* MHD sees the end, and closes */
}

static int send_question(struct client *client, const struct question *question, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(QUESTION_MAX);
	struct channel channel = {.fd = client->channel};
	int result = json_canonical(question->text, &text, err);
	if (result)
		return result;
	struct channel_message message = {
		.text = text.data,
		.length = text.len,
		.document = question->document,
		.document_length = question->document_length,
		.fds = {question->fd},
		.fd_count = question->fd >= 0,
	};
	return channel_send(&channel, &message, err);
}

int client_ask(struct client *client, struct request *request, struct question *question, struct err *err)
{
	int result = ERR_LOST;
	if (client->channel < 0 || client->gone)
		err_set(err, result, "the keeper has closed this connection");
	else if (!question->text)
		result = err_set(err, ERR_NO_MEMORY, "out of memory");
	else
		result = send_question(client, question, err);
	json_decref(question->text);
	question->text = NULL;
	if (result)
		return result;
	client->request = request;
	client->deadline_ns = 0; /* how long it takes is the keeper's to bound */
	/* MHD does not look at a suspended connection: that the client hangs up we have to notice ourselves. */
	watch(client, client->socket, 0, &client->socket_watch);
	MHD_suspend_connection(client->connection);
	return 0;
}

/* message NULL: there will be no answer. */
static void pass_on(struct client *client, struct channel_message *message)
{
	struct request *request = client->request;
	client->request = NULL;
	unwatch(client, client->socket);
	request_answer(request, message);
	MHD_resume_connection(client->connection);
}

/* The keeper wants to hear no more of this connection. */
static void lose_channel(struct client *client)
{
	fd_close(&client->channel);
	if (client->request)
		pass_on(client, NULL);
	else
		shutdown(client->socket, SHUT_RDWR);
}

void client_hear(struct client *client)
{
	struct channel channel = {.fd = client->channel, .incoming = client->front->incoming};
	struct channel_message message;
	if (!client->connection || client->channel < 0)
		return;
	if (channel_receive(&channel, &message, NULL)) {
		lose_channel(client);
		return;
	}
	if (client->request)
		pass_on(client, &message);
	else
		lose_channel(client); /* an answer to nothing */
	channel_message_done(&message);
}

void client_lose(struct client *client)
{
	if (!client->connection || !client->request)
		return;
	client->gone = true;
	fd_close(&client->channel);
	pass_on(client, NULL);
}
