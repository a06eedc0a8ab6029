/* channel.c - bounded messages with descriptors over a sequenced-packet socket. */
#include "keeper/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"

/* The kernel wants a datagram and its overhead to fit into the send buffer at once; it doubles what is asked for. */
int channel_pair(int ret_fds[static 2], struct err *err)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "make a channel");
	for (size_t i = 0; i < 2; i++)
		if (setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &(int){CHANNEL_MESSAGE_MAX}, sizeof(int)) < 0) {
			int errnum = errno;
			fd_close(&pair[0]);
			fd_close(&pair[1]);
			return err_sys(err, errnum, "make room in a channel");
		}
	memcpy(ret_fds, pair, sizeof(pair));
	return 0;
}

int channel_init(struct channel *channel, int fd, struct err *err)
{
	char *incoming = malloc(CHANNEL_MESSAGE_MAX + 1);
	if (!incoming)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a channel");
	*channel = (struct channel){.fd = fd, .incoming = incoming};
	return 0;
}

void channel_done(struct channel *channel)
{
	fd_close(&channel->fd);
	free(channel->incoming);
	channel->incoming = NULL;
}

union control {
	char bytes[CMSG_SPACE(CHANNEL_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

static void put_fds(struct msghdr *header, union control *control, const int *fds, size_t count)
{
	if (count == 0)
		return;
	memset(control, 0, sizeof(*control));
	header->msg_control = control;
	header->msg_controllen = CMSG_SPACE(count * sizeof(int));
	struct cmsghdr *part = CMSG_FIRSTHDR(header);
	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(part), fds, count * sizeof(int));
}

int channel_send(struct channel *channel, const struct channel_message *message, struct err *err)
{
	union control control;
	struct iovec parts[] = {
		{.iov_base = (void *)(uintptr_t)message->text, .iov_len = message->length},
		{.iov_base = (void *)(uintptr_t)"", .iov_len = 1},
		{.iov_base = (void *)(uintptr_t)message->document, .iov_len = message->document_length},
	};
	struct msghdr header = {.msg_iov = parts, .msg_iovlen = message->document ? 3 : 1};
	size_t length = message->length + (message->document ? 1 + message->document_length : 0);
	if (length > CHANNEL_MESSAGE_MAX || message->fd_count > CHANNEL_FDS_MAX)
		return err_set(err, ERR_LIMIT, "a message of %zu bytes and %zu descriptors is too large", length, message->fd_count);
	put_fds(&header, &control, message->fds, message->fd_count);
	for (;;) {
		if (sendmsg(channel->fd, &header, MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno == EPIPE || errno == ECONNRESET)
			return err_set(err, ERR_LOST, "the other side of the channel is gone");
		if (errno != EINTR)
			return err_sys(err, errno, "send a message of %zu bytes", length);
	}
}

/* Whatever came is taken in before it is judged, so that nothing refused stays open. The control buffer is as large as agreed: the
 * kernel drops what goes beyond, and says so. */
static void take_fds(struct msghdr *header, struct channel_message *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(message->fds + message->fd_count, CMSG_DATA(part), count * sizeof(int));
		message->fd_count += count;
	}
}

int channel_receive(struct channel *channel, struct channel_message *ret, struct err *err)
{
	union control control;
	struct iovec part = {.iov_base = channel->incoming, .iov_len = CHANNEL_MESSAGE_MAX};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t got;
	do
		got = recvmsg(channel->fd, &header, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno != ECONNRESET)
		return err_sys(err, errno, "receive a message");
	if (got <= 0)
		return err_set(err, ERR_LOST, "the other side of the channel is gone");

	struct channel_message message = {.text = channel->incoming};
	take_fds(&header, &message);
	if (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		channel_message_done(&message);
		return err_set(err, ERR_PROTOCOL, "a message is longer than agreed");
	}
	channel->incoming[got] = '\0';
	message.length = strnlen(channel->incoming, (size_t)got);
	if (message.length < (size_t)got) {
		message.document = channel->incoming + message.length + 1;
		message.document_length = (size_t)got - message.length - 1;
	}
	*ret = message;
	return 0;
}

void channel_message_done(struct channel_message *message)
{
	for (size_t i = 0; i < message->fd_count; i++)
		fd_close(&message->fds[i]);
	message->fd_count = 0;
}
