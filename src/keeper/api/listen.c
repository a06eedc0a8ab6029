/* listen.c - the socket of the API: made for its owner alone, and its connections handed to the front. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "keeper/api/api_internal.h"

enum {
	ACCEPT_MAX = 64,          /* at a time */
	HAND_OVER_MS = 10 * 1000, /* a front that takes nothing for so long is not well; on a busy machine it may only be late */
};

static int fill_address(const char *path, struct sockaddr_un *ret, struct err *err)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(ret->sun_path))
		return err_set(err, ERR_INVALID, "the socket's path is longer than %zu bytes: %s", sizeof(ret->sun_path) - 1, path);
	memcpy(ret->sun_path, path, strlen(path));
	return 0;
}

/* Nothing, or a socket that nobody listens on any more. */
static int check_free(const char *path, const struct sockaddr_un *address, struct err *err)
{
	struct stat status;
	if (lstat(path, &status) < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "look at %s", path);
	if (!S_ISSOCK(status.st_mode))
		return err_set(err, ERR_EXISTS, "%s is there, and is no socket", path);
	FD_AUTO int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0)
		return err_sys(err, errno, "make a socket");
	if (connect(probe, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN)
		return err_set(err, ERR_BUSY, "somebody serves on %s already", path);
	return 0;
}

/* Under another name first, so that it is never there with other rights than its own, and takes the place of an old one at once. */
static int bind_socket(int fd, const char *path, struct err *err)
{
	char name[sizeof(((struct sockaddr_un *)NULL)->sun_path)], unique[ID_SIZE];
	struct sockaddr_un address;
	id_new("tmp", unique);
	if (snprintf(name, sizeof(name), "%s.%s", path, unique) >= (int)sizeof(name))
		return err_set(err, ERR_INVALID, "the socket's path is too long: %s", path);
	int result = fill_address(name, &address, err);
	if (result)
		return result;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return err_sys(err, errno, "make the socket %s", path);
	if (chmod(name, 0600) < 0 || listen(fd, API_BACKLOG) < 0 || rename(name, path) < 0) {
		result = err_sys(err, errno, "listen on %s", path);
		unlink(name);
		return result;
	}
	return 0;
}

int listener_open(const char *path, struct listener *ret, struct err *err)
{
	struct sockaddr_un address;
	struct stat status;
	int result = fill_address(path, &address, err);
	if (result == 0)
		result = check_free(path, &address, err);
	if (result)
		return result;
	FD_AUTO int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, errno, "make a socket");
	result = bind_socket(fd, path, err);
	if (result)
		return result;
	char *copy = strdup(path);
	if (!copy || stat(path, &status) < 0) {
		free(copy);
		unlink(path);
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	}
	*ret = (struct listener){.fd = fd_take(&fd), .path = copy, .device = status.st_dev, .inode = status.st_ino};
	return 0;
}

void listener_close(struct listener *listener)
{
	struct stat status;
	if (!listener->path)
		return;
	/* Unless another keeper has taken its place. */
	if (lstat(listener->path, &status) == 0 && status.st_dev == listener->device && status.st_ino == listener->inode)
		unlink(listener->path);
	fd_close(&listener->fd);
	free(listener->path);
	listener->path = NULL;
}

static int read_peer(const struct api *api, int fd, struct peer *ret, struct err *err)
{
	struct ucred credentials;
	socklen_t length = sizeof(credentials);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
		return err_sys(err, errno, "who is it");
	*ret = (struct peer){.uid = credentials.uid, .admin = credentials.uid == 0 || credentials.uid == api->own_uid};
	snprintf(ret->principal, sizeof(ret->principal), "uid:%u", (unsigned)credentials.uid);
	return 0;
}

/* Only the loop adds connections. */
static bool has_room(struct api *api, const struct peer *peer)
{
	size_t total = 0, own = 0;
	pthread_mutex_lock(&api->lock);
	for (const struct connection *connection = api->all; connection; connection = connection->next) {
		total++;
		own += connection->peer.uid == peer->uid;
	}
	pthread_mutex_unlock(&api->lock);
	return total < API_CONNECTIONS_MAX && (peer->admin || own < API_CONNECTIONS_OF_UID_MAX);
}

static int unblock(int fd)
{
	return fcntl(fd, F_SETFL, O_NONBLOCK);
}

static int send_to_front(struct api *api, int client, int channel, struct err *err)
{
	struct channel intake = {.fd = api->front.intake};
	const struct channel_message message = {.text = "{}", .length = 2, .fds = {client, channel}, .fd_count = 2};
	struct pollfd room = {.fd = api->front.intake, .events = POLLOUT};
	if (poll(&room, 1, HAND_OVER_MS) <= 0)
		return err_set(err, ERR_LOST, "the front takes no connections");
	return channel_send(&intake, &message, err);
}

/* A client's socket, and its channel. */
struct arrival {
	int client, ours, theirs;
};

static void arrival_done(struct arrival *arrival)
{
	fd_close(&arrival->client);
	fd_close(&arrival->ours);
	fd_close(&arrival->theirs);
}

/* The channel first: when descriptors are short, nobody is accepted only to be sent away. 0 and no client: none is waiting. */
static int receive(const struct api *api, struct arrival *ret, struct err *err)
{
	int pair[2];
	int result = channel_pair(pair, err);
	if (result)
		return result;
	ret->ours = pair[0];
	ret->theirs = pair[1];
	if (unblock(ret->ours) < 0 || unblock(ret->theirs) < 0)
		return err_sys(err, errno, "make a channel");
	ret->client = accept4(api->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (ret->client < 0 && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
		return err_sys(err, errno, "accept a connection");
	return 0;
}

static int hand_over(struct api *api, struct arrival *arrival, struct err *err)
{
	struct peer peer;
	if (read_peer(api, arrival->client, &peer, NULL) || !has_room(api, &peer))
		return 0;
	int result = send_to_front(api, arrival->client, arrival->theirs, err);
	if (result)
		return err_context(err, ERR_LOST, "hand a connection over");
	result = schedule_add(api, arrival->ours, &peer, err);
	if (result == 0)
		fd_take(&arrival->ours);
	return result;
}

int listener_accept(struct api *api, struct err *err)
{
	int result = 0;
	bool more = true;
	for (int i = 0; i < ACCEPT_MAX && result == 0 && more; i++) {
		struct arrival arrival = {.client = -1, .ours = -1, .theirs = -1};
		result = receive(api, &arrival, err);
		more = arrival.client >= 0;
		if (result == 0 && more)
			result = hand_over(api, &arrival, err);
		arrival_done(&arrival);
	}
	return result;
}
