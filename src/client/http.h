/* http.h - calls to a keeper's API over its socket: any number at a time, each bounded in time and in what may come back.
 *
 * A call is a plain struct of the caller's: filled in, started, and given back by http_finished when it is over. Whether a lost one
 * is made again is for the caller to say; nothing is repeated here. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/digest.h"
#include "base/error.h"

enum {
	HTTP_REPLY_MAX = 16 * 1024 * 1024, /* bytes of a reply that is kept */
	HTTP_PATH_SIZE = 512,
	HTTP_KEY_SIZE = 256,
	HTTP_EXTRA_FDS_MAX = 4,
	HTTP_TOO_MANY = 429,
	HTTP_UNAVAILABLE = 503,
};

/* The connections to one socket. */
struct http;

struct http_call {
	const char *method;
	char path[HTTP_PATH_SIZE];   /* from its first slash on */
	const char *idempotency_key; /* headers, or NULL */
	const char *last_event_id;
	const char *body; /* of a POST; borrowed until the call is over */
	size_t body_length;
	bool upload; /* a PUT of what body_fd holds, from where it stands */
	int body_fd; /* borrowed */
	int64_t body_bytes;
	int64_t wait_ms; /* how long the keeper was asked to wait before it answers; -1: for ever */
	/* Takes the body of a good reply piece by piece, instead of `reply`; a negative err_code ends the call with it. */
	int (*sink)(void *context, const void *bytes, size_t count);
	void *context;

	/* What came of it. */
	int result;   /* 0: a whole reply came, with whatever status. ERR_LOST, ERR_TIMEOUT, ERR_LIMIT, …: text in err */
	bool refused; /* ERR_LOST, and nobody was there to hear it */
	long status;
	int64_t retry_after_ms; /* -1: not said */
	int64_t offset;         /* Caisson-Offset; -1 */
	bool end;               /* Caisson-End: true */
	struct buf reply;
	struct digest sent; /* of what an upload has sent */
	struct err err;

	struct http_transfer *transfer; /* http.c's own; NULL unless it is under way */
};

int http_new(const char *socket_path, struct http **ret, struct err *err);
void http_free(struct http *http);
static inline void http_free_p(struct http **http)
{
	http_free(*http);
}
#define HTTP_AUTO __attribute__((cleanup(http_free_p)))

#define HTTP_CALL_INIT ((struct http_call){.body_fd = -1, .reply = BUF_INIT(HTTP_REPLY_MAX)})

/* Starts over with a call of this method and path. It must be HTTP_CALL_INIT or have been used; and not be under way. */
void http_call_set(struct http_call *call, const char *method, const char *path, ...) __attribute__((format(printf, 3, 4)));
void http_call_done(struct http_call *call);
#define HTTP_CALL_AUTO __attribute__((cleanup(http_call_done)))

/* Starts over with a PUT of all that a file holds. The keeper is given the time to store `stored` bytes in so many files, durably and on a slow
 * disk. ERR_IO. */
int http_call_upload(struct http_call *call, const char *path, int fd, int64_t bytes, int64_t stored, size_t files, struct err *err);

/* The call must stay where it is until http_finished has given it back, or http_stop was called. ERR_NO_MEMORY. */
int http_start(struct http *http, struct http_call *call, struct err *err);
void http_stop(struct http *http, struct http_call *call);

/* Moves all calls on; waits until there is something to do, one of `extra` (HTTP_EXTRA_FDS_MAX at most) is ready (revents is
 * set), or the time is over. ERR_IO. */
int http_wait(struct http *http, struct pollfd *extra, size_t count, int timeout_ms, struct err *err);

/* A call that is over, or NULL. */
struct http_call *http_finished(struct http *http);

/* One call, from its start to its end. Its result; the error is copied. */
int http_perform(struct http *http, struct http_call *call, struct err *err);
