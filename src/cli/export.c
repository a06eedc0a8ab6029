/* export.c - `caisson export RUN DIR`: a run's artifacts as files, by descriptor, over nothing that is there. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/object.h"

enum { PIECE_BYTES = 64 * 1024, DIRECTORY_MODE = 0755 };

static int open_target(const char *path, struct err *err)
{
	if (mkdir(path, DIRECTORY_MODE) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make %s", path);

	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_sys(err, errno, "open %s", path) : fd;
}

/* The directory that a path's last part is to be in, made where it is not there. Each step is beneath the one before, and no link. */
static int open_parent(int target, char *path, const char **ret_name, struct err *err)
{
	FD_AUTO int dir = fcntl(target, F_DUPFD_CLOEXEC, 0);
	char *part = path;

	for (char *slash; (slash = strchr(part, '/')); part = slash + 1) {
		*slash = '\0';
		if (mkdirat(dir, part, DIRECTORY_MODE) < 0 && errno != EEXIST)
			return err_sys(err, errno, "make a directory");

		int next = fd_open_beneath(dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

		if (next < 0)
			return err_sys(err, -next, "open a directory");
		fd_close(&dir);
		dir = next;
	}
	*ret_name = part;
	return dir < 0 ? err_sys(err, errno, "open the target") : fd_take(&dir);
}

static int copy(int from, int to, const struct digest *expected, struct err *err)
{
	char piece[PIECE_BYTES];
	struct digest digest;
	ssize_t got = 0;
	int result = 0;
	struct hasher *hasher = hasher_new();

	if (!hasher)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	while (result == 0 && (got = fd_read_full(from, piece, sizeof(piece))) > 0) {
		hasher_add(hasher, piece, (size_t)got);
		result = fd_write_all(to, piece, (size_t)got);
	}
	hasher_finish(hasher, &digest);
	hasher_free(hasher);
	if (got < 0 || result < 0)
		return err_sys(err, (int)(got < 0 ? -got : -result), "copy");
	return digest_equal(&digest, expected) ? 0 : err_set(err, ERR_DAMAGED, "the object does not match its digest");
}

static int write_file(struct store *store, int dir, const char *name, const struct artifact *artifact, struct err *err)
{
	FD_AUTO int object = -1;
	int64_t size = 0;
	int result = store_get(store, &artifact->sha256, &object, &size, err);

	if (result)
		return result;

	FD_AUTO int file = fd_open_beneath(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY, 0600);

	if (file < 0)
		return err_sys(err, -file, "make the file");
	result = copy(object, file, &artifact->sha256, err);
	if (result == 0 && fchmod(file, artifact->mode) < 0)
		result = err_sys(err, errno, "set the mode");
	if (result)
		unlinkat(dir, name, 0);
	return result;
}

static int export_artifact(struct store *store, int target, const struct artifact *artifact, struct err *err)
{
	char path[ARTIFACT_PATH_MAX + 1];
	const char *name = NULL;

	memcpy(path, artifact->path, strlen(artifact->path) + 1);
	FD_AUTO int dir = open_parent(target, path, &name, err);

	return dir < 0 ? dir : write_file(store, dir, name, artifact, err);
}

/* Asked before anything is written, so that a refusal leaves nothing behind; asked again by O_EXCL. */
static int check_absent(int target, const struct artifact *artifact, struct err *err)
{
	FD_AUTO int fd = fd_open_beneath(target, artifact->path, O_PATH | O_NOFOLLOW, 0);

	return fd == -ENOENT ? 0 : err_set(err, ERR_EXISTS, "something is there already");
}

/* For the text of an error. */
static int name_artifact(const struct artifact *artifact, int code, struct err *err)
{
	JSON_AUTO json_t *object = json_object();

	if (artifact_set_path(object, "path", artifact->path, NULL))
		return code;
	return err_context(err, code, "%s", json_string_value(json_object_get(object, "path")));
}

static int export_all(struct wiring *wiring, const struct artifact_list *list, int target, struct err *err)
{
	int result = 0;

	if (!wiring->store && list->count > 0)
		return err_set(err, ERR_NOT_FOUND, "the ledger's store is not there");
	for (size_t i = 0; i < list->count; i++)
		if ((result = check_absent(target, &list->items[i], err)))
			return name_artifact(&list->items[i], result, err);
	for (size_t i = 0; i < list->count; i++)
		if ((result = export_artifact(wiring->store, target, &list->items[i], err)))
			return name_artifact(&list->items[i], result, err);
	return 0;
}

static int run(struct options *options, struct err *err)
{
	WIRING_AUTO struct wiring wiring = WIRING_INIT;
	ARTIFACT_LIST_AUTO struct artifact_list list = {0};
	char run_id[ID_SIZE];
	int result = require_operands(options, 2, "one run and one directory", err);

	if (result == 0)
		result = wiring_open_run(options->ledger, options->operands[0], &wiring, run_id, err);
	if (result == 0)
		result = object_list(&wiring, run_id, &list, err);
	if (result)
		return result;

	FD_AUTO int target = open_target(options->operands[1], err);

	return target < 0 ? target : export_all(&wiring, &list, target, err);
}

const struct command command_export = {
	.name = "export",
	.bit = FOR_EXPORT,
	.usage = "[options] RUN DIR",
	.summary = "Writes all artifacts of a run below DIR, made when it is not there. Nothing that is there is overwritten.",
	.examples = "  caisson export latest results\n",
	.run = run,
};
