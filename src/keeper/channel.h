/* channel.h - messages between a keeper and its worker, over one SOCK_SEQPACKET pair.
 *
 * A message is one canonical JSON text, optionally followed by a NUL and a document that travels as it is (a plan: its digest is of these very
 * bytes), with up to CHANNEL_FDS_MAX descriptors. Every call handles EINTR, and the death of the other side is ERR_LOST, never a signal. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
	CHANNEL_MESSAGE_MAX = 256 * 1024, /* text, NUL and document */
	CHANNEL_FDS_MAX = 8,
};

struct channel {
	int fd;
	char *incoming; /* CHANNEL_MESSAGE_MAX + 1 bytes, touched only as far as messages are long */
};

struct channel_message {
	const char *text; /* NUL-terminated */
	size_t length;
	const char *document; /* NULL: none. NUL-terminated when received */
	size_t document_length;
	int fds[CHANNEL_FDS_MAX];
	size_t fd_count;
};

/* Both ends, close-on-exec, with room for the longest message. */
int channel_pair(int ret_fds[static 2], struct err *err);

/* Takes the descriptor over on success. */
int channel_init(struct channel *channel, int fd, struct err *err);
void channel_done(struct channel *channel);

/* The descriptors stay the caller's. ERR_LIMIT when the message is too long, ERR_LOST. */
int channel_send(struct channel *channel, const struct channel_message *message, struct err *err);

/* Waits for the next message. The texts are valid until the next call; the descriptors are the caller's. ERR_LOST at EOF, ERR_PROTOCOL for
 * what is longer, or brings more descriptors, than agreed. */
int channel_receive(struct channel *channel, struct channel_message *ret, struct err *err);

/* Closes the descriptors that were not taken (set to -1). */
void channel_message_done(struct channel_message *message);
