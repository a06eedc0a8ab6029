/* passthrough.c - a thread that copies what the captures gain to the caller's descriptors. */
#include "cli/passthrough.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "print/output.h"

enum { STREAMS = 2, THREAD_STACK_BYTES = 256 * 1024 };

struct stream {
	struct output output;
	int64_t limit_bytes;
	int64_t shown_bytes;
	struct capture *own; /* the thread's own object over the spool: an object serves one thread */
};

struct passthrough {
	struct stream streams[STREAMS];
	enum overflow_mode mode;
	int stop; /* eventfd: the run is over */
	bool running;
	pthread_t thread;
};

int passthrough_new(const struct plan_limits *limits, int stdout_fd, int stderr_fd, struct passthrough **ret, struct err *err)
{
	FD_AUTO int stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (stop < 0)
		return err_sys(err, errno, "make an eventfd");

	struct passthrough *passthrough = calloc(1, sizeof(*passthrough));

	if (!passthrough)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	passthrough->mode = limits->on_overflow;
	passthrough->streams[0].limit_bytes = limits->stdout_bytes;
	passthrough->streams[1].limit_bytes = limits->stderr_bytes;
	output_init(&passthrough->streams[0].output, stdout_fd);
	output_init(&passthrough->streams[1].output, stderr_fd);
	passthrough->stop = fd_take(&stop);
	*ret = passthrough;
	return 0;
}

static int show(void *context, const void *bytes, size_t count)
{
	struct stream *stream = context;

	output_bytes(&stream->output, bytes, count);
	stream->shown_bytes += (int64_t)count;
	return stream->output.dead;
}

/* What cannot be read back now is tried again at the end. */
static void show_new(struct stream *stream, struct capture *capture)
{
	if (capture && !stream->output.dead)
		(void)capture_read(capture, stream->shown_bytes, show, stream, NULL);
}

static void forget_event(int fd)
{
	uint64_t count;

	(void)!read(fd, &count, sizeof(count));
}

static void *follow(void *context)
{
	struct passthrough *passthrough = context;
	struct pollfd waiting[STREAMS + 1] = {[STREAMS] = {.fd = passthrough->stop, .events = POLLIN}};

	for (size_t i = 0; i < STREAMS; i++)
		waiting[i] = (struct pollfd){.fd = capture_notify_fd(passthrough->streams[i].own), .events = POLLIN};
	while (!waiting[STREAMS].revents) {
		if (poll(waiting, STREAMS + 1, -1) < 0 && errno != EINTR)
			break;
		for (size_t i = 0; i < STREAMS; i++) {
			struct stream *stream = &passthrough->streams[i];

			if (!waiting[i].revents)
				continue;
			forget_event(waiting[i].fd);
			show_new(stream, stream->own);
			if (stream->output.dead)
				waiting[i].fd = -1;
		}
	}
	return NULL;
}

/* An object of our own over the same spool. */
static int attach(struct stream *stream, const struct capture *capture, enum overflow_mode mode)
{
	FD_AUTO int spool = fcntl(capture_spool_fd(capture), F_DUPFD_CLOEXEC, 0);
	FD_AUTO int notify = fcntl(capture_notify_fd(capture), F_DUPFD_CLOEXEC, 0);

	if (spool < 0 || notify < 0)
		return ERR_IO;

	int result = capture_attach(spool, notify, stream->limit_bytes, mode, &stream->own, NULL);

	if (result == 0) {
		fd_take(&spool);
		fd_take(&notify);
	}
	return result;
}

/* The thread hears no signal: they are the keeper's. */
static bool start_thread(struct passthrough *passthrough)
{
	sigset_t all, before;
	pthread_attr_t attributes;

	if (pthread_attr_init(&attributes))
		return false;
	pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);

	int result = pthread_create(&passthrough->thread, &attributes, follow, passthrough);

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return result == 0;
}

void passthrough_follow(void *context, struct capture *standard_output, struct capture *standard_error)
{
	struct passthrough *passthrough = context;

	if (passthrough->running || attach(&passthrough->streams[0], standard_output, passthrough->mode) ||
	    attach(&passthrough->streams[1], standard_error, passthrough->mode))
		return;
	passthrough->running = start_thread(passthrough);
}

static void stop_thread(struct passthrough *passthrough)
{
	if (!passthrough->running)
		return;
	(void)!write(passthrough->stop, &(uint64_t){1}, sizeof(uint64_t));
	pthread_join(passthrough->thread, NULL);
	passthrough->running = false;
}

void passthrough_finish(struct passthrough *passthrough, struct capture *standard_output, struct capture *standard_error)
{
	struct capture *const settled[STREAMS] = {standard_output, standard_error};

	stop_thread(passthrough);
	for (size_t i = 0; i < STREAMS; i++) {
		show_new(&passthrough->streams[i], settled[i]);
		output_finish(&passthrough->streams[i].output);
	}
}

void passthrough_free(struct passthrough *passthrough)
{
	if (!passthrough)
		return;
	stop_thread(passthrough);
	for (size_t i = 0; i < STREAMS; i++)
		capture_free(passthrough->streams[i].own);
	fd_close(&passthrough->stop);
	free(passthrough);
}
