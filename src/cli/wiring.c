/* wiring.c - puts the program together: SQLite for the ledger, and the Linux and the recording boundary. No other file names
 * them. */
#include "cli/wiring.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "boundary/linux/linux.h"
#include "boundary/recording/recording.h"
#include "cli/places.h"
#include "evidence/record.h"
#include "ledger/ledger_dir.h"
#include "ledger/shared.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "print/output.h"

#define STORE_DIR "store"
#define LEDGER_FILE "ledger.db"

static int open_store(int ledger_dir, enum wiring_access access, struct store **ret, struct err *err)
{
	if (access == WIRING_WRITE && mkdirat(ledger_dir, STORE_DIR, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make the ledger's store");

	FD_AUTO int dir = fd_open_beneath(ledger_dir, STORE_DIR, O_RDONLY | O_DIRECTORY, 0);

	if (dir == -ENOENT && access == WIRING_READ)
		return 0;
	if (dir < 0)
		return err_sys(err, -dir, "open the ledger's store");
	return store_open(dir, ret, err);
}

static bool has_ledger(int dir)
{
	return faccessat(dir, LEDGER_FILE, F_OK, 0) == 0;
}

static int open_all(const char *path, enum wiring_access access, struct wiring *ret, struct err *err)
{
	const struct sqlite_ledger_options options = {.read_only = access == WIRING_READ, .record_digest = record_digest};
	bool on_tmpfs = false;
	int result = ledger_dir_open(path, access == WIRING_WRITE, &ret->dir, &on_tmpfs, err);

	if (result)
		return result;

	bool made_now = access == WIRING_WRITE && !has_ledger(ret->dir);

	result = sqlite_ledger_open(ret->dir, &options, &ret->ledger, err);
	if (result == 0)
		result = open_store(ret->dir, access, &ret->store, err);
	if (result == 0 && made_now && on_tmpfs)
		complain("warning: the ledger %s is on tmpfs, and will not outlive this machine's uptime", path);
	return result ? err_context(err, result, "ledger %s", path) : 0;
}

/* By a command that uses threads, too. */
static int open_place(const char *option, enum wiring_access access, struct wiring *ret, struct err *err)
{
	BUF_AUTO struct buf path = BUF_INIT(MANIFEST_MAX_PATH);
	int result = places_ledger(option, &path, err);

	if (result)
		return result;
	return open_all(path.data, access, ret, err);
}

int wiring_open(const char *option, enum wiring_access access, struct wiring *ret, struct err *err)
{
	sqlite_ledger_single_thread();
	return open_place(option, access, ret, err);
}

int wiring_open_run(const char *option, const char *name, struct wiring *ret, char ret_run_id[static ID_SIZE], struct err *err)
{
	int result = wiring_open(option, WIRING_READ, ret, err);

	return result ? result : ret->ledger->ops->find_run(ret->ledger, name, ret_run_id, err);
}

void wiring_close(struct wiring *wiring)
{
	store_free(wiring->store);
	if (wiring->ledger)
		wiring->ledger->ops->close(wiring->ledger);
	fd_close(&wiring->dir);
	*wiring = WIRING_INIT;
}

int wiring_open_keeper(const char *option, struct keeper **ret, struct err *err)
{
	WIRING_AUTO struct wiring wiring = WIRING_INIT;
	int result = wiring_open(option, WIRING_WRITE, &wiring, err);

	if (result == 0)
		result = keeper_open(wiring.dir, wiring.ledger, wiring.store, ret, err);
	if (result == 0)
		wiring = WIRING_INIT; /* all of it is the keeper's now */
	return result;
}

/* For every thread: opened once more, for those who read. */
static int share_ledger(struct wiring *wiring, void (*changed)(void *context, const char *run_id), void *context, struct err *err)
{
	const struct sqlite_ledger_options options = {.read_only = true, .record_digest = record_digest};
	struct ledger *reader = NULL, *shared = NULL;
	int result = sqlite_ledger_open(wiring->dir, &options, &reader, err);

	if (result)
		return result;
	result = ledger_share(wiring->ledger, reader, changed, context, &shared, err);
	if (result) {
		reader->ops->close(reader);
		return result;
	}
	wiring->ledger = shared;
	return 0;
}

int wiring_open_shared_keeper(const char *option, void (*changed)(void *context, const char *run_id), void *context, struct keeper **ret,
                              struct err *err)
{
	WIRING_AUTO struct wiring wiring = WIRING_INIT;
	int result = open_place(option, WIRING_WRITE, &wiring, err);

	if (result == 0)
		result = share_ledger(&wiring, changed, context, err);
	if (result == 0)
		result = keeper_open(wiring.dir, wiring.ledger, wiring.store, ret, err);
	if (result == 0)
		wiring = WIRING_INIT;
	return result;
}

/* What this program was told of boundaries. */
struct choice {
	const char *cgroup_parent;
	pid_t caller;
};

static int make_linux(const struct choice *choice, int wake_fd, struct boundary_provider **ret, struct err *err)
{
	BUF_AUTO struct buf init_path = BUF_INIT(MANIFEST_MAX_PATH), runtime = BUF_INIT(MANIFEST_MAX_PATH);
	int result = places_init(&init_path, err);

	if (result == 0)
		result = places_runtime(&runtime, err);
	if (result)
		return result;

	const struct linux_options options = {
		.init_path = init_path.data,
		.cgroup_parent = places_cgroup_parent(choice->cgroup_parent),
		.runtime_dir = runtime.data,
		.caller = choice->caller,
		.wake_fd = wake_fd,
	};

	return linux_provider_new(&options, ret, err);
}

struct recording {
	struct boundary_provider provider;
	struct recording_world *world;
};

/* A world of its own, in which every program exits with 0 at once: for trying the lifecycle without any effect. */
static int make_recording(struct boundary_provider **ret, struct err *err)
{
	struct recording *recording = calloc(1, sizeof(*recording));

	if (!recording)
		return err_set(err, ERR_NO_MEMORY, "out of memory");

	int result = recording_world_new(&recording->world, err);

	if (result) {
		free(recording);
		return result;
	}
	recording->provider = recording_provider(recording->world);
	*ret = &recording->provider;
	return 0;
}

static int make_provider(void *context, const char *profile, int wake_fd, struct boundary_provider **ret, struct err *err)
{
	if (strcmp(profile, "linux") == 0)
		return make_linux(context, wake_fd, ret, err);
	if (strcmp(profile, "recording") == 0)
		return make_recording(ret, err);
	return err_set(err, ERR_UNSUPPORTED, "profile %s is not in this version", profile);
}

static void release_provider(void *context, struct boundary_provider *provider)
{
	(void)context;
	if (strcmp(provider->ops->kind, "recording") == 0) {
		struct recording *recording = (struct recording *)((char *)provider - offsetof(struct recording, provider));

		recording_world_free(recording->world);
		free(recording);
		return;
	}
	linux_provider_free(provider);
}

const struct provider_factory *wiring_factory(const char *cgroup_parent)
{
	static struct choice choice;
	static const struct provider_factory factory = {.make = make_provider, .release = release_provider, .context = &choice};

	choice = (struct choice){.cgroup_parent = cgroup_parent, .caller = getppid()}; /* before a worker has another parent than we */
	return &factory;
}

const char *const wiring_profiles[] = {"linux", "recording", NULL};
