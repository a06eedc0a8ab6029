/* cleanup.c - kills the unit, reads what it used, removes what it had, verifies that nothing is left, and collects what it put out. */
#include "boundary/linux/linux_boundary.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "artifact/collect.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "boundary/linux/scratch.h"

/* The death of init is the death of its pid namespace. */
void linux_kill_unit(struct linux_boundary *boundary)
{
	if (boundary->kill_sent_ns != INT64_MAX)
		return;
	boundary->kill_sent_ns = clock_mono_ns();
	int alive = cgroups_population(&boundary->groups);
	boundary->guest_gone = alive == 0;
	boundary->survivors = alive > 0 ? alive - (boundary->exited ? 0 : 1) : 0;
	if (boundary->init_pidfd >= 0)
		pidfd_send_signal(boundary->init_pidfd, SIGKILL, NULL, 0);
	(void)FAULT("linux.killed");
}

static bool on_disk(const struct linux_boundary *boundary)
{
	return boundary->spec.plan->limits.scratch == SCRATCH_DISK;
}

static int reap_init(struct linux_boundary *boundary, int64_t deadline_ns, struct err *err)
{
	siginfo_t ignored;
	if (boundary->init_pidfd < 0)
		return 0;
	for (;;) {
		struct pollfd source = {.fd = boundary->init_pidfd, .events = POLLIN};
		int64_t left_ms = (deadline_ns - clock_mono_ns()) / NS_PER_MS;
		int ready = poll(&source, 1, left_ms > 0 ? (int)left_ms : 0);
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return err_set(err, ERR_TIMEOUT, "guest init did not die in time");
		break;
	}
	boundary->init_reaped = true;
	if (waitid(P_PIDFD, (id_t)boundary->init_pidfd, &ignored, WEXITED) != 0 && errno != ECHILD)
		return err_sys(err, errno, "waitid");
	fd_close(&boundary->init_pidfd);
	return 0;
}

/* The file systems go before the groups that their pages are charged to. The output place stays, to be collected. */
static void drop_view(struct linux_boundary *boundary)
{
	if (boundary->out < 0)
		boundary->out = fd_take(&boundary->view.out);
	if (on_disk(boundary) && boundary->view.work >= 0)
		scratch_abandon(boundary->view.work);
	view_done(&boundary->view);
}

/* While init dies: where nobody was left in the guest's groups their figures are the last ones, and they can go. Those that do not are
 * removed with the rest. Pages on a disk are still to be written, and charged to them. */
static bool settle_early(struct linux_boundary *boundary, struct boundary_usage *usage)
{
	if (boundary->phase < LINUX_LAUNCHED || !boundary->guest_gone || on_disk(boundary))
		return false;
	cgroups_read_usage(&boundary->groups, usage);
	cgroups_remove_guest(&boundary->groups);
	return true;
}

int linux_cleanup(struct linux_boundary *boundary, struct boundary_usage *ret, struct err *err)
{
	struct boundary_usage usage = BOUNDARY_USAGE_UNKNOWN;
	int64_t deadline_ns = clock_mono_ns() + boundary->spec.plan->limits.cleanup_ms * NS_PER_MS;
	int rc = FAULT("linux.cleanup");
	if (rc < 0)
		return err_set(err, rc, "cleanup: fault point");
	linux_kill_unit(boundary);
	bool settled = settle_early(boundary, &usage);
	if ((rc = reap_init(boundary, deadline_ns, err)) < 0 || (rc = FAULT_ERR("linux.reaped", err)) < 0)
		return rc;
	if (boundary->phase >= LINUX_LAUNCHED && !settled)
		cgroups_read_usage(&boundary->groups, &usage);
	usage.memory_peak_anon_sampled_bytes = boundary->anon_peak_bytes;
	usage.survivors_killed = boundary->survivors;
	usage.space_full = view_space_full(&boundary->view);
	drop_view(boundary);
	cgroups_done(&boundary->groups);
	int others = 0;
	rc = cgroups_destroy(&boundary->provider->host, boundary->provider->place.parent, boundary->groups.name, deadline_ns, &others, err);
	if (rc < 0)
		return rc;
	usage.survivors_killed += others;
	if (on_disk(boundary) && (rc = scratch_await_absent(boundary->groups.name, deadline_ns, err)) < 0)
		return rc;
	ids_release(&boundary->ids);
	boundary->phase = LINUX_CLEANED;
	*ret = usage;
	return 0;
}

int linux_verify_empty(struct linux_boundary *boundary, struct err *err)
{
	int rc = FAULT("linux.verify");
	if (rc < 0)
		return err_set(err, rc, "verify: fault point");
	if (boundary->init_pidfd >= 0)
		return err_set(err, ERR_UNVERIFIED, "guest init is not reaped");
	rc = cgroups_verify_absent(&boundary->provider->host, boundary->provider->place.parent, boundary->groups.name, err);
	return rc < 0 || !on_disk(boundary) ? rc : scratch_verify_absent(boundary->groups.name, err);
}

int linux_collect(struct linux_boundary *boundary, struct artifact_list *ret, struct err *err)
{
	const struct collect_rules rules = collect_rules_of(boundary->spec.plan);
	int rc = FAULT("linux.collect");
	if (rc < 0)
		return err_set(err, rc, "collect: fault point");
	if (boundary->out < 0)
		return err_set(err, ERR_STATE, "collect: there is no output place");
	rc = artifact_collect(boundary->out, &rules, boundary->spec.store, ret, err);
	fd_close(&boundary->out);
	return rc;
}
