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

static const char default_parent[] = "caisson";

static int open_boundary(void *context, struct boundary **ret, struct err *err)
{
	return linux_boundary_open(context, ret, err);
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
	rc = cgroups_destroy(&provider->host, provider->cgroup_parent, name, deadline_ns, &count, err);
	if (rc == 0)
		rc = cgroups_verify_absent(&provider->host, provider->cgroup_parent, name, err);
	if (rc == 0 && survivors)
		*survivors = count;
	return rc;
}

static int enumerate(void *context, const char *ledger_id, boundary_found_fn found, void *found_context, struct err *err)
{
	struct linux_provider *provider = context;
	return cgroups_enumerate(&provider->host, provider->cgroup_parent, ledger_id, found, found_context, err);
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

/* A relative path without "..", so that every group lies below its hierarchy's mount. */
static bool sane_parent(const char *parent)
{
	return parent[0] != '\0' && parent[0] != '/' && !strstr(parent, "..") && strlen(parent) < CGROUP_PATH_MAX - HOST_MOUNT_MAX - 1;
}

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
	const char *parent = options->cgroup_parent ? options->cgroup_parent : default_parent;
	if (!sane_parent(parent))
		return err_set(err, ERR_INVALID, "cgroup parent %s: must be a relative path without ..", parent);
	provider->cgroup_parent = strdup(parent);
	if (!provider->cgroup_parent)
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
	return host_read(&provider->host, err);
}

int linux_provider_new(const struct linux_options *options, struct boundary_provider **ret, struct err *err)
{
	if (geteuid() != 0)
		return err_set(err, ERR_UNSUPPORTED, "profile linux needs root in this version");
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
	free(provider);
}
