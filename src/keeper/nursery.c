/* nursery.c - one request, one fork: {"profile": …} is answered with a worker's channel and its pidfd, or {"error": …}. */
#include "keeper/nursery.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"

enum {
	CHANNEL_FD = 3, /* in the nursery; all above is closed */
	ANSWER_MAX = 1024,
	LEAVE_MS = 10 * 1000,
};

/* Descriptors of an answer, in this order. */
enum answer_fd { ANSWER_CHANNEL, ANSWER_PIDFD, ANSWER_FDS };

struct nursery {
	pthread_mutex_t lock; /* one request at a time */
	struct channel channel;
	pid_t pid;
	int pidfd;
};

/* Forks a worker and gives the keeper's end of its channel. */
static int bear(const char *profile, const struct provider_factory *factory, int ret_fds[static ANSWER_FDS], struct err *err)
{
	int ends[2];
	int result = channel_pair(ends, err);
	if (result < 0)
		return result;
	pid_t pid = worker_fork(ends[1], profile, factory, err);
	fd_close(&ends[1]);
	int pidfd = pid < 0 ? -1 : pidfd_open(pid, 0);
	if (pid >= 0 && pidfd >= 0) {
		ret_fds[ANSWER_CHANNEL] = ends[0];
		ret_fds[ANSWER_PIDFD] = pidfd;
		return 0;
	}
	int errnum = errno;
	fd_close(&ends[0]); /* with it a worker that there is ends */
	return pid < 0 ? (int)pid : err_sys(err, errnum, "open a worker's pidfd");
}

static int answer(struct channel *channel, const struct channel_message *request, const struct provider_factory *factory)
{
	BUF_AUTO struct buf text = BUF_INIT(ANSWER_MAX);
	JSON_AUTO json_t *asked = json_loads(request->text, 0, NULL);
	const char *profile = json_string_value(json_object_get(asked, "profile"));
	struct channel_message message = {0};
	struct err err = ERR_INIT;
	if (!profile)
		return ERR_PROTOCOL;
	int born = bear(profile, factory, message.fds, &err);
	JSON_AUTO json_t *said = json_object();
	if (born == 0)
		message.fd_count = ANSWER_FDS;
	else
		json_set_bytes(said, "error", err.text, strlen(err.text), NULL);
	int result = json_canonical(said, &text, NULL);
	message.text = text.data;
	message.length = text.len;
	if (result == 0)
		result = channel_send(channel, &message, NULL);
	channel_message_done(&message);
	return result;
}

/* The dead are reaped by the kernel: nobody here wants to know how they ended. */
static _Noreturn void be_nursery(int fd, const struct provider_factory *factory)
{
	struct channel channel;
	setsid();
	prctl(PR_SET_NAME, "caisson-nursery");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (fd != CHANNEL_FD)
		dup3(fd, CHANNEL_FD, O_CLOEXEC);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int standard = 0; standard <= 2; standard++)
		dup2(null, standard);
	close_range(CHANNEL_FD + 1, ~0U, 0);
	if (channel_init(&channel, CHANNEL_FD, NULL) < 0)
		_exit(1);
	for (;;) {
		struct channel_message request = {0};
		int result = channel_receive(&channel, &request, NULL);
		if (result == 0)
			result = answer(&channel, &request, factory);
		channel_message_done(&request);
		if (result < 0)
			_exit(0);
	}
}

static int start(struct nursery *nursery, const struct provider_factory *factory, struct err *err)
{
	int ends[2];
	int result = channel_pair(ends, err);
	if (result < 0)
		return result;
	result = channel_init(&nursery->channel, ends[0], err);
	if (result < 0) {
		fd_close(&ends[0]);
		fd_close(&ends[1]);
		return result;
	}
	nursery->pid = fork();
	if (nursery->pid == 0)
		be_nursery(ends[1], factory);
	int errnum = errno;
	fd_close(&ends[1]);
	if (nursery->pid < 0)
		return err_sys(err, errnum, "fork the nursery");
	nursery->pidfd = pidfd_open(nursery->pid, 0);
	return nursery->pidfd < 0 ? err_sys(err, errno, "open the nursery's pidfd") : 0;
}

int nursery_start(const struct provider_factory *factory, struct nursery **ret, struct err *err)
{
	struct nursery *nursery = calloc(1, sizeof(*nursery));
	if (!nursery)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a nursery");
	pthread_mutex_init(&nursery->lock, NULL);
	nursery->channel.fd = nursery->pidfd = -1;
	int result = start(nursery, factory, err);
	if (result < 0) {
		nursery_free(nursery);
		return result;
	}
	*ret = nursery;
	return 0;
}

static int take_answer(struct channel_message *message, const char *profile, struct worker **ret, struct err *err)
{
	JSON_AUTO json_t *said = json_loads(message->text, 0, NULL);
	const char *why = json_string_value(json_object_get(said, "error"));
	if (why)
		return err_set(err, ERR_UNSUPPORTED, "%s", why);
	if (message->fd_count != ANSWER_FDS)
		return err_set(err, ERR_PROTOCOL, "the nursery's answer has no worker");
	int result = worker_adopt(profile, message->fds[ANSWER_CHANNEL], message->fds[ANSWER_PIDFD], ret, err);
	if (result == 0)
		message->fds[ANSWER_CHANNEL] = message->fds[ANSWER_PIDFD] = -1;
	return result;
}

static int await_answer(const struct nursery *nursery, struct err *err)
{
	struct pollfd waiting[] = {{.fd = nursery->channel.fd, .events = POLLIN}, {.fd = nursery->pidfd, .events = POLLIN}};
	int64_t deadline_ns = clock_mono_ns() + WORKER_ANSWER_MS * NS_PER_MS, left_ms;
	while ((left_ms = (deadline_ns - clock_mono_ns()) / NS_PER_MS) >= 0) {
		int count = poll(waiting, 2, (int)left_ms + 1);
		if (count < 0 && errno != EINTR)
			return err_sys(err, errno, "wait for the nursery");
		if (count > 0 && (waiting[0].revents & POLLIN))
			return 0;
		if (count > 0)
			return err_set(err, ERR_LOST, "the nursery is dead");
	}
	return err_set(err, ERR_LOST, "the nursery does not answer");
}

static int request(struct nursery *nursery, const char *profile, struct worker **ret, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(ANSWER_MAX);
	JSON_AUTO json_t *asked = json_pack("{s:s}", "profile", profile);
	struct channel_message incoming = {0};
	int result = asked ? json_canonical(asked, &text, err) : err_set(err, ERR_INVALID, "a profile's name is no text");
	if (result == 0)
		result = channel_send(&nursery->channel, &(struct channel_message){.text = text.data, .length = text.len}, err);
	if (result == 0)
		result = await_answer(nursery, err);
	if (result == 0)
		result = channel_receive(&nursery->channel, &incoming, err);
	if (result == 0)
		result = take_answer(&incoming, profile, ret, err);
	channel_message_done(&incoming);
	return result;
}

int nursery_spawn(struct nursery *nursery, const char *profile, struct worker **ret, struct err *err)
{
	pthread_mutex_lock(&nursery->lock);
	int result = request(nursery, profile, ret, err);
	pthread_mutex_unlock(&nursery->lock);
	return result;
}

int nursery_pidfd(const struct nursery *nursery)
{
	return nursery->pidfd;
}

/* A stopped one does not see its channel's end. */
static void bury(struct nursery *nursery)
{
	struct pollfd death = {.fd = nursery->pidfd, .events = POLLIN};
	if (poll(&death, 1, LEAVE_MS) <= 0)
		pidfd_send_signal(nursery->pidfd, SIGKILL, NULL, 0);
	while (waitpid(nursery->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

void nursery_free(struct nursery *nursery)
{
	if (!nursery)
		return;
	channel_done(&nursery->channel);
	if (nursery->pidfd >= 0)
		bury(nursery);
	fd_close(&nursery->pidfd);
	pthread_mutex_destroy(&nursery->lock);
	free(nursery);
}
