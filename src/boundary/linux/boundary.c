/* boundary.c - the vtable of the native boundary: order of calls, and which file does what. */
#include "boundary/linux/linux_boundary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "boundary/linux/capability.h"

static struct linux_boundary *self(struct boundary *boundary)
{
	return (struct linux_boundary *)boundary;
}

static int expect_phase(const struct linux_boundary *boundary, enum linux_phase phase, const char *step, struct err *err)
{
	return boundary->phase == phase ? 0 : err_set(err, ERR_STATE, "%s: out of order", step);
}

/* A number from the boundary's own name, so that ranges of ids are not used again at once. */
static uint32_t spread(const char *text)
{
	uint32_t hash = 2166136261u; /* FNV-1a */
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash;
}

static int prepare(struct boundary *base, const struct boundary_spec *spec, struct evidence_list *evidence, struct err *err)
{
	struct linux_boundary *boundary = self(base);
	int rc = expect_phase(boundary, LINUX_NEW, "prepare", err);
	if (rc < 0)
		return rc;
	boundary->spec = *spec;
	cgroups_init(&boundary->groups, &boundary->provider->host, &boundary->provider->place, &spec->identity);
	umask(LINUX_UMASK);
	boundary->phase = LINUX_PREPARED;
	char missing[CAPABILITIES_TEXT_SIZE];
	if (capabilities_missing(missing))
		return err_set(err, ERR_UNSUPPORTED, "root is without %s here, which it needs for a boundary", missing);
	if ((rc = linux_check_require(boundary->provider, spec->plan, err)) < 0)
		return rc;
	if ((rc = linux_acquire_ids(boundary->provider, spread(spec->identity.boundary_id), &boundary->ids, err)) < 0 ||
	    (rc = linux_enter_namespace(boundary->provider, err)) < 0)
		return rc;
	if ((rc = cgroups_make(&boundary->groups, &spec->plan->limits, evidence, err)) < 0)
		return rc;
	boundary->network = linux_take_network(boundary->provider, err);
	if (boundary->network < 0)
		return boundary->network;
	linux_take_base(boundary->provider, spec->plan, &boundary->view);
	const struct view_spec view = {boundary->groups.name, spec->plan, spec->store, &boundary->ids};
	rc = view_make(&boundary->view, &view, evidence, err);
	return rc < 0 ? err_context(err, rc, "view") : FAULT_ERR("linux.viewed", err);
}

static int create_suspended(struct boundary *base, struct evidence_list *evidence, struct err *err)
{
	struct linux_boundary *boundary = self(base);
	(void)evidence; /* what init attests becomes evidence when it is enrolled */
	int rc = expect_phase(boundary, LINUX_PREPARED, "create suspended", err);
	if (rc == 0)
		rc = linux_spawn(boundary, err);
	if (rc == 0)
		boundary->phase = LINUX_SUSPENDED;
	return rc;
}

static int enroll(struct boundary *base, struct evidence_list *evidence, struct err *err)
{
	struct linux_boundary *boundary = self(base);
	int rc = expect_phase(boundary, LINUX_SUSPENDED, "enroll", err);
	if (rc == 0)
		rc = linux_enroll(boundary, evidence, err);
	if (rc == 0)
		boundary->phase = LINUX_ENROLLED;
	return rc;
}

static int launch(struct boundary *base, struct err *err)
{
	struct linux_boundary *boundary = self(base);
	int rc = expect_phase(boundary, LINUX_ENROLLED, "launch", err);
	if (rc < 0)
		return rc;
	boundary->phase = LINUX_LAUNCHED; /* also when it fails: the gate may be open */
	return linux_launch(boundary, err);
}

static int observe(struct boundary *base, int64_t deadline_ns, struct boundary_event *ret, struct err *err)
{
	int rc = expect_phase(self(base), LINUX_LAUNCHED, "observe", err);
	return rc < 0 ? rc : linux_observe(self(base), deadline_ns, ret, err);
}

static int terminate(struct boundary *base, struct err *err)
{
	int rc = expect_phase(self(base), LINUX_LAUNCHED, "terminate", err);
	if (rc < 0)
		return rc;
	self(base)->terminating = true;
	return linux_command(self(base), INIT_COMMAND_TERMINATE, err);
}

static int kill_unit(struct boundary *base, struct err *err)
{
	(void)err;
	linux_kill_unit(self(base));
	return 0;
}

static int drain(struct boundary *base, struct boundary_drain *ret, struct err *err)
{
	int rc = expect_phase(self(base), LINUX_LAUNCHED, "drain", err);
	return rc < 0 ? rc : linux_drain(self(base), ret, err);
}

static int cleanup(struct boundary *base, struct boundary_usage *ret, struct err *err)
{
	struct linux_boundary *boundary = self(base);
	if (boundary->phase == LINUX_NEW) {
		*ret = BOUNDARY_USAGE_UNKNOWN;
		boundary->phase = LINUX_CLEANED;
		return 0;
	}
	return linux_cleanup(boundary, ret, err);
}

static int verify_empty(struct boundary *base, struct err *err)
{
	struct linux_boundary *boundary = self(base);
	int rc = expect_phase(boundary, LINUX_CLEANED, "verify", err);
	if (rc < 0 || !boundary->groups.host)
		return rc; /* never prepared: there is no name that could be left */
	return linux_verify_empty(boundary, err);
}

static int collect(struct boundary *base, struct artifact_list *ret, struct err *err)
{
	int rc = expect_phase(self(base), LINUX_CLEANED, "collect", err);
	return rc < 0 ? rc : linux_collect(self(base), ret, err);
}

static void interrupt(struct boundary *base)
{
	const uint64_t one = 1;
	ssize_t written = write(self(base)->interrupt, &one, sizeof(one));
	(void)written; /* full means that it is readable already */
}

static void free_boundary(struct boundary *base)
{
	if (!base)
		return;
	struct linux_boundary *boundary = self(base);
	int *fds[] = {&boundary->interrupt,  &boundary->init_pidfd, &boundary->main_pidfd,   &boundary->control,
	              &boundary->out,        &boundary->network,    &boundary->streams[0],   &boundary->streams[1],
	              &boundary->wall_timer, &boundary->cpu_timer,  &boundary->sample_timer, &boundary->oom_event};
	if (boundary->init_pidfd >= 0)
		linux_kill_unit(boundary);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		fd_close(fds[i]);
	cgroups_done(&boundary->groups);
	view_done(&boundary->view);
	ids_release(&boundary->ids);
	free(boundary);
}

static const struct boundary_ops ops = {
	.prepare = prepare,
	.create_suspended = create_suspended,
	.enroll = enroll,
	.launch = launch,
	.observe = observe,
	.terminate = terminate,
	.kill = kill_unit,
	.drain = drain,
	.cleanup = cleanup,
	.verify_empty = verify_empty,
	.collect = collect,
	.interrupt = interrupt,
	.free = free_boundary,
};

int linux_boundary_open(struct linux_provider *provider, struct boundary **ret, struct err *err)
{
	struct linux_boundary *boundary = calloc(1, sizeof(*boundary));
	if (!boundary)
		return err_set(err, ERR_NO_MEMORY, "boundary");
	*boundary = (struct linux_boundary){
		.base.ops = &ops, .provider = provider, .ids.lock = -1, .init_pidfd = -1, .main_pidfd = -1, .control = -1, .out = -1,
		.network = -1, .streams = {-1, -1}, .wall_timer = -1, .cpu_timer = -1, .sample_timer = -1, .oom_event = -1,
		.kill_sent_ns = INT64_MAX, .anon_peak_bytes = -1,
	};
	struct boundary_identity nobody = {"", ""};
	cgroups_init(&boundary->groups, NULL, NULL, &nobody);
	view_init(&boundary->view);
	boundary->interrupt = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (boundary->interrupt < 0) {
		int error = errno;
		free(boundary);
		return err_sys(err, error, "eventfd");
	}
	*ret = &boundary->base;
	return 0;
}
