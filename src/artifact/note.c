/* note.c - remembers as what file an object was found right, so that a large one is not read again for each run (docs/adr/0010). */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "artifact/store_internal.h"
#include "base/clock.h"
#include "base/fd.h"

enum {
	NOTE_MODE = 0400,
	SETTLED_NS = 2 * NS_PER_MS, /* covers file systems that stamp by the millisecond */
};

size_t note_describe(const struct stat *object, char text[static NOTE_TEXT_SIZE])
{
	return (size_t)snprintf(text, NOTE_TEXT_SIZE, "%ju %ju %jd %jd.%09ld\n", (uintmax_t)object->st_dev, (uintmax_t)object->st_ino,
	                        (intmax_t)object->st_size, (intmax_t)object->st_ctim.tv_sec, object->st_ctim.tv_nsec);
}

static bool is_note(const struct stat *status)
{
	return S_ISREG(status->st_mode) && status->st_nlink == 1 && status->st_uid == geteuid() &&
	       (status->st_mode & 07777) == NOTE_MODE;
}

static int open_notes(struct store *store)
{
	return fd_open_beneath(store->dir, NOTES_DIR, O_RDONLY | O_DIRECTORY, 0);
}

bool note_holds_text(struct store *store, const char *name, const char *text, size_t length)
{
	char found[NOTE_TEXT_SIZE];
	struct stat status;
	FD_AUTO int notes = open_notes(store);
	FD_AUTO int fd = notes < 0 ? -1 : fd_open_beneath(notes, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 || fstat(fd, &status) < 0 || !is_note(&status))
		return false;
	return fd_read_full(fd, found, sizeof(found)) == (ssize_t)length && memcmp(found, text, length) == 0;
}

bool note_holds(struct store *store, const struct digest *digest, const struct stat *object)
{
	char name[DIGEST_HEX_SIZE], text[NOTE_TEXT_SIZE];
	if (object->st_size < NOTE_MIN_BYTES)
		return false;
	size_t length = note_describe(object, text);
	return note_holds_text(store, digest_hex(digest, name), text, length);
}

bool note_settled(const struct stat *object)
{
	struct timespec now; /* the clock that file systems stamp by */
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	now.tv_nsec -= SETTLED_NS;
	if (now.tv_nsec < 0) {
		now.tv_sec--;
		now.tv_nsec += NS_PER_S;
	}
	if (object->st_ctim.tv_nsec == 0) /* perhaps they are whole seconds here */
		return false;
	return object->st_ctim.tv_sec < now.tv_sec ||
	       (object->st_ctim.tv_sec == now.tv_sec && object->st_ctim.tv_nsec <= now.tv_nsec);
}

bool note_same(const struct stat *before, const struct stat *after)
{
	char first[NOTE_TEXT_SIZE], second[NOTE_TEXT_SIZE];
	note_describe(before, first);
	note_describe(after, second);
	return strcmp(first, second) == 0;
}

/* Written without a name, as objects are. Not synced: what a power cut leaves of it matches nothing. */
void note_write_text(struct store *store, const char *name, const char *text, size_t length)
{
	char self[32];
	FD_AUTO int fd = openat(store->tmp, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, NOTE_MODE);
	if (fd < 0 || fchmod(fd, NOTE_MODE) < 0 || fd_write_all(fd, text, length) < 0)
		return;
	(void)mkdirat(store->dir, NOTES_DIR, 0700);
	FD_AUTO int notes = open_notes(store);
	if (notes < 0)
		return;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	(void)unlinkat(notes, name, 0);
	(void)!linkat(AT_FDCWD, self, notes, name, AT_SYMLINK_FOLLOW);
}

void note_write(struct store *store, const struct digest *digest, const struct stat *object)
{
	char name[DIGEST_HEX_SIZE], text[NOTE_TEXT_SIZE];
	if (object->st_size < NOTE_MIN_BYTES)
		return;
	size_t length = note_describe(object, text);
	note_write_text(store, digest_hex(digest, name), text, length);
}

void note_remove_text(struct store *store, const char *name)
{
	FD_AUTO int notes = open_notes(store);
	if (notes >= 0)
		(void)unlinkat(notes, name, 0);
}

void note_remove(struct store *store, const struct digest *digest)
{
	char name[DIGEST_HEX_SIZE];
	note_remove_text(store, digest_hex(digest, name));
}
