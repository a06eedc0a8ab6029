/* sources.c - finds, sends and replaces the sources of a manifest. */
#include "client/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/fd.h"
#include "client/reply.h"

/* As of what `caisson run` takes. */
#define OBJECT_MAX_BYTES (INT64_C(8) << 30)
#define STREAM_MAX_BYTES (INT64_C(1) << 30)

enum { PIECE_BYTES = 64 * 1024 };

json_t *sources_next(json_t *manifest, char path[static JSON_PATH_MAX])
{
	struct json_at root, at, element;

	json_at_root(manifest, &root);
	json_at_key(&root, "stdin", &at);
	if (json_object_get(at.value, "source")) {
		memcpy(path, at.path, sizeof(at.path));
		return json_object_get(manifest, "stdin");
	}
	json_at_key(&root, "inputs", &at);
	for (size_t i = 0; i < json_array_size(at.value); i++) {
		json_at_index(&at, i, &element);
		if (json_object_get(element.value, "source")) {
			memcpy(path, element.path, sizeof(element.path));
			return json_array_get(json_object_get(manifest, "inputs"), i);
		}
	}
	return NULL;
}

static int open_source(const char *name, bool is_stdin, struct stat *ret_status, struct err *err)
{
	/* O_NONBLOCK: a FIFO must be refused, not waited for. */
	FD_AUTO int fd =
		is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 || fstat(fd, ret_status) < 0)
		return err_sys(err, errno, "cannot be read");
	return fd_take(&fd);
}

/* Without a name; or in memory, where the directory's file system knows no such files. */
static int open_temporary(struct err *err)
{
	int fd = open(P_tmpdir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		fd = memfd_create("caisson-stdin", MFD_CLOEXEC);
	return fd < 0 ? err_sys(err, errno, "make a temporary file") : fd;
}

static int spool(int from, struct source *ret, struct err *err)
{
	char piece[PIECE_BYTES];
	ssize_t got = 0;
	FD_AUTO int fd = open_temporary(err);

	if (fd < 0)
		return fd;
	*ret = (struct source){.fd = -1};
	while ((got = fd_read_full(from, piece, sizeof(piece))) > 0) {
		ret->bytes += got;
		if (ret->bytes > STREAM_MAX_BYTES)
			return err_set(err, ERR_LIMIT, "more than %lld bytes", (long long)STREAM_MAX_BYTES);

		int failed = fd_write_all(fd, piece, (size_t)got);

		if (failed)
			return err_sys(err, -failed, "keep it in %s", P_tmpdir);
	}
	if (got < 0)
		return err_sys(err, (int)-got, "read");
	ret->fd = fd_take(&fd);
	return 0;
}

static int check_file(const struct stat *status, struct err *err)
{
	if (S_ISDIR(status->st_mode))
		return err_set(err, ERR_INVALID, "is a directory");
	if (!S_ISREG(status->st_mode))
		return err_set(err, ERR_INVALID, "is no regular file");
	if (status->st_size > OBJECT_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "more than %lld bytes", (long long)OBJECT_MAX_BYTES);
	return 0;
}

static int open_checked(const char *name, bool is_stdin, bool may_be_directory, struct source *ret, struct err *err)
{
	struct stat status;
	FD_AUTO int fd = open_source(name, is_stdin, &status, err);

	if (fd < 0)
		return fd;
	if (is_stdin && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
		return spool(fd, ret, err);
	if (may_be_directory && S_ISDIR(status.st_mode))
		return source_tree_open(fd_take(&fd), &ret->tree, err);

	int result = check_file(&status, err);

	if (result)
		return result;
	*ret = (struct source){.fd = fd_take(&fd), .bytes = (int64_t)status.st_size, .file = status};
	return 0;
}

int sources_open(const json_t *input, bool standard_input, struct source *ret, struct err *err)
{
	const char *name = json_string_value(json_object_get(input, "source"));
	bool is_input = json_object_get(input, "target"), is_stdin = !is_input && strcmp(name, "-") == 0;

	*ret = SOURCE_NONE;
	if (is_stdin && !standard_input)
		return err_set(err, ERR_UNSUPPORTED, "standard input is not for a program of a batch");

	int result = open_checked(name, is_stdin, is_input, ret, err);

	return result ? err_context(err, result, "%s", name) : 0;
}

void sources_close(struct source *source)
{
	fd_close(&source->fd);
	source_tree_free(source->tree);
	*source = SOURCE_NONE;
}

int sources_call(const struct source *source, struct http_call *ret, struct err *err)
{
	if (source->tree)
		return source_tree_call(source->tree, ret, err);
	return http_call_upload(ret, "/v1/objects", source->fd, source->bytes, source->bytes, 1, err);
}

int sources_replace(json_t *input, const char *digest, struct err *err)
{
	json_object_del(input, "source");
	if (json_object_set_new(input, "digest", json_string(digest)) < 0)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	return 0;
}

static int settle_tree(struct source_tree *tree, json_t *input, const struct http_call *call, struct err *err)
{
	char digest[DIGEST_TEXT_SIZE];
	int result = source_tree_hear(tree, call, err);

	return result ? result : sources_replace(input, digest_text(source_tree_digest(tree), digest), err);
}

int sources_settle(struct source *source, json_t *input, const struct http_call *call, struct err *err)
{
	JSON_AUTO json_t *document = NULL;
	char sent[DIGEST_TEXT_SIZE];

	if (source->tree)
		return settle_tree(source->tree, input, call, err);

	int result = reply_document(call, &document, err);

	if (result == 0)
		result = reply_stored(document, &call->sent, err);
	return result ? result : sources_replace(input, digest_text(&call->sent, sent), err);
}
