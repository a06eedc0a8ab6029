/* capture.c - the bounded sink: a head that fills once and, with OVERFLOW_TRUNCATE, a ring behind it that keeps the tail.
 *
 * The spool holds the stream's byte n at offset n while n < head, and at head + (n - head) % ring above. It grows as bytes arrive, so its
 * size is min(total, limit), and everything else follows from total and limit. That is why a state is only counters: the place where
 * the ring begins is (total - head) % ring. */
#include "capture/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"

enum { PIECE_BYTES = 64 * 1024 }; /* one read, and one piece handed to a sink */

struct capture {
	int spool, notify;
	int64_t limit, head, ring; /* head + ring is limit, or with OVERFLOW_KILL head is limit and ring 0 */
	int64_t total;
	bool drained;
	bool settled; /* total is known: we wrote it, or the other side told us. Else only the growing head is */
};

static struct capture *make(int spool, int notify, int64_t limit_bytes, enum overflow_mode mode)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	if (!capture)
		return NULL;
	capture->spool = spool;
	capture->notify = notify;
	capture->limit = limit_bytes;
	capture->ring = mode == OVERFLOW_TRUNCATE ? limit_bytes / 2 : 0;
	capture->head = limit_bytes - capture->ring;
	return capture;
}

static int open_spool(int64_t limit_bytes, int spool_dir)
{
	if (limit_bytes <= CAPTURE_MEMORY_MAX)
		return memfd_create("caisson-capture", MFD_CLOEXEC);
	return openat(spool_dir, ".", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
}

int capture_new(int64_t limit_bytes, enum overflow_mode mode, int spool_dir, struct capture **ret, struct err *err)
{
	if (limit_bytes < 0)
		return err_set(err, ERR_INVALID, "capture limit is negative");
	FD_AUTO int spool = open_spool(limit_bytes, spool_dir);
	if (spool < 0)
		return err_sys(err, errno, "make a capture spool");
	FD_AUTO int notify = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (notify < 0)
		return err_sys(err, errno, "make a capture's eventfd");
	struct capture *capture = make(spool, notify, limit_bytes, mode);
	if (!capture)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a capture");
	fd_take(&spool);
	fd_take(&notify);
	*ret = capture;
	return 0;
}

int capture_attach(int spool_fd, int notify_fd, int64_t limit_bytes, enum overflow_mode mode, struct capture **ret, struct err *err)
{
	if (limit_bytes < 0)
		return err_set(err, ERR_INVALID, "capture limit is negative");
	struct capture *capture = make(spool_fd, notify_fd, limit_bytes, mode);
	if (!capture)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a capture");
	*ret = capture;
	return 0;
}

void capture_free(struct capture *capture)
{
	if (!capture)
		return;
	fd_close(&capture->spool);
	fd_close(&capture->notify);
	free(capture);
}

int capture_spool_fd(const struct capture *capture)
{
	return capture->spool;
}

int capture_notify_fd(const struct capture *capture)
{
	return capture->notify;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Where the stream's next byte goes, and how many bytes fit there in a row; 0 when it is to be dropped. */
static int64_t place(const struct capture *capture, int64_t *ret_offset)
{
	if (capture->total < capture->head) {
		*ret_offset = capture->total;
		return capture->head - capture->total;
	}
	if (capture->ring == 0)
		return 0;
	int64_t in_ring = (capture->total - capture->head) % capture->ring;
	*ret_offset = capture->head + in_ring;
	return capture->ring - in_ring;
}

static void notify(const struct capture *capture)
{
	/* A full counter means that the reader is awake already, so the result does not matter. */
	if (capture->notify >= 0)
		(void)!write(capture->notify, &(uint64_t){1}, sizeof(uint64_t));
}

/* The counters follow each single write, so that they agree with the spool after a failure too. */
int capture_write(struct capture *capture, const void *bytes, size_t count, struct err *err)
{
	const char *from = bytes;
	int fault = FAULT_ERR("capture.write", err);
	if (fault < 0)
		return fault;
	capture->settled = true;
	while (count > 0) {
		int64_t offset = 0, room = place(capture, &offset);
		if (room == 0) {
			capture->total += (int64_t)count;
			break;
		}
		ssize_t written = pwrite(capture->spool, from, (size_t)smaller(room, (int64_t)count), offset);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return err_sys(err, written < 0 ? errno : EIO, "write to a capture spool");
		capture->total += written;
		from += written;
		count -= (size_t)written;
	}
	notify(capture);
	return 0;
}

int capture_pump(struct capture *capture, int fd, size_t max, bool *ret_eof, struct err *err)
{
	char piece[PIECE_BYTES];
	while (max > 0) {
		ssize_t got = read(fd, piece, max < sizeof(piece) ? max : sizeof(piece));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return 0;
		if (got < 0)
			return err_sys(err, errno, "read from the guest's stream");
		if (got == 0) {
			*ret_eof = true;
			return 0;
		}
		int result = capture_write(capture, piece, (size_t)got, err);
		if (result < 0)
			return result;
		max -= (size_t)got;
	}
	return 0;
}

void capture_mark_drained(struct capture *capture)
{
	capture->drained = true;
	capture->settled = true;
}

/* What may be believed about `total`: our own count, or, while the other side writes, the head as far as the spool reaches. */
static int64_t known_total(const struct capture *capture)
{
	struct stat status;
	if (capture->settled)
		return capture->total;
	if (fstat(capture->spool, &status) < 0)
		return 0;
	return smaller(status.st_size, capture->head);
}

void capture_get_state(const struct capture *capture, struct capture_state *ret)
{
	int64_t total = known_total(capture), kept = smaller(total, capture->limit);
	*ret = (struct capture_state){
		.total_bytes = total,
		.kept_bytes = kept,
		.dropped_bytes = total - kept,
		.overflow = total > capture->limit,
		.drained = capture->drained,
	};
}

int capture_set_state(struct capture *capture, const struct capture_state *state, struct err *err)
{
	int64_t kept = smaller(state->total_bytes, capture->limit);
	if (state->total_bytes < 0 || state->kept_bytes != kept || state->dropped_bytes != state->total_bytes - kept ||
	    state->overflow != (state->total_bytes > capture->limit))
		return err_set(err, ERR_DAMAGED, "a capture's counters contradict each other");
	struct stat status;
	if (fstat(capture->spool, &status) < 0)
		return err_sys(err, errno, "look at a capture spool");
	if (status.st_size != kept)
		return err_set(err, ERR_DAMAGED, "a capture is said to hold %lld bytes, its spool has %lld", (long long)kept,
		               (long long)status.st_size);
	capture->total = state->total_bytes;
	capture->drained = state->drained;
	capture->settled = true;
	return 0;
}

/* Where byte `at` of the kept bytes lies in the spool, and how many follow it in a row. */
static int64_t locate(const struct capture *capture, int64_t total, int64_t at, int64_t *ret_offset)
{
	int64_t kept = smaller(total, capture->limit);
	if (at < capture->head || total <= capture->limit || capture->ring == 0) {
		*ret_offset = at;
		return smaller(kept, at < capture->head ? capture->head : capture->limit) - at;
	}
	int64_t begin = (total - capture->head) % capture->ring;
	int64_t in_ring = (begin + at - capture->head) % capture->ring;
	*ret_offset = capture->head + in_ring;
	return smaller(capture->ring - in_ring, kept - at);
}

int capture_read(struct capture *capture, int64_t offset, capture_sink_fn sink, void *context, struct err *err)
{
	char piece[PIECE_BYTES];
	int64_t total = known_total(capture), kept = smaller(total, capture->limit);
	while (offset < kept) {
		int64_t from = 0, row = locate(capture, total, offset, &from);
		ssize_t got = fd_pread_full(capture->spool, piece, (size_t)smaller(row, PIECE_BYTES), from);
		if (got < 0)
			return err_sys(err, (int)-got, "read a capture spool");
		if (got == 0)
			return err_set(err, ERR_DAMAGED, "a capture spool is shorter than it was");
		int result = sink(context, piece, (size_t)got);
		if (result != 0)
			return result;
		offset += got;
	}
	return 0;
}

static int add_to_hasher(void *context, const void *bytes, size_t count)
{
	hasher_add(context, bytes, count);
	return 0;
}

int capture_digest(struct capture *capture, struct digest *ret, struct err *err)
{
	struct hasher *hasher = hasher_new();
	if (!hasher)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a hasher");
	int result = capture_read(capture, 0, add_to_hasher, hasher, err);
	if (result == 0)
		hasher_finish(hasher, ret);
	hasher_free(hasher);
	return result;
}
