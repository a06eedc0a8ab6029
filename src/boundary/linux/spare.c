/* spare.c - pieces of a boundary that do not depend on a plan, made ahead while the worker has nothing else to do.
 *
 * A new network namespace is the dearest part of a clone (facts: 0.4 of 1.2 ms), the base view the dearest part of prepare. Both are
 * descriptors of this process alone and gone with it; each is used by one boundary and never again. The namespace belongs to the worker's
 * user namespace (the host's, or that of namespace.c), so that nobody in the guest's has any capability over it. */
#include "boundary/linux/linux_boundary.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"

static int raise_loopback(struct err *err)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	FD_AUTO int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || (!OMITTED("net.lo") && ioctl(fd, SIOCSIFFLAGS, &request) != 0))
		return err_sys(err, errno, "loopback");
	return 0;
}

/* Goes into a new namespace, sets it up, and comes back. A worker that cannot come back cannot go on. */
static int make_network(struct linux_provider *provider, struct err *err)
{
	if (provider->own_network < 0)
		provider->own_network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (provider->own_network < 0)
		return err_sys(err, errno, "network namespace");
	if (unshare(CLONE_NEWNET) != 0)
		return err_sys(err, errno, "new network namespace");
	int rc = raise_loopback(err);
	FD_AUTO int made = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (rc == 0 && made < 0)
		rc = err_sys(err, errno, "new network namespace");
	if (setns(provider->own_network, CLONE_NEWNET) != 0)
		return err_sys(err, errno, "return from the new network namespace");
	return rc < 0 ? rc : fd_take(&made);
}

void linux_spare_make(struct linux_provider *provider)
{
	umask(LINUX_UMASK);
	/* A failure is not one yet: whoever needs the piece tries again and reports. */
	if (linux_enter_namespace(provider, NULL) < 0)
		return;
	if (provider->spare.network < 0) {
		int fd = make_network(provider, NULL);
		provider->spare.network = fd < 0 ? -1 : fd;
	}
	if (provider->spare.base.count == 0 && view_make_host_base(&provider->spare.base, plan_host_base(), NULL) < 0)
		view_done(&provider->spare.base);
}

void linux_spare_done(struct linux_provider *provider)
{
	view_done(&provider->spare.base);
	fd_close(&provider->spare.network);
	fd_close(&provider->own_network);
}

/* Is the plan's base the one that is made ahead? */
static bool has_host_base(const struct plan *plan)
{
	const char *const *base = plan_host_base();
	size_t i = 0;
	if (strcmp(plan->rootfs, "host") != 0)
		return false;
	for (; base[i] && i < plan->base_count; i++)
		if (strcmp(base[i], plan->base[i]) != 0)
			return false;
	return !base[i] && i == plan->base_count;
}

void linux_take_base(struct linux_provider *provider, const struct plan *plan, struct view *ret)
{
	if (!has_host_base(plan))
		return;
	*ret = provider->spare.base;
	view_init(&provider->spare.base);
}

int linux_take_network(struct linux_provider *provider, struct err *err)
{
	return provider->spare.network >= 0 ? fd_take(&provider->spare.network) : make_network(provider, err);
}
