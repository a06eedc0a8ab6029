/* server_core.c - what the API asks of its keeper (api/core.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "artifact/store.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "keeper/host.h"
#include "keeper/seal.h"
#include "keeper/server_internal.h"
#include "ledger/shared.h"

enum { LABELS_MAX = 64 * 1024 };

static int compile(const struct manifest *manifest, const struct sealed *sealed, struct plan **ret, struct err *err)
{
	struct plan_host host;
	int result = host_facts(&host, err);
	return result < 0 ? result : plan_compile(manifest, &host, &sealed->plan, &admission_policy_default()->digest, ret, err);
}

static int record(struct server *server, const struct api_submission *submission, const struct plan *plan, struct api_submitted *ret,
                  struct err *err)
{
	struct ledger *ledger = server->options.keeper->ledger;
	const struct manifest *manifest = submission->manifest;
	BUF_AUTO struct buf labels = BUF_INIT(LABELS_MAX);
	struct ledger_run run = {
		.manifest = manifest->canonical,
		.manifest_digest = manifest->digest,
		.plan = plan->canonical,
		.plan_digest = plan->digest,
		.created_at_ms = clock_wall_ms(),
	};
	server_lock(server);
	int64_t queue_max = server->options.queue_max;
	server_unlock(server);
	id_new("run", run.run_id);
	snprintf(run.principal, sizeof(run.principal), "%s", submission->principal);
	int result = manifest_labels(manifest, &labels, err);
	run.labels = labels.data;
	if (result == 0)
		result = FAULT_ERR("serve.submitting", err);
	if (result == 0)
		result = ledger->ops->submit(ledger, &run, submission->idempotency_key, queue_max, &ret->existing, err);
	(void)FAULT("serve.submitted");
	if (result == 0)
		memcpy(ret->run_id, run.run_id, sizeof(ret->run_id));
	return result;
}

/* The store is held from the first input that is found in it to the commit that names it, by an object of this call's own. */
static int seal_and_record(struct server *server, struct store *store, const struct api_submission *submission,
                           struct api_submitted *ret, struct err *err)
{
	SEAL_AUTO struct sealed sealed = {0};
	PLAN_AUTO struct plan *plan = NULL;
	int result = store_hold(store, err);
	if (result < 0)
		return result;
	result = seal_inputs(store, submission->manifest, &sealed, err);
	if (result == 0)
		result = compile(submission->manifest, &sealed, &plan, err);
	if (result == 0)
		result = record(server, submission, plan, ret, err);
	store_release(store);
	return result;
}

static int core_submit(void *context, const struct api_submission *submission, struct api_submitted *ret, struct err *err)
{
	struct server *server = context;
	struct store *store = NULL;
	int result = store_open(store_dir_fd(server->options.keeper->store), &store, err);
	if (result == 0)
		result = seal_and_record(server, store, submission, ret, err);
	store_free(store);
	if (result < 0)
		return result;
	server_lock(server);
	server->stats.submitted += !ret->existing;
	server_wake_house(server);
	server_unlock(server);
	return 0;
}

/* The slot that drives this run now. With the lock. */
static struct slot *find_slot(struct server *server, const char *run_id)
{
	for (size_t i = 0; i < server->slot_count; i++)
		if (server->slots[i].has_job && strcmp(server->slots[i].job.run_id, run_id) == 0)
			return &server->slots[i];
	return NULL;
}

/* All of them: one that has it by a late picture of the queue finds out when it claims. With the lock. */
static bool stop_slots(struct server *server, const char *run_id)
{
	bool found = false;
	for (size_t i = 0; i < server->slot_count; i++) {
		struct slot *slot = &server->slots[i];
		if (!slot->has_job || strcmp(slot->job.run_id, run_id) != 0)
			continue;
		found = true;
		if (slot->stop_level == 0) {
			slot->stop_level = 1;
			worker_interrupt(slot->worker);
		}
	}
	return found;
}

/* One that waits waits for its seal only; one that is nowhere may be on its way from the ledger, not cancelled yet. With the lock. */
static void stop_waiting(struct server *server, const char *run_id)
{
	struct queue_entry entry;
	if (queue_find(server->cancelled, run_id) || queue_find(server->damaged, run_id))
		return;
	if (!queue_remove(server->queue, run_id, &entry) || queue_add(server->cancelled, &entry, NULL) < 0)
		server->rescan = true;
}

static int core_cancel(void *context, const char *run_id, bool *ret_sealed, struct err *err)
{
	struct server *server = context;
	struct ledger *ledger = server->options.keeper->ledger;
	int result = ledger->ops->request_cancel(ledger, run_id, ret_sealed, err);
	if (result < 0 || *ret_sealed)
		return result;
	server_lock(server);
	server->stats.cancelled++;
	if (!stop_slots(server, run_id))
		stop_waiting(server, run_id);
	server_wake_house(server);
	server_unlock(server);
	return 0;
}

static int core_live(void *context, const char *run_id, struct api_live *ret, struct err *err)
{
	struct server *server = context;
	size_t index;
	*ret = (struct api_live){.paused = false};
	server_lock(server);
	const struct queue_entry *entry = queue_find(server->queue, run_id);
	ret->driven = find_slot(server, run_id) != NULL;
	bool damaged = queue_find(server->damaged, run_id);
	bool known = entry || ret->driven || damaged || queue_find(server->cancelled, run_id);
	ret->paused = damaged || (entry && server_route(server, entry->profile, entry->principal, &index) == ROUTE_NONE);
	server_unlock(server);
	if (ret->paused)
		snprintf(ret->reason, sizeof(ret->reason), "%s", damaged ? "damaged" : "no_safe_worker");
	return known ? 0 : err_set(err, ERR_NOT_FOUND, "run %s is not one of this keeper's", run_id);
}

static int attach(const struct passage *passage, int stream, struct capture **ret, struct err *err)
{
	const struct plan_limits *limits = &passage->plan->limits;
	FD_AUTO int spool = fcntl(capture_spool_fd(passage->captures[stream]), F_DUPFD_CLOEXEC, 0);
	FD_AUTO int notify = fcntl(capture_notify_fd(passage->captures[stream]), F_DUPFD_CLOEXEC, 0);
	if (spool < 0 || notify < 0)
		return err_sys(err, errno, "read along with a stream");
	int result = capture_attach(spool, notify, stream == 0 ? limits->stdout_bytes : limits->stderr_bytes, limits->on_overflow, ret, err);
	if (result == 0) {
		fd_take(&spool);
		fd_take(&notify);
	}
	return result;
}

static int core_stream(void *context, const char *run_id, int stream, struct capture **ret, struct err *err)
{
	struct server *server = context;
	int result = ERR_NOT_FOUND;
	server_lock(server);
	const struct slot *slot = find_slot(server, run_id);
	if (slot && slot->shown)
		result = attach(slot->passage, stream, ret, err);
	else
		err_set(err, ERR_NOT_FOUND, "run %s is not being driven", run_id);
	server_unlock(server);
	return result;
}

static int core_workers(void *context, api_worker_fn fn, void *fn_context, struct err *err)
{
	struct server *server = context;
	int result = 0;
	(void)err;
	for (size_t i = 0; i < server->options.worker_count && result == 0; i++) {
		server_lock(server);
		const struct slot copy = server->slots[i];
		server_unlock(server);
		if (!copy.server) /* not started yet */
			break;
		const struct api_worker worker = {
			.slot = copy.index,
			.profile = copy.profile,
			.state = slot_state(&copy),
			.reason = copy.reason,
			.run_id = copy.has_job ? copy.job.run_id : "",
			.principal = copy.has_job ? copy.job.principal : "",
		};
		result = fn(fn_context, &worker);
	}
	return result;
}

static int core_recover(void *context, int index, bool *ret_recovered, struct err *err)
{
	struct server *server = context;
	if (index < 0 || (size_t)index >= server->options.worker_count)
		return err_set(err, ERR_NOT_FOUND, "there is no slot %d", index);
	struct slot *slot = &server->slots[index];
	server_lock(server);
	enum stats_worker state = slot_state(slot);
	if (slot->state != STATS_QUARANTINED) {
		server_unlock(server);
		return err_set(err, ERR_STATE, "slot %d is %s, not quarantined", index, stats_worker_name(state));
	}
	int64_t tried = slot->recoveries_tried;
	slot->recovery_asked = true;
	pthread_cond_signal(&slot->wake);
	while (slot->recoveries_tried == tried && !server->stopping)
		server_wait(server, &server->settled, INT64_MAX / 4);
	*ret_recovered = slot_state(slot) == STATS_AVAILABLE || slot_state(slot) == STATS_BUSY;
	server_unlock(server);
	return 0;
}

static bool core_ready(void *context, char reason[static API_REASON_MAX])
{
	struct server *server = context;
	bool ready = false;
	size_t index;
	server_lock(server);
	for (size_t i = 0; i < server->slot_count && !ready; i++) {
		const struct slot *slot = &server->slots[i];
		ready = slot_state(slot) == STATS_BUSY || server_route(server, slot->profile, "", &index) == ROUTE_TAKEN;
	}
	bool draining = server->draining;
	server_unlock(server);
	snprintf(reason, API_REASON_MAX, "%s", draining ? "draining" : ready ? "" : "no_safe_worker");
	return ready && !draining;
}

static void core_stats(void *context, struct api_stats *ret)
{
	struct server *server = context;
	struct ledger_share_counts counts;
	server_lock(server);
	*ret = server->stats;
	memset(ret->workers, 0, sizeof(ret->workers));
	for (size_t i = 0; i < server->slot_count; i++) {
		size_t index;
		const struct slot *slot = &server->slots[i];
		ret->workers[slot_state(slot)]++;
		ret->running += slot->has_job;
		bool first = true; /* of its profile */
		for (size_t j = 0; j < i; j++)
			first = first && strcmp(server->slots[j].profile, slot->profile) != 0;
		if (first && server_route(server, slot->profile, "", &index) == ROUTE_NONE)
			ret->paused += queue_waiting(server->queue, slot->profile);
	}
	ret->paused += queue_length(server->damaged);
	ret->queued = queue_length(server->queue) + queue_length(server->damaged);
	server_unlock(server);
	ledger_share_count(server->options.keeper->ledger, &counts);
	ret->ledger_commits = (uint64_t)counts.commits;
	ret->ledger_fsyncs = (uint64_t)counts.durable;
}

static void core_log(void *context, const char *line)
{
	server_log(context, "api", "{s:s}", "line", line);
}

void server_fill_core(struct server *server)
{
	server->core = (struct api_core){
		.submit = core_submit,
		.cancel = core_cancel,
		.live = core_live,
		.stream = core_stream,
		.workers = core_workers,
		.recover = core_recover,
		.ready = core_ready,
		.stats = core_stats,
		.log = core_log,
		.context = server,
	};
}
