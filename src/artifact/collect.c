/* collect.c - first every name is looked at, then, if none is against the rules, every file is copied.
 *
 * Directories wait in a list as paths from the place's root, so a tree of any depth is walked without recursion and with one
 * descriptor at a time. A change is seen by what the kernel says of the file before the first look and after the last byte; a file
 * system's clock has a grain, so two writes within one tick are told apart by their sizes only: that nobody writes any more is for
 * the caller to know. */
#include "artifact/collect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/* A regular file as it was at the first look. */
struct found {
	char *path;
	struct stat status;
};

struct names {
	char **list;
	size_t count;
};

struct collecting {
	int root;
	const struct collect_rules *rules;
	struct store *store;
	struct artifact_list *list;
	struct found files[ARTIFACT_FILES_MAX];
	size_t file_count, file_names_bytes;
	int64_t bytes;
	struct names waiting; /* directories; COLLECT_ENTRIES_MAX fit */
	size_t entries;
	bool too_many_files, too_many_entries, too_long_names; /* said once */
};

struct collect_rules collect_rules_of(const struct plan *plan)
{
	return (struct collect_rules){
		.max_files = plan->limits.artifact_files,
		.max_file_bytes = plan->limits.artifact_file_bytes,
		.max_bytes = plan->limits.artifact_bytes,
		.required = (const char *const *)plan->required_outputs,
		.required_count = plan->required_output_count,
	};
}

static const char changed[] = "changed while it was read";

static int out_of_memory(struct err *err)
{
	return err_set(err, ERR_NO_MEMORY, "out of memory for the collector");
}

static int open_within(int dir, const char *path, uint64_t flags)
{
	const struct open_how how = {
		.flags = flags | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};
	int fd;
	do
		fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

/* What cannot be opened is a rejection when it is about that name, and our own failure otherwise. */
static int refuse(struct collecting *collecting, const char *path, int errnum, struct err *err)
{
	switch (errnum) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case EAGAIN:
	case ESTALE:
		artifact_reject(collecting->list, path, "%s", changed);
		return 0;
	case EXDEV: /* a mount, or it was moved away under our eyes */
		artifact_reject(collecting->list, path, "leads out of the output place");
		return 0;
	case EACCES:
	case EPERM:
		artifact_reject(collecting->list, path, "cannot be read");
		return 0;
	default:
		return err_sys(err, errnum, "look into the output place");
	}
}

static void names_done(struct names *names)
{
	while (names->count > 0)
		free(names->list[--names->count]);
	free(names->list);
	names->list = NULL;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct found *)a)->path, ((const struct found *)b)->path);
}

static int add_name(struct names *names, size_t *capacity, const char *name, struct err *err)
{
	if (names->count == *capacity) {
		size_t larger = *capacity ? 2 * *capacity : 64;
		char **list = realloc(names->list, larger * sizeof(*list));
		if (!list)
			return out_of_memory(err);
		names->list = list;
		*capacity = larger;
	}
	names->list[names->count] = strdup(name);
	return names->list[names->count++] ? 0 : out_of_memory(err);
}

/* All names of a directory but its own two, sorted. Takes fd over. Beyond COLLECT_ENTRIES_MAX the rest of the place is left
 * unread. */
static int read_names(struct collecting *collecting, int fd, struct names *ret, struct err *err)
{
	size_t capacity = 0;
	int result = 0;
	DIR *stream = fdopendir(fd);
	if (!stream) {
		close(fd);
		return out_of_memory(err);
	}
	while (result == 0 && !collecting->too_many_entries) {
		errno = 0;
		const struct dirent *entry = readdir(stream);
		if (!entry && errno)
			result = err_sys(err, errno, "list the output place");
		if (!entry)
			break;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (collecting->entries++ == COLLECT_ENTRIES_MAX) {
			artifact_reject(collecting->list, "", "more than %d names", COLLECT_ENTRIES_MAX);
			collecting->too_many_entries = true;
		} else {
			result = add_name(ret, &capacity, entry->d_name, err);
		}
	}
	closedir(stream);
	if (result == 0 && ret->count > 0)
		qsort(ret->list, ret->count, sizeof(*ret->list), by_bytes);
	return result;
}

static const char *kind_of(mode_t mode)
{
	if (S_ISLNK(mode))
		return "is a symbolic link";
	if (S_ISFIFO(mode))
		return "is a FIFO";
	if (S_ISSOCK(mode))
		return "is a socket";
	if (S_ISCHR(mode) || S_ISBLK(mode))
		return "is a device";
	return "is no regular file";
}

/* path's memory is taken over when the file is kept: then *path is NULL. */
static void add_file(struct collecting *collecting, char **path, const struct stat *status)
{
	const struct collect_rules *rules = collecting->rules;
	int64_t most = rules->max_files < ARTIFACT_FILES_MAX ? rules->max_files : ARTIFACT_FILES_MAX;
	size_t length = strlen(*path);
	if ((int64_t)collecting->file_count >= most) {
		if (!collecting->too_many_files)
			artifact_reject(collecting->list, "", "more than %lld files", (long long)most);
		collecting->too_many_files = true;
	} else if (collecting->file_names_bytes + length > ARTIFACT_NAMES_BYTES_MAX) {
		if (!collecting->too_long_names)
			artifact_reject(collecting->list, "", "paths of more than %d bytes together", ARTIFACT_NAMES_BYTES_MAX);
		collecting->too_long_names = true;
	} else if (status->st_size > rules->max_file_bytes) {
		artifact_reject(collecting->list, *path, "has %lld bytes, more than %lld", (long long)status->st_size,
		                (long long)rules->max_file_bytes);
	} else {
		collecting->bytes += status->st_size;
		collecting->file_names_bytes += length;
		collecting->files[collecting->file_count++] = (struct found){.path = *path, .status = *status};
		*path = NULL;
	}
}

static int look_at(struct collecting *collecting, int dir, const char *name, char **path, struct err *err)
{
	struct stat status;
	FD_AUTO int fd = open_within(dir, name, O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return refuse(collecting, *path, -fd, err);
	if (fstat(fd, &status) < 0)
		return err_sys(err, errno, "look into the output place");
	if (S_ISREG(status.st_mode)) {
		add_file(collecting, path, &status);
	} else if (S_ISDIR(status.st_mode)) {
		collecting->waiting.list[collecting->waiting.count++] = *path;
		*path = NULL;
	} else {
		artifact_reject(collecting->list, *path, "%s", kind_of(status.st_mode));
	}
	return 0;
}

static size_t parts_of(const char *path)
{
	size_t parts = 1;
	for (; *path; path++)
		parts += *path == '/';
	return parts;
}

/* parent: "" is the root. */
static int look_at_name(struct collecting *collecting, int dir, const char *parent, const char *name, struct err *err)
{
	char *path = NULL;
	if (asprintf(&path, "%s%s%s", parent, *parent ? "/" : "", name) < 0)
		return out_of_memory(err);
	int result = 0;
	if (strlen(path) > ARTIFACT_PATH_MAX)
		artifact_reject(collecting->list, path, "has a path of more than %d bytes", ARTIFACT_PATH_MAX);
	else if (parts_of(path) > COLLECT_DEPTH_MAX)
		artifact_reject(collecting->list, path, "is more than %d levels deep", COLLECT_DEPTH_MAX);
	else
		result = look_at(collecting, dir, name, &path, err);
	free(path);
	return result;
}

static int look_into(struct collecting *collecting, const char *path, struct err *err)
{
	struct names names = {0};
	FD_AUTO int dir = open_within(collecting->root, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (dir < 0)
		return refuse(collecting, path, -dir, err);
	int stream = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	int result = stream < 0 ? err_sys(err, errno, "look into the output place") : read_names(collecting, stream, &names, err);
	for (size_t i = 0; result == 0 && i < names.count; i++)
		result = look_at_name(collecting, dir, path, names.list[i], err);
	names_done(&names);
	return result;
}

static int look_at_all(struct collecting *collecting, struct err *err)
{
	struct names *waiting = &collecting->waiting;
	waiting->list = calloc(COLLECT_ENTRIES_MAX, sizeof(*waiting->list));
	int result = waiting->list ? look_into(collecting, "", err) : out_of_memory(err);
	while (result == 0 && waiting->count > 0) {
		char *path = waiting->list[--waiting->count];
		result = look_into(collecting, path, err);
		free(path);
	}
	qsort(collecting->files, collecting->file_count, sizeof(collecting->files[0]), by_path);
	if (result == 0 && collecting->bytes > collecting->rules->max_bytes)
		artifact_reject(collecting->list, "", "%lld bytes together, more than %lld", (long long)collecting->bytes,
		                (long long)collecting->rules->max_bytes);
	return result;
}

static bool is_rejected(const struct artifact_list *list, const char *path)
{
	for (size_t i = 0; i < artifact_rejections(list); i++)
		if (strcmp(list->rejections[i].path, path) == 0)
			return true;
	return false;
}

static void check_required(struct collecting *collecting)
{
	for (size_t i = 0; i < collecting->rules->required_count; i++) {
		const char *path = collecting->rules->required[i];
		const struct found wanted = {.path = (char *)path};
		const struct found *found = bsearch(&wanted, collecting->files, collecting->file_count, sizeof(wanted), by_path);
		if (found && found->status.st_size == 0)
			artifact_reject(collecting->list, path, "is required, and empty");
		else if (!found && !is_rejected(collecting->list, path))
			artifact_reject(collecting->list, path, "is required, and no file is there");
	}
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_mode == b->st_mode && a->st_size == b->st_size &&
	       same_time(&a->st_mtim, &b->st_mtim) && same_time(&a->st_ctim, &b->st_ctim);
}

/* A descriptor to read from, of the very file that was found; by way of one that opens nothing, because what has its name by now
 * may be a FIFO or a device. */
static int open_found(const struct collecting *collecting, const struct found *found)
{
	struct stat status;
	char self[32];
	FD_AUTO int fd = open_within(collecting->root, found->path, O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!unchanged(&status, &found->status))
		return -ESTALE;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	int readable = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return readable < 0 ? -errno : readable;
}

static int copy(struct collecting *collecting, struct found *found, struct err *err)
{
	struct artifact_list *list = collecting->list;
	struct artifact artifact = {.mode = found->status.st_mode & 0111 ? 0755 : 0644};
	struct err failure = ERR_INIT;
	struct stat status;
	FD_AUTO int fd = open_found(collecting, found);
	if (fd < 0)
		return refuse(collecting, found->path, -fd, err);
	int result = store_put_fd(collecting->store, fd, found->status.st_size, false, &artifact.sha256, &artifact.size_bytes,
	                          &failure);
	if (result < 0 && result != ERR_LIMIT)
		return err_set(err, result, "keep an artifact: %s", failure.text);
	if (fstat(fd, &status) < 0)
		return err_sys(err, errno, "look into the output place");
	if (result == ERR_LIMIT || artifact.size_bytes != found->status.st_size || !unchanged(&status, &found->status)) {
		artifact_reject(list, found->path, "%s", changed);
		return 0;
	}
	artifact.path = found->path;
	found->path = NULL;
	list->items[list->count++] = artifact;
	return 0;
}

static int sync_names(struct collecting *collecting, struct err *err)
{
	const struct artifact_list *list = collecting->list;
	const struct digest *digests[ARTIFACT_FILES_MAX];
	for (size_t i = 0; i < list->count; i++)
		digests[i] = &list->items[i].sha256;
	return store_sync_names(collecting->store, digests, list->count, err);
}

static int copy_all(struct collecting *collecting, struct err *err)
{
	struct artifact_list *list = collecting->list;
	list->items = calloc(collecting->file_count + 1, sizeof(*list->items));
	int result = list->items ? 0 : out_of_memory(err);
	for (size_t i = 0; result == 0 && i < collecting->file_count && list->rejected == 0; i++)
		result = copy(collecting, &collecting->files[i], err);
	if (result == 0 && list->rejected == 0)
		result = sync_names(collecting, err);
	return result;
}

static int collect(struct collecting *collecting, struct err *err)
{
	int result = look_at_all(collecting, err);
	if (result == 0)
		check_required(collecting);
	if (result == 0 && collecting->list->rejected == 0)
		result = copy_all(collecting, err);
	for (size_t i = 0; i < collecting->file_count; i++)
		free(collecting->files[i].path);
	names_done(&collecting->waiting);
	return result;
}

/* All or nothing: with a rejection nothing was collected. */
static void drop_items(struct artifact_list *list)
{
	struct artifact_list dropped = {.items = list->items, .count = list->count};
	list->items = NULL;
	list->count = 0;
	artifact_list_done(&dropped);
}

int artifact_collect(int dir, const struct collect_rules *rules, struct store *store, struct artifact_list *ret, struct err *err)
{
	struct collecting *collecting = calloc(1, sizeof(*collecting));
	struct artifact_list *list = calloc(1, sizeof(*list));
	int result = collecting && list ? 0 : out_of_memory(err);
	if (result == 0) {
		collecting->root = dir;
		collecting->rules = rules;
		collecting->store = store;
		collecting->list = list;
		result = collect(collecting, err);
	}
	if (result == 0) {
		if (list->rejected > 0)
			drop_items(list);
		*ret = *list;
	} else if (list) {
		artifact_list_done(list);
	}
	free(list);
	free(collecting);
	return result;
}
