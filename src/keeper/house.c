/* house.c - the keeper's own thread: reads the queue from the ledger, ends what was cancelled while it waited, recovers what others left. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "keeper/server_internal.h"

enum {
	QUEUE_BATCH = 1000,
	CANCELLED_BATCH = 16, /* sealed between two looks at the queue: who submits does not wait for all that others cancelled */
};

struct reading {
	struct server *server;
	int64_t last;
	size_t count;
	struct err *err;
};

/* The entry goes to those that wait, to those that only wait for their seal, or to those that nobody can drive. */
static int take_queued(void *context, const struct ledger_queued *queued)
{
	struct reading *reading = context;
	struct server *server = reading->server;
	struct queue_entry entry = {.position = queued->position, .cancelled = queued->cancelled,
	                            .created_at_ms = queued->created_at_ms};
	memcpy(entry.run_id, queued->run_id, sizeof(entry.run_id));
	memcpy(entry.principal, queued->principal, sizeof(entry.principal));
	memcpy(entry.profile, queued->profile, sizeof(entry.profile));
	if (!*entry.profile)
		server_set_aside(server, &entry, "its plan cannot be read");
	server_lock(server);
	bool damaged = queue_find(server->damaged, entry.run_id);
	int result = damaged ? 0 : queue_add(entry.cancelled ? server->cancelled : server->queue, &entry, reading->err);
	server_unlock(server);
	if (result < 0)
		return result;
	reading->last = entry.position;
	reading->count++;
	return 0;
}

int house_read_queue(struct server *server, struct err *err)
{
	struct ledger *ledger = server->options.keeper->ledger;
	struct reading reading = {.server = server, .err = err};
	server_lock(server);
	if (server->rescan) {
		queue_clear(server->queue);
		queue_clear(server->cancelled);
		server->queue_read_to = 0;
		server->rescan = false;
	}
	reading.last = server->queue_read_to;
	server_unlock(server);
	int result = 0;
	do {
		reading.count = 0;
		result = ledger->ops->queued(ledger, reading.last, QUEUE_BATCH, take_queued, &reading, err);
	} while (result == 0 && reading.count == QUEUE_BATCH);
	server_lock(server);
	server->queue_read_to = reading.last;
	server_dispatch(server);
	server_unlock(server);
	return result;
}

static enum queue_choice any(void *context, const struct queue_entry *entry)
{
	(void)context;
	(void)entry;
	return QUEUE_TAKE;
}

static int end_cancelled(struct server *server, struct passage *passage, struct err *err)
{
	int result = attempt_cancel(&passage->attempt, &passage->result, err);
	if (result == 0)
		server_count_sealed(server, passage);
	server_tell_changed(server, passage->entry.run_id);
	return result;
}

/* No worker is needed for a run that was cancelled while it waited: it is claimed, and sealed. */
static void seal_cancelled(struct server *server)
{
	struct queue_entry entry;
	for (int i = 0; i < CANCELLED_BATCH; i++) {
		struct passage *passage = NULL;
		struct err why = ERR_INIT;
		server_lock(server);
		bool found = queue_next(server->cancelled, any, NULL, &entry);
		if (found)
			queue_finished(server->cancelled, entry.principal);
		server_unlock(server);
		if (!found)
			return;
		const struct readiness not_needed = {.at_ns = clock_boot_ns(), .ready = true}; /* nothing is started */
		int result = passage_load(server, &entry, &passage, &why);
		if (result == 0)
			result = attempt_admit(&passage->attempt, &not_needed, &why);
		if (result == 0)
			result = passage_claim(server, passage, &why);
		if (result == 0)
			result = end_cancelled(server, passage, &why);
		if (result == ERR_DAMAGED)
			server_set_aside(server, &entry, why.text);
		else if (result < 0 && result != ERR_STATE)
			server_log(server, "cancel_failed", "{s:s, s:s}", "run", entry.run_id, "reason", why.text);
		passage_free(passage);
	}
}

static void report(void *context, const char *run_id, const char *line)
{
	server_log(context, "recovery", "{s:s, s:s}", "run", run_id, "line", line);
}

static bool holds(void *context, const char *run_id)
{
	struct server *server = context;
	bool held = false;
	server_lock(server);
	for (size_t i = 0; i < server->slot_count && !held; i++) {
		const struct passage *passage = server->slots[i].passage;
		held = passage && strcmp(passage->entry.run_id, run_id) == 0;
	}
	server_unlock(server);
	return held;
}

int house_recover(struct server *server, bool sweep, struct err *err)
{
	struct keeper_recovered recovered = {0};
	const struct keeper_recovery recovery = {
		.keeper = server->options.keeper,
		.factory = server->options.factory,
		.profiles = server->options.profiles,
		.sweep = sweep,
		.watch = server->watch,
		.holds = holds,
		.report = report,
		.context = server,
	};
	int result = keeper_recover(&recovery, &recovered, err);
	server_lock(server);
	server->stats.recoveries += (uint64_t)(recovered.sealed + recovered.requeued);
	server->rescan = server->rescan || recovered.requeued > 0;
	server_unlock(server);
	return result;
}

static void await_work(struct server *server, int64_t deadline_ns)
{
	server_lock(server);
	while (!server->stopping && !server->poked && !server->rescan && queue_length(server->cancelled) == 0 && clock_mono_ns() < deadline_ns)
		server_wait(server, &server->house_wake, deadline_ns);
	server->poked = false;
	server_unlock(server);
}

/* A run that another keeper's recovery queues again has its old place, which we have read past. So all of the queue is read again now and
 * then, and whenever we have nothing to do. */
static void look_behind(struct server *server, int64_t round)
{
	server_lock(server);
	server->rescan = server->rescan || queue_length(server->queue) == 0 || round % HOUSE_RESCAN_ROUNDS == 0;
	server_unlock(server);
}

static bool is_stopping(struct server *server)
{
	server_lock(server);
	bool stopping = server->stopping;
	server_unlock(server);
	return stopping;
}

void *house_main(void *context)
{
	struct server *server = context;
	int64_t recover_at_ns = clock_mono_ns() + HOUSE_RECOVER_TICKS * HOUSE_TICK_MS * NS_PER_MS, round = 0;
	while (!is_stopping(server)) {
		struct err why = ERR_INIT;
		await_work(server, clock_mono_ns() + HOUSE_TICK_MS * NS_PER_MS);
		int result = house_read_queue(server, &why);
		seal_cancelled(server);
		if (clock_mono_ns() >= recover_at_ns) {
			if (result == 0)
				result = house_recover(server, false, &why);
			look_behind(server, ++round);
			recover_at_ns = clock_mono_ns() + HOUSE_RECOVER_TICKS * HOUSE_TICK_MS * NS_PER_MS;
		}
		if (result < 0)
			server_log(server, "ledger_failed", "{s:s}", "reason", why.text);
	}
	return NULL;
}
