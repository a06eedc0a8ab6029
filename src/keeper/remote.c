/* remote.c - a boundary whose every slot is a message to the worker that really has it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "artifact/list.h"
#include "artifact/store.h"
#include "base/clock.h"
#include "base/fd.h"
#include "capture/capture.h"
#include "keeper/worker.h"

enum {
	PREPARE_MS = 120 * 1000, /* inputs of some gigabytes are hashed */
	COLLECT_MS = 120 * 1000, /* outputs of some gigabytes are copied and synced */
	LOOK_MS = 500,           /* so often who drives may see to other things */
	SLACK_MS = 10 * 1000,    /* beyond what the plan allows, before a worker counts as stuck */
};

struct remote {
	struct boundary base;
	struct worker *worker;
	const struct plan *plan;
	struct capture *standard_output, *standard_error;
	int64_t lease_ends_at_ns;
	bool interrupted; /* heard, and not yet reported by an observe */
};

static int64_t deadline_in(int64_t ms)
{
	return clock_mono_ns() + ms * NS_PER_MS;
}

/* A worker that was woken is queued behind its keeper, which it would wait for. */
static void use_the_wait(struct worker *worker)
{
	if (!worker->idle)
		return;
	worker_start_at_once(worker->pid);
	worker->idle(worker->idle_context);
}

/* Until there is something to read, or it is too late. */
static void wait_long(struct remote *remote, int64_t deadline_ns)
{
	const struct boundary *base = &remote->base;
	while (base->meanwhile && !worker_has_news(remote->worker, LOOK_MS) && clock_mono_ns() < deadline_ns)
		base->meanwhile(base->meanwhile_context);
}

/* One round trip: 0, the transport's error, or the worker's. ret->kind stays REQUEST_COUNT when no answer came. */
static int call(struct remote *remote, const struct request *request, const struct channel_message *extra, int64_t timeout_ms,
                struct reply *ret, struct err *err)
{
	enum worker_news news;
	const int64_t deadline_ns = deadline_in(timeout_ms);
	ret->kind = REQUEST_COUNT;
	remote->base.done_ns = 0;
	int result = worker_ask(remote->worker, request, extra, err);
	if (result == 0 && request->kind == REQUEST_PREPARE)
		use_the_wait(remote->worker);
	if (result == 0) {
		wait_long(remote, deadline_ns);
		result = worker_await(remote->worker, false, deadline_ns, &news, err);
	}
	if (result == 0)
		result = worker_answer(remote->worker, request->kind, ret, err);
	if (result < 0)
		return result;
	remote->base.done_ns = ret->at_ns;
	return ret->error.code < 0 ? err_set(err, ret->error.code, "%s", ret->error.text) : 0;
}

static int call_plain(struct boundary *b, enum request_kind kind, struct err *err)
{
	struct reply reply;
	return call((struct remote *)b, &(struct request){.kind = kind}, NULL, WORKER_ANSWER_MS, &reply, err);
}

static int append_evidence(struct evidence_list *list, const struct evidence_list *lines, struct err *err)
{
	if (lines->count > EVIDENCE_MAX - list->count)
		return err_set(err, ERR_LIMIT, "more than %d lines of evidence", EVIDENCE_MAX);
	memcpy(list->lines + list->count, lines->lines, lines->count * sizeof(lines->lines[0]));
	list->count += lines->count;
	return 0;
}

/* A call that adds evidence, also when its step fails. */
static int call_step(struct boundary *b, const struct request *request, const struct channel_message *extra, int64_t timeout_ms,
                     struct evidence_list *evidence, struct err *err)
{
	struct reply reply;
	int result = call((struct remote *)b, request, extra, timeout_ms, &reply, err);
	if (reply.kind != request->kind)
		return result;
	int added = append_evidence(evidence, &reply.evidence, err);
	return result < 0 ? result : added;
}

static int remote_prepare(struct boundary *b, const struct boundary_spec *spec, struct evidence_list *evidence, struct err *err)
{
	struct remote *remote = (struct remote *)b;
	const struct request request = {
		.kind = REQUEST_PREPARE, .identity = spec->identity, .lease_ends_at_ns = remote->lease_ends_at_ns, .go_on = true};
	const struct channel_message extra = {
		.document = spec->plan->canonical,
		.document_length = spec->plan->canonical_length,
		.fds = {
			[PREPARE_STDOUT_SPOOL] = capture_spool_fd(spec->standard_output),
			[PREPARE_STDOUT_NOTIFY] = capture_notify_fd(spec->standard_output),
			[PREPARE_STDERR_SPOOL] = capture_spool_fd(spec->standard_error),
			[PREPARE_STDERR_NOTIFY] = capture_notify_fd(spec->standard_error),
			[PREPARE_STORE] = store_dir_fd(spec->store),
		},
		.fd_count = PREPARE_FDS,
	};
	remote->plan = spec->plan;
	remote->standard_output = spec->standard_output;
	remote->standard_error = spec->standard_error;
	return call_step(b, &request, &extra, PREPARE_MS, evidence, err);
}

static int remote_create_suspended(struct boundary *b, struct evidence_list *evidence, struct err *err)
{
	const struct request request = {.kind = REQUEST_CREATE, .lease_ends_at_ns = ((struct remote *)b)->lease_ends_at_ns};
	struct err late = ERR_INIT;
	int result = call_step(b, &request, NULL, WORKER_ANSWER_MS, evidence, &late);
	if (result != ERR_FENCED)
		return result < 0 ? err_set(err, result, "%s", late.text) : 0;
	/* It would have gone on to this by itself, but to prepare took longer than the lease it knows of; ours has been renewed since. */
	return call_step(b, &request, NULL, WORKER_ANSWER_MS, evidence, err);
}

static int remote_enroll(struct boundary *b, struct evidence_list *evidence, struct err *err)
{
	return call_step(b, &(struct request){.kind = REQUEST_ENROLL}, NULL, WORKER_ANSWER_MS, evidence, err);
}

static int remote_launch(struct boundary *b, struct err *err)
{
	struct remote *remote = (struct remote *)b;
	const struct request request = {.kind = REQUEST_LAUNCH, .lease_ends_at_ns = remote->lease_ends_at_ns};
	struct reply reply;
	return call(remote, &request, NULL, WORKER_ANSWER_MS, &reply, err);
}

/* When a worker that still says nothing is stuck: a while behind the caller's deadline, and behind all that the plan lets a guest have. */
static int64_t observe_deadline(const struct plan_limits *limits, int64_t deadline_ns)
{
	int64_t last = deadline_in(limits->wall_ms + limits->on_limit_grace_ms + limits->cancel_grace_ms);
	return (last < deadline_ns ? last : deadline_ns) + SLACK_MS * NS_PER_MS;
}

/* Waits for the event, passing an interrupt on meanwhile. */
static int await_event(struct remote *remote, int64_t deadline_ns, struct reply *ret, struct err *err)
{
	int64_t stuck_ns = observe_deadline(&remote->plan->limits, deadline_ns);
	for (;;) {
		enum worker_news news;
		int result = worker_await(remote->worker, !remote->interrupted, stuck_ns, &news, err);
		if (result < 0)
			return result;
		if (news == WORKER_ANSWERED)
			return worker_answer(remote->worker, REQUEST_OBSERVE, ret, err);
		remote->interrupted = true;
		result = worker_ask(remote->worker, &(struct request){.kind = REQUEST_INTERRUPT}, NULL, err);
		if (result < 0)
			return result;
	}
}

static int observe(struct remote *remote, int64_t deadline_ns, struct boundary_event *ret, struct err *err)
{
	struct reply reply;
	const struct request request = {.kind = REQUEST_OBSERVE, .deadline_ns = deadline_ns, .go_on = true};
	int result = worker_ask(remote->worker, &request, NULL, err);
	if (result == 0)
		result = await_event(remote, deadline_ns, &reply, err);
	if (result < 0)
		return result;
	if (reply.error.code < 0)
		return err_set(err, reply.error.code, "%s", reply.error.text);
	if (reply.event.kind == BOUNDARY_INTERRUPTED)
		remote->interrupted = false;
	*ret = reply.event;
	return 0;
}

/* An interrupt that came too late for one observe is the next one's at once. A worker that is gone is an event, as a lost init is. */
static int remote_observe(struct boundary *b, int64_t deadline_ns, struct boundary_event *ret, struct err *err)
{
	struct remote *remote = (struct remote *)b;
	struct err lost = ERR_INIT;
	if (worker_take_interrupt(remote->worker) || remote->interrupted) {
		remote->interrupted = false;
		*ret = (struct boundary_event){.kind = BOUNDARY_INTERRUPTED, .at_ns = clock_mono_ns(), .descendants_alive = -1};
		return 0;
	}
	int result = observe(remote, deadline_ns, ret, &lost);
	if (remote->worker->lost) {
		*ret = (struct boundary_event){.kind = BOUNDARY_LOST, .at_ns = clock_mono_ns(), .descendants_alive = -1, .detail = "worker_lost"};
		return 0;
	}
	return result < 0 ? err_set(err, result, "%s", lost.text) : 0;
}

static int remote_terminate(struct boundary *b, struct err *err)
{
	return call_plain(b, REQUEST_TERMINATE, err);
}

static int remote_kill(struct boundary *b, struct err *err)
{
	return call_plain(b, REQUEST_KILL, err);
}

/* The counters are taken over from a drain that failed too: the streams are what they are. */
static int remote_drain(struct boundary *b, struct boundary_drain *ret, struct err *err)
{
	struct remote *remote = (struct remote *)b;
	struct reply reply;
	const struct request request = {.kind = REQUEST_DRAIN};
	if (!remote->plan)
		return err_set(err, ERR_STATE, "drain before prepare");
	int result = call(remote, &request, NULL, remote->plan->limits.drain_ms + SLACK_MS, &reply, err);
	if (reply.kind != REQUEST_DRAIN)
		return result;
	int taken = capture_set_state(remote->standard_output, &reply.standard_output, err);
	if (taken == 0)
		taken = capture_set_state(remote->standard_error, &reply.standard_error, err);
	if (result < 0 || taken < 0)
		return result < 0 ? result : taken;
	*ret = reply.drain;
	return 0;
}

static int remote_cleanup(struct boundary *b, struct boundary_usage *ret, struct err *err)
{
	struct remote *remote = (struct remote *)b;
	struct reply reply;
	int64_t timeout_ms = remote->plan ? remote->plan->limits.cleanup_ms + SLACK_MS : WORKER_ANSWER_MS;
	int result = call(remote, &(struct request){.kind = REQUEST_CLEANUP}, NULL, timeout_ms, &reply, err);
	if (result == 0)
		*ret = reply.usage;
	return result;
}

static int remote_verify_empty(struct boundary *b, struct err *err)
{
	return call_plain(b, REQUEST_VERIFY, err);
}

/* What the worker wrote is read as what a stranger wrote. */
static int remote_collect(struct boundary *b, struct artifact_list *ret, struct err *err)
{
	struct reply reply;
	BUF_AUTO struct buf text = BUF_INIT(ARTIFACT_LIST_TEXT_MAX);
	FD_AUTO int file = memfd_create("caisson-artifacts", MFD_CLOEXEC);
	if (file < 0)
		return err_sys(err, errno, "make a list of artifacts");
	const struct channel_message extra = {.fds = {[COLLECT_LIST] = file}, .fd_count = COLLECT_FDS};
	int result = call((struct remote *)b, &(struct request){.kind = REQUEST_COLLECT}, &extra, COLLECT_MS, &reply, err);
	if (result < 0)
		return result;
	if (lseek(file, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "read a list of artifacts");
	result = fd_read_rest(file, &text, err);
	if (result == 0)
		result = artifact_list_read(text.data ? text.data : "", text.len, ret, err);
	return result < 0 ? err_set(err, ERR_PROTOCOL, "the worker's list of artifacts is none") : 0;
}

static void remote_lease(struct boundary *b, int64_t ends_at_ns)
{
	((struct remote *)b)->lease_ends_at_ns = ends_at_ns;
}

static void remote_interrupt(struct boundary *b)
{
	worker_interrupt(((struct remote *)b)->worker);
}

static void remote_free(struct boundary *b)
{
	if (!b)
		return;
	struct worker *worker = ((struct remote *)b)->worker;
	if (!worker->dismissed && worker_ask(worker, &(struct request){.kind = REQUEST_FREE}, NULL, NULL) == 0)
		worker->phase = WORKER_IDLE;
	free(b);
}

static const struct boundary_ops remote_ops = {
	.prepare = remote_prepare,
	.create_suspended = remote_create_suspended,
	.enroll = remote_enroll,
	.launch = remote_launch,
	.observe = remote_observe,
	.terminate = remote_terminate,
	.kill = remote_kill,
	.drain = remote_drain,
	.cleanup = remote_cleanup,
	.verify_empty = remote_verify_empty,
	.collect = remote_collect,
	.lease = remote_lease,
	.interrupt = remote_interrupt,
	.free = remote_free,
};

/* The answer to the open that worker_spawn asked for already, or one asked for now. */
static int open_remote(struct remote *remote, struct err *err)
{
	struct worker *worker = remote->worker;
	struct reply reply;
	enum worker_news news;
	if (!worker->opening)
		return call(remote, &(struct request){.kind = REQUEST_OPEN}, NULL, WORKER_ANSWER_MS, &reply, err);
	worker->opening = false;
	int result = worker_await(worker, false, deadline_in(WORKER_ANSWER_MS), &news, err);
	if (result == 0)
		result = worker_answer(worker, REQUEST_OPEN, &reply, err);
	if (result < 0)
		return result;
	return reply.error.code < 0 ? err_set(err, reply.error.code, "%s", reply.error.text) : 0;
}

int worker_boundary(struct worker *worker, struct boundary **ret, struct err *err)
{
	struct remote *remote = calloc(1, sizeof(*remote));
	if (!remote)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a boundary");
	remote->base.ops = &remote_ops;
	remote->worker = worker;
	remote->lease_ends_at_ns = INT64_MAX;
	int result = open_remote(remote, err);
	if (result < 0) {
		free(remote);
		return result;
	}
	*ret = &remote->base;
	return 0;
}
