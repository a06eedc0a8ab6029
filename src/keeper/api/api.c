/* api.c - starts and stops the API. */
#include "keeper/api/api.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "keeper/api/api_internal.h"

static int start_threads(struct api *api, struct err *err)
{
	int failed = pthread_create(&api->loop, NULL, loop_run, api);
	if (failed)
		return err_sys(err, failed, "start a thread of the API");
	api->loop_runs = true;
	for (; api->thread_count < API_THREADS; api->thread_count++) {
		failed = pthread_create(&api->threads[api->thread_count], NULL, serve_run, api);
		if (failed)
			return err_sys(err, failed, "start a thread of the API");
	}
	return 0;
}

int api_start(const struct api_options *options, struct api **ret, struct err *err)
{
	if (access(options->front_path, X_OK) < 0)
		return err_sys(err, errno, "the HTTP front %s", options->front_path);
	struct api *api = calloc(1, sizeof(*api));
	if (!api)
		return err_set(err, ERR_NO_MEMORY, "out of memory for the API");
	api->options = *options;
	api->own_uid = geteuid();
	api->epoll = api->wake = api->listener.fd = api->front.intake = api->front.pidfd = -1;
	api->queue_end = &api->queue;
	api->next_look_ns = INT64_MAX;
	pthread_mutex_init(&api->lock, NULL);
	pthread_cond_init(&api->work, NULL);
	feeds_init(api);
	int result = listener_open(options->socket_path, &api->listener, err);
	if (result == 0)
		result = front_start(api, err);
	if (result == 0)
		result = loop_prepare(api, err);
	if (result == 0)
		result = start_threads(api, err);
	if (result) {
		api_free(api);
		return result;
	}
	*ret = api;
	return 0;
}

static void join_threads(struct api *api)
{
	pthread_mutex_lock(&api->lock);
	api->stopping = true;
	pthread_cond_broadcast(&api->work);
	pthread_mutex_unlock(&api->lock);
	if (api->loop_runs) {
		loop_wake(api);
		pthread_join(api->loop, NULL);
	}
	for (size_t i = 0; i < api->thread_count; i++)
		pthread_join(api->threads[i], NULL);
	api->loop_runs = false;
	api->thread_count = 0;
}

void api_stop(struct api *api)
{
	join_threads(api);
	schedule_close_all(api);
	front_end(&api->front);
	listener_close(&api->listener);
	fd_close(&api->epoll);
	fd_close(&api->wake);
}

void api_free(struct api *api)
{
	if (!api)
		return;
	api_stop(api);
	feeds_done(api);
	pthread_cond_destroy(&api->work);
	pthread_mutex_destroy(&api->lock);
	free(api);
}
