/* serve.c - `caisson serve`: a keeper of many runs, until it is told to stop.
 *
 * SIGTERM and SIGINT drain: nothing is begun any more, what is under way may end within --drain; then, or at a second signal, the rest is
 * killed and sealed as interrupted. What waits stays in the ledger for the next keeper. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/log.h"
#include "cli/places.h"
#include "cli/settings.h"
#include "cli/signals.h"
#include "cli/wiring.h"
#include "keeper/api/api.h"
#include "keeper/notify.h"
#include "keeper/nursery.h"
#include "keeper/server.h"
#include "print/output.h"

enum {
	FRONT_ID = 65534,        /* nobody, nogroup */
};

/* What a keeper holds on to. Freed in the opposite order. */
struct serve {
	const struct options *options;
	struct config config;
	const struct provider_factory *factory;
	const char *profiles[SERVER_WORKERS_MAX];
	size_t worker_count;
	struct buf socket_path, front_path;
	int signals, wake; /* signalfd; eventfd, written when something has changed */
	struct notify notify;
	int64_t watchdog_ms; /* -1: none */
	struct nursery *nursery;
	struct keeper *keeper;
	struct server *server;
	struct api *api;
	pthread_mutex_t api_lock; /* of api: changes are told from many threads, from before it is there until after it is gone */
};

static void serve_done(struct serve *serve)
{
	pthread_mutex_lock(&serve->api_lock);
	struct api *api = serve->api;
	serve->api = NULL;
	pthread_mutex_unlock(&serve->api_lock);
	api_free(api);
	server_free(serve->server);
	keeper_free(serve->keeper);
	nursery_free(serve->nursery);
	notify_close(&serve->notify);
	fd_close(&serve->signals);
	fd_close(&serve->wake);
	buf_done(&serve->socket_path);
	buf_done(&serve->front_path);
	pthread_mutex_destroy(&serve->api_lock);
}

static void changed(void *context, const char *run_id)
{
	struct serve *serve = context;

	pthread_mutex_lock(&serve->api_lock);
	if (serve->api)
		api_changed(serve->api, run_id);
	pthread_mutex_unlock(&serve->api_lock);
	(void)!write(serve->wake, &(uint64_t){1}, sizeof(uint64_t)); /* a full counter is readable already */
}

static int catch_signals(struct serve *serve, struct err *err)
{
	sigset_t stops;

	sigemptyset(&stops);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGHUP);
	if (pthread_sigmask(SIG_BLOCK, &stops, NULL) != 0)
		return err_set(err, ERR_INTERNAL, "signals cannot be blocked");
	serve->signals = signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK);
	serve->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (serve->signals < 0 || serve->wake < 0)
		return err_sys(err, errno, "watch for signals");
	return 0;
}

static int start_server(struct serve *serve, struct err *err)
{
	const struct config *config = &serve->config;
	const struct server_options given = {
		.keeper = serve->keeper,
		.nursery = serve->nursery,
		.factory = serve->factory,
		.profiles = wiring_profiles,
		.workers = serve->profiles,
		.worker_count = serve->worker_count,
		.per_owner = (int)config->per_owner,
		.queue_max = config->queue_max,
		.lease_ttl_ms = config->lease_ttl_ms,
		.log = log_event,
		.changed = changed,
		.context = serve,
	};

	return server_start(&given, &serve->server, err);
}

static int start_api(struct serve *serve, struct err *err)
{
	const struct api_options given = {
		.socket_path = serve->socket_path.data,
		.front_path = serve->front_path.data,
		.front_uid = FRONT_ID,
		.front_gid = FRONT_ID,
		.ledger = serve->keeper->ledger,
		.store = serve->keeper->store,
		.core = server_core(serve->server),
	};
	struct api *api = NULL;
	int result = api_start(&given, &api, err);

	pthread_mutex_lock(&serve->api_lock);
	serve->api = api;
	pthread_mutex_unlock(&serve->api_lock);
	return result;
}

static int configure(struct serve *serve, struct err *err)
{
	struct config *config = &serve->config;
	int result = settings_read(serve->options, config, err);

	if (result)
		return result;
	if (!*config->profile)
		snprintf(config->profile, sizeof(config->profile), "linux");
	for (int64_t i = 0; i < config->workers && i < SERVER_WORKERS_MAX; i++)
		serve->profiles[serve->worker_count++] = config->profile;
	serve->factory = wiring_factory(*config->cgroup_parent ? config->cgroup_parent : NULL);
	return config->workers > SERVER_WORKERS_MAX ? err_set(err, ERR_INVALID, "--workers: at most %d", SERVER_WORKERS_MAX) : 0;
}

/* The nursery first, while this process is small and has one thread, no ledger and no signal blocked. */
static int start(struct serve *serve, struct err *err)
{
	int result = configure(serve, err);

	if (result == 0)
		result = places_front(&serve->front_path, err);
	if (result == 0)
		result = places_socket(*serve->config.socket ? serve->config.socket : NULL, serve->options->ledger, &serve->socket_path, err);
	if (result == 0)
		result = notify_open(getenv("NOTIFY_SOCKET"), &serve->notify, err);
	if (result == 0)
		result = nursery_start(serve->factory, &serve->nursery, err);
	if (result == 0)
		result = catch_signals(serve, err);
	if (result == 0)
		result = wiring_open_shared_keeper(serve->options->ledger, changed, serve, &serve->keeper, err);
	if (result == 0)
		result = start_server(serve, err);
	return result ? result : start_api(serve, err);
}

enum news { NEWS_NONE, NEWS_STOP, NEWS_RELOAD, NEWS_NURSERY };

/* Waits for a signal, the nursery's end, the time, or with `changes` for one of those. */
static enum news await_news(struct serve *serve, bool changes, int64_t timeout_ms)
{
	bool watched = serve->watchdog_ms >= 0 && (timeout_ms < 0 || serve->watchdog_ms < timeout_ms);
	struct pollfd waiting[] = {
		{.fd = serve->signals, .events = POLLIN},
		{.fd = nursery_pidfd(serve->nursery), .events = POLLIN},
		{.fd = changes ? serve->wake : -1, .events = POLLIN},
	};
	struct signalfd_siginfo info;
	uint64_t changed_count;

	int count = poll(waiting, sizeof(waiting) / sizeof(waiting[0]), (int)(watched ? serve->watchdog_ms : timeout_ms));
	server_poke(serve->server); /* who cannot get its lock is not alive, and feeds no watchdog */
	notify_send(&serve->notify, "WATCHDOG=1");
	if (count <= 0)
		return NEWS_NONE;
	if (waiting[2].revents)
		(void)!read(serve->wake, &changed_count, sizeof(changed_count));
	if (read(serve->signals, &info, sizeof(info)) == sizeof(info))
		return info.ssi_signo == SIGHUP ? NEWS_RELOAD : NEWS_STOP;
	return waiting[1].revents ? NEWS_NURSERY : NEWS_NONE;
}

/* Until all is idle, the time is over, or somebody insists. */
static void drain(struct serve *serve)
{
	int64_t drain_ms = serve->config.drain_ms;
	int64_t deadline_ns = clock_mono_ns() + drain_ms * NS_PER_MS, left_ms;

	log_event(NULL, "draining", json_pack("{s:I}", "drain_ms", (json_int_t)drain_ms));
	notify_send(&serve->notify, "STOPPING=1\nSTATUS=draining");
	server_drain(serve->server);
	while (!server_wait_idle(serve->server, 0) && (left_ms = (deadline_ns - clock_mono_ns()) / NS_PER_MS) >= 0) {
		enum news news = await_news(serve, true, left_ms + 1);

		if (news == NEWS_STOP || news == NEWS_NURSERY)
			return;
	}
}

/* What needs another socket or other workers needs a restart, and is told. A file that cannot be read changes nothing. */
static void reload(struct serve *serve)
{
	struct config now;
	struct err why = ERR_INIT;
	const struct config *was = &serve->config;

	if (settings_read(serve->options, &now, &why) < 0) {
		log_event(NULL, "reload_failed", json_pack("{s:s}", "reason", why.text));
		return;
	}
	bool restart = now.workers != was->workers || now.lease_ttl_ms != was->lease_ttl_ms || strcmp(now.socket, was->socket) != 0 ||
	               (*now.profile && strcmp(now.profile, was->profile) != 0) || strcmp(now.cgroup_parent, was->cgroup_parent) != 0;

	serve->config.per_owner = now.per_owner;
	serve->config.queue_max = now.queue_max;
	serve->config.drain_ms = now.drain_ms;
	server_adjust(serve->server, (int)now.per_owner, now.queue_max);
	log_event(NULL, "reloaded", json_pack("{s:b}", "needs_restart", restart));
}

static int serve_runs(struct serve *serve, struct err *err)
{
	log_event(NULL, "serving", json_pack("{s:s, s:I}", "socket", serve->socket_path.data, "workers", (json_int_t)serve->worker_count));
	notify_send(&serve->notify, "READY=1\nSTATUS=serving");
	for (;;)
		switch (await_news(serve, false, -1)) {
		case NEWS_STOP:
			drain(serve);
			log_event(NULL, "stopping", NULL);
			return STATUS_OK;
		case NEWS_NURSERY:
			return err_set(err, ERR_LOST, "the nursery is dead: no worker can be made any more");
		case NEWS_RELOAD:
			reload(serve);
			break;
		case NEWS_NONE:
			break;
		}
}

static int run(struct options *options, struct err *err)
{
	__attribute__((cleanup(serve_done))) struct serve serve = {
		.options = options,
		.signals = -1,
		.wake = -1,
		.notify = {.fd = -1},
		.watchdog_ms = notify_watchdog_ms(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID")),
		.socket_path = BUF_INIT(MANIFEST_MAX_PATH),
		.front_path = BUF_INIT(MANIFEST_MAX_PATH),
		.api_lock = PTHREAD_MUTEX_INITIALIZER,
	};
	int result = require_operands(options, 0, "no operand", err);

	signals_ignore_pipe();
	if (result == 0)
		result = start(&serve, err);
	return result ? result : serve_runs(&serve, err);
}

const struct command command_serve = {
	.name = "serve",
	.bit = FOR_SERVE,
	.usage = "[options]",
	.summary = "Runs many programs at once for whoever may use its socket, and recovers what dead keepers left.\n"
		   "SIGTERM lets what is under way end, then stops; what waits stays in the ledger.",
	.examples = "  caisson serve --workers 4\n"
		    "  caisson serve --ledger /srv/judge --socket /run/caisson.sock\n",
	.run = run,
};
