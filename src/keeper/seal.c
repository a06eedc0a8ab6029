/* seal.c - seals the inputs of a run. */
#include "keeper/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/tree.h"
#include "base/fd.h"

enum { PIECE_BYTES = 64 * 1024 };

void seal_done(struct sealed *sealed)
{
	free(sealed->inputs);
	*sealed = (struct sealed){0};
}

static int digest_fd(int fd, int64_t max_bytes, struct plan_input *ret, struct err *err)
{
	char piece[PIECE_BYTES];
	int64_t size = 0;
	ssize_t got = 0;
	struct hasher *hasher = hasher_new();

	if (!hasher)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	while (size <= max_bytes && (got = fd_read_full(fd, piece, sizeof(piece))) > 0) {
		hasher_add(hasher, piece, (size_t)got);
		size += got;
	}
	hasher_finish(hasher, &ret->digest);
	hasher_free(hasher);
	if (got < 0)
		return err_sys(err, (int)-got, "read");
	if (size > max_bytes)
		return err_set(err, ERR_LIMIT, "more than %lld bytes", (long long)max_bytes);
	ret->size_bytes = size;
	return 0;
}

static int seal_fd(struct store *store, int fd, int64_t max_bytes, struct plan_input *ret, struct err *err)
{
	if (!store)
		return digest_fd(fd, max_bytes, ret, err);
	return store_put_fd(store, fd, max_bytes, true, &ret->digest, &ret->size_bytes, err);
}

static int seal_directory(struct store *store, int dir, struct plan_input *ret, struct err *err)
{
	ret->kind = PLAN_INPUT_TREE;
	if (!store)
		return tree_digest(dir, SEAL_MAX_BYTES, &ret->digest, &ret->size_bytes, err);
	return store_put_tree(store, dir, SEAL_MAX_BYTES, &ret->digest, &ret->size_bytes, err);
}

static int seal_source(struct store *store, const char *source, struct plan_input *ret, struct err *err)
{
	struct stat status;
	/* O_NONBLOCK: a FIFO must be refused, not waited for. */
	FD_AUTO int fd = open(source, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &status) < 0)
		return err_sys(err, errno, "cannot be read");
	if (S_ISDIR(status.st_mode))
		return seal_directory(store, fd, ret, err);
	if (!S_ISREG(status.st_mode))
		return err_set(err, ERR_INVALID, "is neither a regular file nor a directory");
	return seal_fd(store, fd, SEAL_MAX_BYTES, ret, err);
}

/* Standard input may also come from a pipe or a device: it is one stream, and it is bounded. */
static int seal_stdin_source(struct store *store, const char *source, struct plan_input *ret, struct err *err)
{
	if (strcmp(source, "-") == 0)
		return seal_fd(store, STDIN_FILENO, SEAL_STDIN_MAX_BYTES, ret, err);

	FD_AUTO int fd = open(source, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_sys(err, errno, "cannot be read");
	return seal_fd(store, fd, SEAL_STDIN_MAX_BYTES, ret, err);
}

static int seal_text(struct store *store, const struct manifest_input *input, struct plan_input *ret, struct err *err)
{
	ret->size_bytes = (int64_t)input->text_length;
	if (store)
		return store_put_bytes(store, input->text, input->text_length, true, &ret->digest, err);
	digest_of(input->text, input->text_length, &ret->digest);
	return 0;
}

/* A directory that was sealed is one again; its listing is not handed out under the same digest. */
static int find_digest(struct store *store, const struct manifest_input *input, struct plan_input *ret, struct err *err)
{
	struct err failure = ERR_INIT;
	char name[DIGEST_TEXT_SIZE];
	FD_AUTO int fd = -1;

	if (!store)
		return err_set(err, ERR_UNSUPPORTED, "an input by digest is looked up when it runs");
	ret->digest = input->digest;
	ret->kind = PLAN_INPUT_TREE;

	int result = store_get_tree(store, &input->digest, &fd, &ret->size_bytes, &failure);

	if (result == ERR_NOT_FOUND) {
		ret->kind = PLAN_INPUT_FILE;
		result = store_get(store, &input->digest, &fd, &ret->size_bytes, &failure);
	}
	if (result == ERR_NOT_FOUND)
		return err_set(err, result, "%s is not in the store", digest_text(&input->digest, name));
	if (result < 0)
		return err_set(err, result, "%s", failure.text);
	if (ret->kind == PLAN_INPUT_TREE && !input->target)
		return err_set(err, ERR_INVALID, "is a directory, which standard input cannot be");
	return 0;
}

static int seal_input(struct store *store, const struct manifest_input *input, struct plan_input *ret, struct err *err)
{
	int result = 0;

	switch (input->kind) {
	case INPUT_NONE:
		return 0;
	case INPUT_TEXT:
		return seal_text(store, input, ret, err);
	case INPUT_DIGEST:
		return find_digest(store, input, ret, err);
	case INPUT_SOURCE:
		if (input->target)
			result = seal_source(store, input->source, ret, err);
		else
			result = seal_stdin_source(store, input->source, ret, err);
		return result ? err_context(err, result, "%s", input->source) : 0;
	}
	return err_set(err, ERR_INTERNAL, "unknown kind of input");
}

int seal_inputs(struct store *store, const struct manifest *manifest, struct sealed *ret, struct err *err)
{
	int result = seal_input(store, &manifest->standard_input, &ret->plan.stdin_input, err);

	if (result)
		return err_context(err, result, "stdin");
	ret->inputs = calloc(manifest->input_count + 1, sizeof(*ret->inputs));
	if (!ret->inputs)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < manifest->input_count; i++) {
		const struct manifest_input *input = &manifest->inputs[i];

		result = seal_input(store, input, &ret->inputs[i], err);
		if (result)
			return err_context(err, result, "input %s", input->target);
		ret->inputs[i].mode = input->mode;
	}
	ret->plan.inputs = ret->inputs;
	ret->plan.input_count = manifest->input_count;
	return 0;
}
