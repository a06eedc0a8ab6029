/* slot.c - a slot's thread: verifies its worker, drives what it is given, and after a failure starts nothing before a recovery.
 *
 *     unverified --verified--> available --a run--> busy --sealed--> available
 *         ^   any worker lost or stuck  <--------------/  \--not verified empty--> quarantined --recovered--> unverified
 *
 * What a failed verification of the worker itself left behind quarantines the slot in the same way. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>

#include "artifact/store.h"
#include "base/clock.h"
#include "base/fault.h"
#include "keeper/server_internal.h"
#include "keeper/trial.h"

enum { TRIES = 2 }; /* a verification that fails is tried once more: a sweep of somebody else's may have met it */

/* Unverified without a reason is about to be verified. */
static void enter(struct slot *slot, enum stats_worker state, const char *reason)
{
	struct server *server = slot->server;
	server_lock(server);
	if (state == STATS_QUARANTINED && slot->state != STATS_QUARANTINED)
		server->stats.quarantines++;
	slot->state = state;
	slot->open_at_ns = clock_boot_ns() + SLOT_IDLE_MS * NS_PER_MS;
	slot->verifying = state == STATS_UNVERIFIED && !*reason;
	snprintf(slot->reason, sizeof(slot->reason), "%s", reason);
	server_unlock(server);
}

void slot_kill_worker(struct slot *slot)
{
	if (slot->worker && slot->worker->pidfd >= 0)
		pidfd_send_signal(slot->worker->pidfd, SIGKILL, NULL, 0);
}

/* The one place where a worker goes; what it had open is freed before. A stuck one is not waited for. */
static void drop_worker(struct slot *slot)
{
	server_lock(slot->server);
	struct worker *worker = slot->worker;
	slot_kill_worker(slot);
	slot->worker = NULL;
	server_unlock(slot->server);
	worker_free(worker);
}

static int have_worker(struct slot *slot, struct err *err)
{
	struct worker *worker = NULL;
	if (slot->worker && !slot->worker->lost)
		return 0;
	drop_worker(slot);
	int result = nursery_spawn(slot->server->options.nursery, slot->profile, &worker, err);
	if (result < 0)
		return result;
	server_lock(slot->server);
	slot->worker = worker;
	server_unlock(slot->server);
	return 0;
}

/* A whole no-op run. Its boundary carries our identity, though no attempt names it: what a crash leaves is the next sweep's. */
static int verify_once(struct slot *slot, struct err *err)
{
	struct boundary *boundary = NULL;
	struct ledger *ledger = slot->server->options.keeper->ledger;
	struct boundary_identity identity;
	struct probe_line line = {.result = PROBE_MISSING};
	int result = have_worker(slot, err);
	if (result == 0)
		result = worker_boundary(slot->worker, &boundary, err);
	if (result < 0)
		return result;
	snprintf(identity.ledger_id, sizeof(identity.ledger_id), "%s", ledger->ops->id(ledger));
	id_new("bnd", identity.boundary_id);
	result = trial_run(boundary, slot->profile, &identity, slot->store, &line, err);
	boundary->ops->free(boundary);
	if (result == 0 && line.result != PROBE_OK)
		result = err_set(err, ERR_UNVERIFIED, "%s", line.reason);
	if (result == 0)
		result = FAULT("serve.verified");
	if (result < 0) {
		slot->left_over = identity;
		slot->has_left_over = true;
	}
	return result;
}

/* By a provider of this process, whatever the worker did. */
static int clear_left_over(struct slot *slot, struct err *err)
{
	const struct provider_factory *factory = slot->server->options.factory;
	struct boundary_provider *provider = NULL;
	int survivors = 0;
	if (!slot->has_left_over)
		return 0;
	int result = factory->make(factory->context, slot->profile, -1, &provider, err);
	if (result < 0)
		return result;
	result = provider->ops->recover(provider->context, &slot->left_over, SERVER_CLEANUP_MS, &survivors, err);
	factory->release(factory->context, provider);
	slot->has_left_over = result < 0;
	return result;
}

static void say_state(struct slot *slot, const char *event, const char *reason)
{
	server_log(slot->server, event, "{s:i, s:s, s:s}", "slot", slot->index, "profile", slot->profile, "reason", reason);
}

static void verify(struct slot *slot)
{
	struct server *server = slot->server;
	struct err why = ERR_INIT, leaving = ERR_INIT;
	int result = ERR_UNVERIFIED;
	for (int i = 0; i < TRIES && result < 0; i++) {
		result = verify_once(slot, &why);
		if (result < 0) {
			drop_worker(slot);
			if (clear_left_over(slot, &leaving) < 0)
				break;
		}
	}
	if (slot->has_left_over) {
		say_state(slot, "worker_quarantined", leaving.text);
		enter(slot, STATS_QUARANTINED, "not_verified_empty");
		return;
	}
	server_lock(server);
	int64_t now_ns = clock_boot_ns();
	if (result == 0)
		slot->verified_at_ns = now_ns;
	slot->retry_at_ns = now_ns + SLOT_RETRY_MS * NS_PER_MS;
	server_unlock(server);
	if (result < 0)
		say_state(slot, "worker_unverified", why.text);
	enter(slot, result == 0 ? STATS_AVAILABLE : STATS_UNVERIFIED, result == 0 ? "" : "verification_failed");
	server_lock(server);
	server_dispatch(server);
	server_unlock(server);
}

static int stop_requested(void *context)
{
	struct slot *slot = context;
	server_lock(slot->server);
	int level = slot->stop_level;
	server_unlock(slot->server);
	return level;
}

static void launched(void *context)
{
	struct slot *slot = context;
	server_tell_changed(slot->server, slot->passage->entry.run_id);
}

static void show(struct slot *slot, bool shown)
{
	server_lock(slot->server);
	slot->shown = shown;
	server_unlock(slot->server);
}

/* The ledger failed: the attempt stays to be recovered, but nothing of it stays on the host (R13). Whoever lost the lease keeps his hands
 * off (R7). */
static void clean_up(struct passage *passage, int why)
{
	struct boundary_usage usage;
	if (why != ERR_FENCED)
		(void)passage->boundary->ops->cleanup(passage->boundary, &usage, NULL);
}

static int drive_claimed(struct slot *slot, struct err *err)
{
	struct passage *passage = slot->passage;
	struct runner_request request = attempt_request(&passage->attempt, slot->store, passage->boundary, passage->captures);
	request.stop_requested = stop_requested;
	request.launched = launched;
	request.context = slot;
	show(slot, true);
	int result = runner_drive(&request, &passage->result, err);
	show(slot, false);
	if (result < 0)
		clean_up(passage, result);
	return result;
}

/* Up to the claim nothing is recorded: an error leaves the run in the queue. */
static int carry(struct slot *slot, struct err *err)
{
	struct passage *passage = slot->passage;
	struct attempt *attempt = &passage->attempt;
	const struct readiness readiness = {.at_ns = slot->verified_at_ns, .ready = true};
	int result = attempt_admit(attempt, &readiness, err);
	if (result < 0)
		return result;
	if (!attempt->decision.admit) {
		result = passage_claim(slot->server, passage, err);
		return result < 0 ? result : attempt_refuse(attempt, NULL, NULL, &passage->result, err);
	}
	result = worker_boundary(slot->worker, &passage->boundary, err);
	if (result == 0)
		result = attempt_captures(attempt, slot->store, passage->captures, err);
	if (result == 0)
		result = passage_claim(slot->server, passage, err);
	return result < 0 ? result : drive_claimed(slot, err);
}

/* The worker's part is over: what it had is freed, while it is still there to be told. */
static void release_boundary(struct slot *slot)
{
	struct passage *passage = slot->passage;
	if (passage->boundary)
		passage->boundary->ops->free(passage->boundary);
	passage->boundary = NULL;
}

static void set_passage(struct slot *slot, struct passage *passage)
{
	server_lock(slot->server);
	slot->passage = passage;
	server_unlock(slot->server);
}

static void finish_passage(struct slot *slot)
{
	struct passage *passage = slot->passage;
	set_passage(slot, NULL);
	passage_free(passage);
}

/* Our own lease still holds it; it is recovered without the worker, which is gone by then. */
static int recover_passage(struct slot *slot, struct err *err)
{
	struct runner_result recovered = {0};
	struct passage *passage = slot->passage;
	int result = attempt_recover(&passage->attempt, slot->server->options.factory, &recovered, err);
	if (result < 0)
		return result;
	free(passage->result.receipt);
	passage->result = recovered;
	return recovered.provisional ? err_set(err, ERR_UNVERIFIED, "%s", recovered.verdict.detail) : 0;
}

static void quarantine(struct slot *slot, const char *reason, const char *detail, int64_t retry_at_ns)
{
	struct server *server = slot->server;
	server_log(server, "worker_quarantined", "{s:i, s:s, s:s, s:s}", "slot", slot->index, "run", slot->passage->entry.run_id, "reason",
	           reason, "detail", detail);
	server_lock(server);
	slot->retry_at_ns = retry_at_ns;
	server_unlock(server);
	enter(slot, STATS_QUARANTINED, reason);
	server_tell_changed(server, slot->passage->entry.run_id);
}

/* After a recovery: the slot gets a new worker, which is verified before anything else. */
static void begin_anew(struct slot *slot)
{
	finish_passage(slot);
	server_lock(slot->server);
	slot->retry_at_ns = 0;
	server_unlock(slot->server);
	enter(slot, STATS_UNVERIFIED, "");
}

/* An attempt that is not sealed yet, although its drive has ended. A lost worker's is recovered at once; what could not be emptied waits for an
 * independent recovery; and what the ledger would not take is tried again by itself. */
static void settle_unsealed(struct slot *slot, int result, const struct err *why)
{
	struct err failure = ERR_INIT;
	bool worker_lost = slot->worker->lost;
	release_boundary(slot);
	drop_worker(slot);
	if (result == ERR_FENCED) {
		server_log(slot->server, "lease_lost", "{s:s, s:i}", "run", slot->passage->entry.run_id, "slot", slot->index);
		begin_anew(slot);
	} else if (result < 0) {
		quarantine(slot, "ledger_failed", why->text, clock_boot_ns() + SLOT_RETRY_MS * NS_PER_MS);
	} else if (worker_lost && recover_passage(slot, &failure) == 0) {
		server_count_sealed(slot->server, slot->passage);
		begin_anew(slot);
	} else {
		quarantine(slot, "not_verified_empty", worker_lost ? failure.text : slot->passage->result.verdict.detail, INT64_MAX);
	}
}

/* Enrolled, launched and verified empty is as good as a verification of the worker. A step that failed before the launch may be the worker's
 * doing or the plan's: a verification tells. A boundary that misbehaved ends its worker's time. */
static void settle_sealed(struct slot *slot)
{
	struct server *server = slot->server;
	const struct runner_times times = slot->passage->result.times;
	enum verdict_kind verdict = slot->passage->result.verdict.kind;
	bool lost = slot->worker->lost || verdict == VERDICT_BOUNDARY_ERROR;
	release_boundary(slot);
	server_count_sealed(server, slot->passage);
	if (lost)
		drop_worker(slot);
	if (lost || verdict == VERDICT_NOT_LAUNCHED) {
		begin_anew(slot);
		return;
	}
	finish_passage(slot);
	server_lock(server);
	if (times.launched_ns && times.empty_ns)
		slot->verified_at_ns = clock_boot_ns();
	server_unlock(server);
	enter(slot, STATS_AVAILABLE, "");
}

/* Nothing was recorded. Who was faster has it; else it waits on, and the worker, which may be to blame, is verified first. */
static void settle_unclaimed(struct slot *slot, int result, const struct err *why)
{
	struct server *server = slot->server;
	bool gone = result == ERR_STATE || result == ERR_NOT_FOUND;
	if (!gone)
		server_log(server, "claim_failed", "{s:s, s:i, s:s}", "run", slot->passage->entry.run_id, "slot", slot->index, "reason",
		           why->text);
	release_boundary(slot);
	finish_passage(slot);
	if (gone) {
		enter(slot, STATS_AVAILABLE, "");
		return;
	}
	drop_worker(slot);
	server_lock(server);
	server->rescan = true;
	server_wake_house(server);
	slot->retry_at_ns = clock_boot_ns() + SLOT_RETRY_MS * NS_PER_MS;
	server_unlock(server);
	enter(slot, STATS_UNVERIFIED, "claim_failed");
}

static void drive(struct slot *slot)
{
	struct server *server = slot->server;
	struct err why = ERR_INIT;
	struct queue_entry job = slot->job;
	struct passage *passage = NULL;
	int result = passage_load(server, &job, &passage, &why);
	set_passage(slot, passage);
	if (result == 0)
		result = carry(slot, &why);
	if (!slot->passage) {
		if (result == ERR_DAMAGED)
			server_set_aside(server, &job, why.text);
		else
			server_log(server, "run_unreadable", "{s:s, s:s}", "run", job.run_id, "reason", why.text);
		enter(slot, STATS_AVAILABLE, "");
	} else if (!slot->passage->claimed) {
		settle_unclaimed(slot, result, &why);
	} else if (result < 0 || slot->passage->result.provisional) {
		settle_unsealed(slot, result, &why);
	} else {
		settle_sealed(slot);
	}
	server_lock(server);
	slot->has_job = false;
	slot->stop_level = 0;
	memcpy(slot->last_owner, job.principal, sizeof(slot->last_owner));
	queue_finished(server->queue, job.principal);
	server_dispatch(server);
	pthread_cond_broadcast(&server->settled);
	server_unlock(server);
	server_tell_changed(server, job.run_id);
}

static void recover(struct slot *slot)
{
	struct server *server = slot->server;
	struct err why = ERR_INIT;
	int result = clear_left_over(slot, &why);
	if (result == 0 && slot->passage)
		result = recover_passage(slot, &why);
	bool theirs = result == ERR_FENCED || result == ERR_STATE; /* another keeper took it over: its verification is theirs, ours follows */
	if (theirs)
		result = 0;
	server_log(server, result == 0 ? "worker_recovered" : "recovery_failed", "{s:i, s:s}", "slot", slot->index, "reason", why.text);
	if (result == 0) {
		if (slot->passage && !theirs)
			server_count_sealed(server, slot->passage);
		begin_anew(slot);
		verify(slot);
	}
	server_lock(server);
	server->stats.recoveries += result == 0;
	slot->recovery_asked = false;
	slot->recoveries_tried++;
	if (result < 0 && slot->retry_at_ns != INT64_MAX)
		slot->retry_at_ns = clock_boot_ns() + SLOT_RETRY_MS * NS_PER_MS;
	pthread_cond_broadcast(&server->settled);
	server_unlock(server);
}

/* What is to be done now; else *ret_until is when to look again (CLOCK_BOOTTIME). With the lock. */
static bool next_task(const struct slot *slot, int64_t now_ns, enum slot_task *ret, int64_t *ret_until)
{
	*ret_until = INT64_MAX;
	if (slot->has_job) {
		*ret = SLOT_DRIVE;
		return true;
	}
	if (slot->server->stopping) {
		*ret = SLOT_STOP;
		return true;
	}
	switch (slot->state) {
	case STATS_QUARANTINED:
		*ret = SLOT_RECOVER;
		*ret_until = slot->recovery_asked ? now_ns : slot->retry_at_ns;
		break;
	case STATS_UNVERIFIED:
		*ret = SLOT_VERIFY;
		*ret_until = slot->retry_at_ns;
		break;
	case STATS_AVAILABLE:
		*ret = SLOT_VERIFY;
		*ret_until = slot->verified_at_ns + ROUTER_VERIFY_S * NS_PER_S;
		if (slot->open_at_ns < *ret_until) {
			*ret = SLOT_OPEN;
			*ret_until = slot->open_at_ns;
		}
		break;
	case STATS_BUSY:
	case STATS_WORKER_COUNT:
		break;
	}
	return *ret_until <= now_ns;
}

static enum slot_task await_task(struct slot *slot)
{
	struct server *server = slot->server;
	enum slot_task task = SLOT_STOP;
	int64_t until_ns, now_ns;
	server_lock(server);
	while (!next_task(slot, now_ns = clock_boot_ns(), &task, &until_ns)) {
		int64_t left_ns = until_ns == INT64_MAX ? INT64_MAX / 2 : until_ns - now_ns;
		server_wait(server, &slot->wake, clock_mono_ns() + (left_ns < INT64_MAX / 4 ? left_ns : INT64_MAX / 4));
	}
	if (task == SLOT_VERIFY) {
		slot->state = STATS_UNVERIFIED;
		slot->verifying = true;
	} else if (task == SLOT_OPEN) {
		slot->open_at_ns = INT64_MAX;
	}
	server_unlock(server);
	return task;
}

void *slot_main(void *context)
{
	struct slot *slot = context;
	for (;;) {
		switch (await_task(slot)) {
		case SLOT_VERIFY:
			verify(slot);
			break;
		case SLOT_OPEN:
			worker_open_ahead(slot->worker);
			break;
		case SLOT_DRIVE:
			drive(slot);
			break;
		case SLOT_RECOVER:
			recover(slot);
			break;
		case SLOT_STOP:
			drop_worker(slot);
			finish_passage(slot);
			return NULL;
		}
	}
}
