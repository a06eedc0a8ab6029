/* provider.c - makes native boundaries, recovers and finds them by identity alone. */
#include "boundary/linux/linux_boundary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "boundary/linux/scratch.h"

int linux_place(struct linux_provider *provider, struct err *err)
{
	if (provider->placed)
		return 0;
	int rc = place_find(&provider->host, provider->cgroup_parent, provider->caller, &provider->place, err);
	provider->placed = rc == 0;
	return rc;
}

int linux_acquire_ids(const struct linux_provider *provider, uint32_t start, struct ids *ret, struct err *err)
{
	const char *dir = provider->runtime_dir ? provider->runtime_dir : IDS_RUN_DIR;
	int rc = ids_acquire(&provider->ids, dir, start, ret, err);
	return rc < 0 ? err_context(err, rc, "ids") : 0;
}

static int open_boundary(void *context, struct boundary **ret, struct err *err)
{
	int rc = linux_place(context, err);
	return rc < 0 ? rc : linux_boundary_open(context, ret, err);
}

static int recover(void *context, const struct boundary_identity *identity, int64_t cleanup_ms, int *survivors, struct err *err)
{
	struct linux_provider *provider = context;
	char name[CGROUP_NAME_MAX];
	int count = 0, rc = FAULT("linux.recover");
	if (rc < 0)
		return err_set(err, rc, "recover: fault point");
	if (!id_valid("led", identity->ledger_id) || !id_valid("bnd", identity->boundary_id))
		return err_set(err, ERR_FOREIGN, "not an identity of ours: %s.%s", identity->ledger_id, identity->boundary_id);
	snprintf(name, sizeof(name), "%s.%s", identity->ledger_id, identity->boundary_id);
	int64_t deadline_ns = clock_mono_ns() + cleanup_ms * NS_PER_MS;
	rc = cgroups_destroy_anywhere(&provider->host, name, deadline_ns, &count, err);
	if (rc == 0)
		rc = scratch_await_absent(name, deadline_ns, err);
	if (rc == 0 && survivors)
		*survivors = count;
	return rc;
}

struct sweep {
	struct linux_provider *provider;
	boundary_found_fn found;
	void *context;
	struct err *err;
};

/* Of those whose groups are gone; the others have been found by them. */
static int found_scratch(void *context, const struct boundary_identity *identity)
{
	const struct sweep *sweep = context;
	char name[CGROUP_NAME_MAX];
	snprintf(name, sizeof(name), "%s.%s", identity->ledger_id, identity->boundary_id);
	int rc = cgroups_find(&sweep->provider->host, name, sweep->err);
	return rc != 0 ? (rc < 0 ? rc : 0) : sweep->found(sweep->context, identity);
}

static int enumerate(void *context, const char *ledger_id, boundary_found_fn found, void *found_context, struct err *err)
{
	struct linux_provider *provider = context;
	struct sweep sweep = {provider, found, found_context, err};
	int rc = cgroups_enumerate(&provider->host, ledger_id, found, found_context, err);
	return rc != 0 ? rc : scratch_enumerate(ledger_id, found_scratch, &sweep, err);
}

static void ahead(void *context)
{
	linux_spare_make(context);
}

static int probe(void *context, boundary_probe_fn line, void *line_context, struct err *err)
{
	return linux_probe(context, line, line_context, err);
}

static const struct boundary_provider_ops ops = {
	.kind = "linux",
	.open = open_boundary,
	.recover = recover,
	.enumerate = enumerate,
	.ahead = ahead,
	.probe = probe,
};

/* By the system call itself: the library hides two signals of its own, which posix_spawn(3) leaves ignored in its children. */
static uint64_t read_ignored_signals(void)
{
	uint64_t ignored = 0;
	for (int number = 1; number <= LINUX_SIGNALS; number++) {
		struct linux_sigaction now;
		if (syscall(SYS_rt_sigaction, number, NULL, &now, sizeof(now.mask)) == 0 && now.handler == SIG_IGN)
			ignored |= UINT64_C(1) << (number - 1);
	}
	return ignored;
}

static int fill(struct linux_provider *provider, const struct linux_options *options, struct err *err)
{
	provider->caller = options->caller;
	if ((options->cgroup_parent && !(provider->cgroup_parent = strdup(options->cgroup_parent))) ||
	    (options->runtime_dir && !(provider->runtime_dir = strdup(options->runtime_dir))))
		return err_set(err, ERR_NO_MEMORY, "provider");
	FD_AUTO int init = open(options->init_path, O_PATH | O_CLOEXEC);
	/* Above the numbers that the child moves init's own descriptors to: it executes this one after that. */
	provider->init = init < 0 ? -1 : fcntl(init, F_DUPFD_CLOEXEC, INIT_FIRST_FREE_FD);
	if (provider->init < 0)
		return err_sys(err, errno, "guest init %s", options->init_path);
	provider->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (provider->null < 0)
		return err_sys(err, errno, "/dev/null");
	provider->ignored_signals = read_ignored_signals();
	int rc = ids_find_source(&provider->ids, err);
	return rc < 0 ? rc : host_read(&provider->host, err);
}

int linux_provider_new(const struct linux_options *options, struct boundary_provider **ret, struct err *err)
{
	struct linux_provider *provider = calloc(1, sizeof(*provider));
	if (!provider)
		return err_set(err, ERR_NO_MEMORY, "provider");
	*provider = (struct linux_provider){.base = {.ops = &ops, .context = provider}, .init = -1, .null = -1, .wake_fd = options->wake_fd,
	                                     .own_network = -1, .spare.network = -1};
	view_init(&provider->spare.base);
	int rc = fill(provider, options, err);
	if (rc < 0) {
		linux_provider_free(&provider->base);
		return rc;
	}
	*ret = &provider->base;
	return 0;
}

void linux_provider_free(struct boundary_provider *base)
{
	if (!base)
		return;
	struct linux_provider *provider = base->context;
	linux_spare_done(provider);
	fd_close(&provider->init);
	fd_close(&provider->null);
	free(provider->cgroup_parent);
	free(provider->runtime_dir);
	free(provider);
}
