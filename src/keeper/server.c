/* server.c - starts and stops the keeper of many runs, and gives its runs to its workers. */
#include "keeper/server.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "artifact/store.h"
#include "base/clock.h"
#include "capture/capture.h"
#include "keeper/server_internal.h"

void server_wait(struct server *server, pthread_cond_t *condition, int64_t deadline_ns)
{
	const struct timespec until = {.tv_sec = (time_t)(deadline_ns / NS_PER_S), .tv_nsec = (long)(deadline_ns % NS_PER_S)};
	pthread_cond_timedwait(condition, &server->lock, &until);
}

void server_init_condition(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

void server_log(struct server *server, const char *event, const char *format, ...)
{
	va_list arguments;
	if (!server->options.log)
		return;
	va_start(arguments, format);
	json_t *details = format ? json_vpack_ex(NULL, 0, format, arguments) : NULL;
	va_end(arguments);
	if (format && !details)
		details = json_pack("{s:s}", "details", "left out: they are no UTF-8");
	server->options.log(server->options.context, event, details);
}

void server_set_aside(struct server *server, const struct queue_entry *entry, const char *reason)
{
	server_lock(server);
	bool known = queue_find(server->damaged, entry->run_id);
	if (!known)
		(void)queue_add(server->damaged, entry, NULL); /* no room: it is told, and told again */
	server_unlock(server);
	if (!known)
		server_log(server, "run_unreadable", "{s:s, s:s}", "run", entry->run_id, "reason", reason);
}

void server_tell_changed(struct server *server, const char *run_id)
{
	if (server->options.changed)
		server->options.changed(server->options.context, run_id);
}

static void count_steps(struct stats_histogram steps[static STATS_STEP_COUNT], const struct passage *passage)
{
	const struct runner_times *times = &passage->result.times;
	struct { enum stats_step step; int64_t from_ns, to_ns; } spans[] = {
		{STATS_PREPARE, times->begun_ns, times->enrolled_ns},
		{STATS_LAUNCH, times->enrolled_ns, times->launched_ns},
		{STATS_RUN, times->launched_ns, times->exited_ns},
		{STATS_CLEANUP, times->exited_ns, times->empty_ns},
		{STATS_SEAL, times->empty_ns, times->sealed_ns},
	};
	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
		if (spans[i].from_ns && spans[i].to_ns)
			stats_observe(&steps[spans[i].step], spans[i].to_ns - spans[i].from_ns);
	int64_t created_ms = passage->entry.created_at_ms, admitted_ms = passage->attempt.admitted_at_ms;
	stats_observe(&steps[STATS_QUEUED], (admitted_ms - created_ms) * NS_PER_MS);
	stats_observe(&steps[STATS_TOTAL], (clock_wall_ms() - created_ms) * NS_PER_MS);
}

static uint64_t dropped_bytes(const struct passage *passage)
{
	struct capture_state state = {0};
	uint64_t sum = 0;
	for (size_t i = 0; i < 2; i++) {
		if (passage->captures[i])
			capture_get_state(passage->captures[i], &state);
		sum += (uint64_t)state.dropped_bytes;
	}
	return sum;
}

void server_count_sealed(struct server *server, const struct passage *passage)
{
	uint64_t dropped = dropped_bytes(passage);
	server_lock(server);
	if (passage->result.requeued) {
		server->rescan = true;
		server_wake_house(server);
	} else {
		server->stats.verdicts[passage->result.verdict.kind]++;
		server->stats.dropped_bytes += dropped;
		count_steps(server->stats.steps, passage);
	}
	server_unlock(server);
}

static size_t view_workers(const struct server *server, struct router_worker workers[static SERVER_WORKERS_MAX])
{
	for (size_t i = 0; i < server->slot_count; i++) {
		const struct slot *slot = &server->slots[i];
		workers[i] = (struct router_worker){
			.profile = slot->profile,
			.state = slot_state(slot),
			.verifying = slot->verifying,
			.verified_at_ns = slot->verified_at_ns,
			.last_owner = slot->last_owner,
		};
	}
	return server->slot_count;
}

enum route server_route(const struct server *server, const char *profile, const char *owner, size_t *ret_index)
{
	struct router_worker workers[SERVER_WORKERS_MAX];
	size_t count = view_workers(server, workers);
	return router_choose(workers, count, profile, owner, clock_boot_ns(), ret_index);
}

struct choosing {
	const struct server *server;
	size_t index;
};

static enum queue_choice choose(void *context, const struct queue_entry *entry)
{
	struct choosing *choosing = context;
	enum route route = server_route(choosing->server, entry->profile, entry->principal, &choosing->index);
	return route == ROUTE_TAKEN ? QUEUE_TAKE : QUEUE_SKIP;
}

void server_dispatch(struct server *server)
{
	struct choosing choosing = {.server = server};
	struct queue_entry entry;
	if (server->draining)
		return;
	while (queue_next(server->queue, choose, &choosing, &entry)) {
		struct slot *slot = &server->slots[choosing.index];
		slot->job = entry;
		slot->has_job = true;
		pthread_cond_signal(&slot->wake);
	}
}

void server_wake_house(struct server *server)
{
	server->poked = true;
	pthread_cond_signal(&server->house_wake);
}

void server_poke(struct server *server)
{
	server_lock(server);
	server_wake_house(server);
	server_unlock(server);
}

void server_adjust(struct server *server, int per_owner, int64_t queue_max)
{
	server_lock(server);
	queue_set_per_owner(server->queue, per_owner);
	server->options.queue_max = queue_max;
	server_dispatch(server);
	server_unlock(server);
}

void server_drain(struct server *server)
{
	server_lock(server);
	server->draining = true;
	server_unlock(server);
}

static bool is_idle(const struct server *server)
{
	for (size_t i = 0; i < server->slot_count; i++)
		if (server->slots[i].has_job)
			return false;
	return true;
}

bool server_wait_idle(struct server *server, int64_t timeout_ms)
{
	int64_t deadline_ns = clock_mono_ns() + timeout_ms * NS_PER_MS;
	server_lock(server);
	while (!is_idle(server) && clock_mono_ns() < deadline_ns)
		server_wait(server, &server->settled, deadline_ns);
	bool idle = is_idle(server);
	server_unlock(server);
	return idle;
}

const struct api_core *server_core(const struct server *server)
{
	return &server->core;
}

/* Driver and housekeeper take no signals: those are the program's. */
static int start_thread(pthread_t *ret, void *(*body)(void *), void *argument, struct err *err)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int errnum = pthread_create(ret, NULL, body, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return errnum ? err_sys(err, errnum, "start a thread") : 0;
}

static int start_slot(struct server *server, const char *profile, struct err *err)
{
	struct slot *slot = &server->slots[server->slot_count];
	*slot = (struct slot){
		.server = server, .index = (int)server->slot_count, .profile = profile, .state = STATS_UNVERIFIED, .verifying = true,
	};
	server_init_condition(&slot->wake);
	int result = store_open(store_dir_fd(server->options.keeper->store), &slot->store, err);
	if (result == 0)
		result = start_thread(&slot->thread, slot_main, slot, err);
	if (result < 0) {
		store_free(slot->store);
		return result;
	}
	server_lock(server);
	server->slot_count++;
	server_unlock(server);
	return 0;
}

static int start(struct server *server, struct err *err)
{
	const struct server_options *options = &server->options;
	int result = house_recover(server, true, err);
	if (result == 0)
		result = house_read_queue(server, err);
	for (size_t i = 0; result == 0 && i < options->worker_count; i++)
		result = start_slot(server, options->workers[i], err);
	if (result == 0)
		result = start_thread(&server->house, house_main, server, err);
	server->house_runs = result == 0;
	return result;
}


int server_start(const struct server_options *options, struct server **ret, struct err *err)
{
	if (options->worker_count > SERVER_WORKERS_MAX)
		return err_set(err, ERR_INVALID, "at most %d workers", SERVER_WORKERS_MAX);
	struct server *server = calloc(1, sizeof(*server));
	if (!server)
		return err_set(err, ERR_NO_MEMORY, "out of memory for the keeper");
	server->options = *options;
	server_fill_core(server);
	pthread_mutex_init(&server->lock, NULL);
	server_init_condition(&server->house_wake);
	server_init_condition(&server->settled);
	server->watch = keeper_watch_new();
	int result = server->watch ? queue_new(options->per_owner, &server->queue, err) : err_set(err, ERR_NO_MEMORY, "out of memory for the keeper");
	if (result == 0)
		result = queue_new(INT32_MAX, &server->cancelled, err);
	if (result == 0)
		result = queue_new(INT32_MAX, &server->damaged, err);
	if (result == 0)
		result = start(server, err);
	if (result < 0) {
		server_free(server);
		return result;
	}
	*ret = server;
	return 0;
}

static void stop(struct server *server)
{
	server_lock(server);
	server->draining = server->stopping = true;
	for (size_t i = 0; i < server->slot_count; i++) {
		if (server->slots[i].has_job)
			slot_kill_worker(&server->slots[i]);
		pthread_cond_signal(&server->slots[i].wake);
	}
	pthread_cond_signal(&server->house_wake);
	pthread_cond_broadcast(&server->settled);
	server_unlock(server);
}

void server_free(struct server *server)
{
	if (!server)
		return;
	stop(server);
	for (size_t i = 0; i < server->slot_count; i++) {
		pthread_join(server->slots[i].thread, NULL);
		store_free(server->slots[i].store);
		pthread_cond_destroy(&server->slots[i].wake);
	}
	if (server->house_runs)
		pthread_join(server->house, NULL);
	keeper_watch_free(server->watch);
	queue_free(server->queue);
	queue_free(server->cancelled);
	queue_free(server->damaged);
	pthread_cond_destroy(&server->house_wake);
	pthread_cond_destroy(&server->settled);
	pthread_mutex_destroy(&server->lock);
	free(server);
}
