/* capture.h - a bounded sink for one output stream.
 *
 * The bytes live in a spool: a memfd for a limit up to CAPTURE_MEMORY_MAX, an unlinked file in the spool directory above. The keeper makes
 * the spool; the worker, sharing the descriptor, writes to it; so the keeper can read what was captured also when the worker dies.
 *
 * With OVERFLOW_KILL exactly the first `limit` bytes are kept, and one byte more is overflow. With OVERFLOW_TRUNCATE limit/2 of head and
 * limit/2 of tail are kept (the head takes the odd byte), the rest is read and counted. Exactly the limit is never overflow.
 *
 * An object is used by one thread. Another thread that wants to read along attaches an object of its own to duplicates of the
 * descriptors. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/digest.h"
#include "base/error.h"
#include "manifest/manifest.h"

enum { CAPTURE_MEMORY_MAX = 4 * 1024 * 1024 };

struct capture;

/* What is known of a stream; travels from worker to keeper. The counters say all there is: where the tail begins in the spool follows
 * from total and limit. */
struct capture_state {
	int64_t total_bytes;   /* written by the guest and read by us */
	int64_t kept_bytes;
	int64_t dropped_bytes; /* total - kept */
	bool overflow;         /* more than the limit arrived */
	bool drained;          /* EOF was seen */
};

/* Makes spool and sink. spool_dir: descriptor of a directory, used only above CAPTURE_MEMORY_MAX. */
int capture_new(int64_t limit_bytes, enum overflow_mode mode, int spool_dir, struct capture **ret, struct err *err);

/* The other side of the same spool, from a descriptor that was passed over; takes ownership of both descriptors on success.
 * notify_fd is an eventfd that is written at each growth, or -1. */
int capture_attach(int spool_fd, int notify_fd, int64_t limit_bytes, enum overflow_mode mode, struct capture **ret, struct err *err);

void capture_free(struct capture *capture);

/* Borrowed descriptors, to be passed to the worker. */
int capture_spool_fd(const struct capture *capture);
int capture_notify_fd(const struct capture *capture);

/* Takes bytes that were read from the guest. ERR_NO_SPACE, ERR_IO when the spool fails (a disk that is full): then the run must not
 * be judged by this stream. */
int capture_write(struct capture *capture, const void *bytes, size_t count, struct err *err);

/* Reads at most `max` bytes from a non-blocking descriptor into the sink. *ret_eof is set at EOF. 0 also when there was nothing to
 * read (EAGAIN). */
int capture_pump(struct capture *capture, int fd, size_t max, bool *ret_eof, struct err *err);

void capture_mark_drained(struct capture *capture);

/* On the side that does not write, and until capture_set_state: what the spool's head shows, not drained. So it is also the best that can
 * be said of a stream whose writer died. */
void capture_get_state(const struct capture *capture, struct capture_state *ret);

/* Takes over what the other side reported; the keeper calls it before it reads the kept bytes. ERR_DAMAGED when it contradicts
 * the spool. */
int capture_set_state(struct capture *capture, const struct capture_state *state, struct err *err);

/* Digest of the kept bytes, in order: head, then tail (the ring put straight). */
int capture_digest(struct capture *capture, struct digest *ret, struct err *err);

/* Calls `sink` with consecutive pieces of the kept bytes from `offset` on, in order. Stops at a non-zero result and returns it.
 * While the run goes on (live reading of the head) only what is settled is given. */
typedef int (*capture_sink_fn)(void *context, const void *bytes, size_t count);
int capture_read(struct capture *capture, int64_t offset, capture_sink_fn sink, void *context, struct err *err);
