/* tree.c - reads a directory into its listing, and copies it on the way when that is wanted. */
#include "artifact/tree_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <string.h>
#include <unistd.h>

#include "artifact/name.h"
#include "artifact/store_internal.h"
#include "base/fd.h"
#include "base/json.h"

static int changed(const struct tree_entry *entry, struct err *err)
{
	return err_set(err, ERR_CONFLICT, "%s: changed while it was read", entry->path);
}

/* Copied when there is a place for it. */
static int read_bytes(struct tree_reading *reading, const struct tree_entry *entry, uint32_t mode, struct digest *ret, int64_t *ret_size,
                      struct err *err)
{
	struct stat status;
	FD_AUTO int from = fd_open_beneath(entry->dir, entry->name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	FD_AUTO int to = -1;
	if (from < 0)
		return err_sys(err, -from, "%s", entry->path);
	if (fstat(from, &status) < 0 || !note_same(&status, &entry->status))
		return changed(entry, err);
	if (entry->copy >= 0) {
		to = fd_open_beneath(entry->copy, entry->name, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (to < 0)
			return err_sys(err, -to, "copy %s", entry->path);
	}
	int result = store_copy_and_hash(from, to, reading->max_bytes - reading->bytes, ret, ret_size, err);
	if (result < 0)
		return err_context(err, result, "%s", entry->path);
	if (to >= 0 && fchmod(to, mode) < 0)
		return err_sys(err, errno, "copy %s", entry->path);
	if (fstat(from, &status) < 0 || !note_same(&status, &entry->status) || *ret_size != status.st_size)
		return changed(entry, err);
	reading->bytes += *ret_size;
	return 0;
}

static int read_file(struct tree_reading *reading, const struct tree_entry *entry, json_t *line, struct err *err)
{
	char text[DIGEST_TEXT_SIZE];
	struct digest digest;
	int64_t size = 0;
	bool executable = entry->status.st_mode & 0111;
	int result = read_bytes(reading, entry, executable ? 0555 : 0444, &digest, &size, err);
	if (result < 0)
		return result;
	if (json_object_set_new(line, "kind", json_string("file")) < 0 ||
	    json_object_set_new(line, "mode", json_string(executable ? "0555" : "0444")) < 0 ||
	    json_object_set_new(line, "sha256", json_string(digest_text(&digest, text))) < 0 ||
	    json_object_set_new(line, "size_bytes", json_integer(size)) < 0)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a listing");
	return 0;
}

/* Up, and then only down: so no way along links that are all like this one leads out, whatever the links on it point to. */
static const char *link_trouble(const char *path, const char *target)
{
	size_t depth = 0;
	if (*target == '/')
		return "is an absolute link";
	for (; *path; path++)
		depth += *path == '/';
	for (bool down = false; *target; target += strspn(target, "/")) {
		size_t length = strcspn(target, "/");
		bool up = length == 2 && target[0] == '.' && target[1] == '.';
		if (up && down)
			return "is a link that goes up after it went down";
		if (up && depth-- == 0)
			return "is a link that leaves the directory";
		down = down || !(up || (length == 1 && target[0] == '.'));
		target += length;
	}
	return NULL;
}

static int read_link(const struct tree_entry *entry, json_t *line, struct err *err)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(entry->dir, entry->name, target, sizeof(target));
	if (length < 0)
		return err_sys(err, errno, "%s", entry->path);
	if (length == sizeof(target))
		return err_set(err, ERR_LIMIT, "%s: is too long a link", entry->path);
	target[length] = '\0';
	const char *trouble = link_trouble(entry->path, target);
	if (trouble)
		return err_set(err, ERR_INVALID, "%s: %s", entry->path, trouble);
	if (entry->copy >= 0 && symlinkat(target, entry->copy, entry->name) < 0)
		return err_sys(err, errno, "copy %s", entry->path);
	if (json_object_set_new(line, "kind", json_string("link")) < 0)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a listing");
	return artifact_set_path(line, "target", target, err);
}

static const char *kind_of(mode_t mode)
{
	if (S_ISFIFO(mode))
		return "a FIFO";
	if (S_ISSOCK(mode))
		return "a socket";
	return "a device";
}

static int read_entry(struct tree_reading *reading, const struct tree_entry *entry, json_t *line, struct err *err)
{
	mode_t mode = entry->status.st_mode;
	if (S_ISREG(mode))
		return read_file(reading, entry, line, err);
	if (S_ISLNK(mode))
		return read_link(entry, line, err);
	if (!S_ISDIR(mode))
		return err_set(err, ERR_INVALID, "%s: is %s", entry->path, kind_of(mode));
	return json_object_set_new(line, "kind", json_string("dir")) < 0 ? err_set(err, ERR_NO_MEMORY, "out of memory for a listing") : 0;
}

static int visit(void *context, const struct tree_entry *entry, struct err *err)
{
	struct tree_reading *reading = context;
	JSON_AUTO json_t *line = json_object();
	int result = line ? read_entry(reading, entry, line, err) : err_set(err, ERR_NO_MEMORY, "out of memory for a listing");
	if (result == 0)
		result = artifact_set_path(line, "path", entry->path, err);
	if (result == 0)
		result = buf_puts(&reading->listing, reading->listing.len ? "," : "[", err);
	return result < 0 ? result : json_canonical(line, &reading->listing, err);
}

int tree_read(int dir, int copy, struct tree_reading *ret, struct err *err)
{
	int result = tree_walk(dir, copy, visit, ret, err);
	if (result == 0)
		result = buf_puts(&ret->listing, ret->listing.len ? "]" : "[]", err);
	if (result == 0)
		digest_of(ret->listing.data, ret->listing.len, &ret->digest);
	return result;
}

int tree_digest(int dir, int64_t max_bytes, struct digest *ret, int64_t *ret_size, struct err *err)
{
	struct tree_reading reading = TREE_READING_INIT(max_bytes);
	int result = tree_read(dir, -1, &reading, err);
	if (result == 0) {
		*ret = reading.digest;
		*ret_size = reading.bytes;
	}
	buf_done(&reading.listing);
	return result;
}

int tree_list(int dir, int64_t max_bytes, struct buf *ret, int64_t *ret_size, struct err *err)
{
	struct tree_reading reading = {.listing = *ret, .max_bytes = max_bytes};
	int result = tree_read(dir, -1, &reading, err);
	*ret = reading.listing;
	*ret_size = reading.bytes;
	return result;
}
