/* streams.c - what was captured, as the seal will have it: up to LEDGER_STREAM_ROW_MAX bytes a row, above that an object. */
#include "runner/drive.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "artifact/store.h"
#include "base/fd.h"

struct row {
	char *data;
	size_t length, room;
};

static int copy_to_row(void *context, const void *bytes, size_t count)
{
	struct row *row = context;
	if (count > row->room - row->length)
		return ERR_DAMAGED;
	memcpy(row->data + row->length, bytes, count);
	row->length += count;
	return 0;
}

static int keep_row(struct capture *capture, struct drive_stream *stream, struct err *err)
{
	struct row row = {.room = (size_t)stream->state.kept_bytes};
	row.data = malloc(row.room + 1); /* never NULL, so that no bytes are a row too */
	if (!row.data)
		return err_set(err, ERR_NO_MEMORY, "a stream of %zu bytes", row.room);
	int rc = capture_read(capture, 0, copy_to_row, &row, err);
	if (rc == 0 && row.length != row.room)
		rc = err_set(err, ERR_DAMAGED, "%zu bytes of a stream instead of %zu", row.length, row.room);
	if (rc < 0) {
		free(row.data);
		return rc;
	}
	stream->data = row.data;
	return 0;
}

static int copy_to_fd(void *context, const void *bytes, size_t count)
{
	return fd_write_all(*(int *)context, bytes, count) < 0 ? ERR_NO_SPACE : 0;
}

/* The kept bytes in their order, as a file: the spool itself where it is in order, else a copy without a name. */
static int in_order(const struct drive *drive, struct capture *capture, const struct capture_state *state, int *ret,
                    struct err *err)
{
	bool spool_is_in_order = state->dropped_bytes == 0 || drive->plan->limits.on_overflow == OVERFLOW_KILL;
	FD_AUTO int fd = spool_is_in_order
	                         ? fcntl(capture_spool_fd(capture), F_DUPFD_CLOEXEC, 0)
	                         : openat(store_dir_fd(drive->store), ".", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, ERR_IO, "a file for a stream");
	if (!spool_is_in_order) {
		int rc = capture_read(capture, 0, copy_to_fd, &fd, err);
		if (rc < 0)
			return err_set(err, rc, "copy a stream");
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, ERR_IO, "rewind a stream");
	*ret = fd_take(&fd);
	return 0;
}

int drive_hold_store(struct drive *drive, struct err *err)
{
	int rc = drive->holds_store ? 0 : store_hold(drive->store, err);
	drive->holds_store = rc == 0;
	return rc;
}

void drive_release_store(struct drive *drive)
{
	if (drive->holds_store)
		store_release(drive->store);
	drive->holds_store = false;
}

static int keep_object(struct drive *drive, struct capture *capture, struct drive_stream *stream, struct err *err)
{
	FD_AUTO int fd = -1;
	int rc = in_order(drive, capture, &stream->state, &fd, err);
	if (rc < 0)
		return rc;
	struct digest digest;
	int64_t size;
	rc = drive_hold_store(drive, err);
	if (rc < 0)
		return rc;
	rc = store_put_fd(drive->store, fd, stream->state.kept_bytes, true, &digest, &size, err);
	if (rc == 0 && (size != stream->state.kept_bytes || !digest_equal(&digest, &stream->sha256)))
		rc = err_set(err, ERR_DAMAGED, "a stream changed while it was stored");
	return rc;
}

/* A stream that cannot be kept: what arrived is still counted, and none of it is kept. */
static int keep_nothing(struct drive_stream *stream, struct err *err)
{
	stream->state.kept_bytes = 0;
	stream->state.dropped_bytes = stream->state.total_bytes;
	digest_of("", 0, &stream->sha256);
	stream->data = malloc(1);
	return stream->data ? 0 : err_set(err, ERR_NO_MEMORY, "an empty stream");
}

static int keep(struct drive *drive, struct capture *capture, struct drive_stream *stream, struct err *err)
{
	struct err failure = ERR_INIT;
	capture_get_state(capture, &stream->state);
	int rc = capture_digest(capture, &stream->sha256, &failure);
	if (rc == 0)
		rc = stream->state.kept_bytes <= LEDGER_STREAM_ROW_MAX ? keep_row(capture, stream, &failure)
		                                                       : keep_object(drive, capture, stream, &failure);
	if (rc == 0)
		return 0;
	say(drive->stream_failure, sizeof(drive->stream_failure), failure.text);
	return keep_nothing(stream, err);
}

/* A recovery finds no capture: what was launched may have written anything. */
static int keep_unknown(struct drive *drive, struct drive_stream *stream, struct err *err)
{
	int rc = keep_nothing(stream, err);
	if (rc == 0 && drive->life.intent)
		stream->state.total_bytes = stream->state.kept_bytes = stream->state.dropped_bytes = -1;
	return rc;
}

int drive_keep_streams(struct drive *drive, struct err *err)
{
	struct capture *const captures[2] = {drive->standard_output, drive->standard_error};
	for (size_t i = 0; i < 2; i++) {
		int rc = captures[i] ? keep(drive, captures[i], &drive->streams[i], err) : keep_unknown(drive, &drive->streams[i], err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
