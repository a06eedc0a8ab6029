/* handle.c - the keeper's side of a worker: fork, ask, await, bury. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "keeper/worker.h"

enum {
	CHANNEL_FD = 3,                /* in the worker; all above is closed */
	STANDARD_SIGNALS = 32,
	LEAVE_MS = 130 * 1000,         /* a worker that loses its keeper cleans up first: the longest cleanup, and some */
	DEATH_MS = 10 * 1000,          /* from SIGKILL to the end of a process */
};

/* A session of its own, so that no terminal signals it; default dispositions but for two that are errors of a write instead; nothing open but
 * the channel. A worker that was stopped is woken when its keeper dies: it must see that, kill its unit and go. */
static _Noreturn void become_worker(int fd, const char *profile, const struct provider_factory *factory)
{
	sigset_t none;
	setsid();
	prctl(PR_SET_NAME, "caisson-worker");
	prctl(PR_SET_PDEATHSIG, SIGCONT);
	for (int signal_number = 1; signal_number < STANDARD_SIGNALS; signal_number++)
		signal(signal_number, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (fd != CHANNEL_FD)
		dup3(fd, CHANNEL_FD, O_CLOEXEC);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int standard = 0; standard <= 2; standard++)
		dup2(null, standard);
	close_range(CHANNEL_FD + 1, ~0U, 0);
	worker_serve(CHANNEL_FD, profile, factory);
}

/* A forked child is queued behind its parent on the same processor, and starts only when that sleeps: measured 1.8-2.3 ms later, with another
 * processor idle. Forbidding it this one for an instant moves it over (0.1 ms); its affinity is the same afterwards. */
void worker_start_at_once(pid_t pid)
{
	cpu_set_t allowed, others;
	int here = sched_getcpu();
	if (here < 0 || sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2)
		return;
	others = allowed;
	CPU_CLR(here, &others);
	if (CPU_COUNT(&others) == CPU_COUNT(&allowed) || sched_setaffinity(pid, sizeof(others), &others) != 0)
		return;
	sched_setaffinity(pid, sizeof(allowed), &allowed);
}

pid_t worker_fork(int fd, const char *profile, const struct provider_factory *factory, struct err *err)
{
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(err, errno, "fork a worker");
	if (pid == 0)
		become_worker(fd, profile, factory);
	worker_start_at_once(pid);
	return pid;
}

/* Forks; on success the channel's descriptors are used up. */
static int start(struct worker *worker, const int ends[static 2], const struct provider_factory *factory, struct err *err)
{
	pid_t pid = worker_fork(ends[1], worker->profile, factory, err);
	if (pid < 0)
		return (int)pid;
	worker->pid = pid;
	worker->pidfd = pidfd_open(pid, 0);
	if (worker->pidfd >= 0)
		return 0;
	int errnum = errno;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return err_sys(err, errnum, "open a worker's pidfd");
}

static int spawn(struct worker *worker, const struct provider_factory *factory, struct err *err)
{
	int ends[2];
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return err_sys(err, errno, "become a subreaper");
	int result = channel_pair(ends, err);
	if (result < 0)
		return result;
	result = channel_init(&worker->channel, ends[0], err);
	if (result < 0)
		fd_close(&ends[0]);
	else
		result = start(worker, ends, factory, err);
	fd_close(&ends[1]);
	return result;
}

static void release(struct worker *worker)
{
	channel_done(&worker->channel);
	fd_close(&worker->interrupts);
	fd_close(&worker->pidfd);
	free(worker);
}

static int make(const char *profile, struct worker **ret, struct err *err)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	if (!worker)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a worker");
	worker->channel.fd = worker->pidfd = -1;
	worker->under_way = REQUEST_COUNT;
	worker->interrupts = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int result = worker->interrupts < 0 ? err_sys(err, errno, "make a worker's eventfd") : 0;
	if (result == 0 && strlen(profile) >= sizeof(worker->profile))
		result = err_set(err, ERR_UNSUPPORTED, "there is no profile %s", profile);
	if (result < 0) {
		release(worker);
		return result;
	}
	memcpy(worker->profile, profile, strlen(profile) + 1);
	*ret = worker;
	return 0;
}

int worker_spawn(const char *profile, const struct provider_factory *factory, struct worker **ret, struct err *err)
{
	struct worker *worker = NULL;
	int result = make(profile, &worker, err);
	if (result < 0)
		return result;
	result = spawn(worker, factory, err);
	if (result < 0) {
		release(worker);
		return result;
	}
	worker_open_ahead(worker);
	*ret = worker;
	return 0;
}

/* Asked now, read by worker_boundary. That it is dead already shows there as well. */
void worker_open_ahead(struct worker *worker)
{
	worker->opening = worker->opening || worker_ask(worker, &(struct request){.kind = REQUEST_OPEN}, NULL, NULL) == 0;
}

int worker_adopt(const char *profile, int channel, int pidfd, struct worker **ret, struct err *err)
{
	struct worker *worker = NULL;
	int result = make(profile, &worker, err);
	if (result < 0)
		return result;
	result = channel_init(&worker->channel, channel, err);
	if (result < 0) {
		release(worker);
		return result;
	}
	worker->pidfd = pidfd;
	worker->adopted = true;
	*ret = worker;
	return 0;
}

void worker_interrupt(struct worker *worker)
{
	int errnum = errno;
	if (worker)
		(void)!write(worker->interrupts, &(uint64_t){1}, sizeof(uint64_t)); /* a full counter is readable already */
	errno = errnum;
}

bool worker_take_interrupt(struct worker *worker)
{
	uint64_t count;
	return read(worker->interrupts, &count, sizeof(count)) == sizeof(count);
}

/* Waits for the worker's end, at most so long. */
static bool reap(struct worker *worker, int timeout_ms)
{
	int64_t deadline_ns = clock_mono_ns() + timeout_ms * NS_PER_MS, left_ns;
	struct pollfd death = {.fd = worker->pidfd, .events = POLLIN};
	siginfo_t info;
	while (!death.revents && (left_ns = deadline_ns - clock_mono_ns()) > 0)
		poll(&death, 1, (int)(left_ns / NS_PER_MS) + 1);
	if (death.revents)
		worker->reaped = worker->adopted || waitid(P_PIDFD, (id_t)worker->pidfd, &info, WEXITED) == 0;
	return worker->reaped;
}

/* Nothing more is expected of it. It must be dead before anybody cleans up behind it. */
static int lose(struct worker *worker, struct err *err, const char *why)
{
	worker->lost = true;
	if (!worker->reaped) {
		pidfd_send_signal(worker->pidfd, SIGKILL, NULL, 0);
		reap(worker, DEATH_MS);
	}
	return err_set(err, ERR_LOST, "the worker is lost: %s", why);
}

/* Lets what it does unasked come to its end, or to the step that is wanted. */
static int settle(struct worker *worker, enum request_kind wanted, struct err *err)
{
	struct reply dropped;
	enum worker_news news;
	int result = 0;
	while (result == 0 && worker->under_way != REQUEST_COUNT && worker->under_way != wanted) {
		result = worker_await(worker, false, clock_mono_ns() + LEAVE_MS * NS_PER_MS, &news, err);
		if (result == 0)
			result = worker_answer(worker, worker->under_way, &dropped, err);
	}
	return result;
}

int worker_ask(struct worker *worker, const struct request *request, const struct channel_message *extra, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(CHANNEL_MESSAGE_MAX);
	struct channel_message message = extra ? *extra : (struct channel_message){0};
	if (worker->lost)
		return err_set(err, ERR_LOST, "the worker is lost");
	int settled = settle(worker, request->kind, err);
	if (settled < 0 || worker->under_way == request->kind)
		return settled;
	if (!protocol_allows(worker->phase, request->kind))
		return err_set(err, ERR_STATE, "%s in phase %s", request_name(request->kind), worker_phase_name(worker->phase));
	int result = request_encode(request, &text, err);
	if (result < 0)
		return result;
	message.text = text.data;
	message.length = text.len;
	struct err sending = ERR_INIT;
	result = channel_send(&worker->channel, &message, &sending);
	if (protocol_replies(request->kind))
		worker->goes_on = request->go_on;
	if (result == ERR_LIMIT)
		return err_set(err, result, "%s", sending.text);
	return result < 0 ? lose(worker, err, sending.text) : 0;
}

bool worker_has_news(const struct worker *worker, int timeout_ms)
{
	struct pollfd waiting[] = {{.fd = worker->channel.fd, .events = POLLIN}, {.fd = worker->pidfd, .events = POLLIN}};
	return poll(waiting, sizeof(waiting) / sizeof(waiting[0]), timeout_ms) > 0;
}

int worker_await(struct worker *worker, bool interruptible, int64_t deadline_ns, enum worker_news *ret, struct err *err)
{
	enum { MESSAGE, DEATH, INTERRUPT };
	struct pollfd waiting[] = {
		[MESSAGE] = {.fd = worker->channel.fd, .events = POLLIN},
		[DEATH] = {.fd = worker->pidfd, .events = POLLIN},
		[INTERRUPT] = {.fd = interruptible ? worker->interrupts : -1, .events = POLLIN},
	};
	for (;;) {
		int64_t left_ms = (deadline_ns - clock_mono_ns()) / NS_PER_MS;
		if (left_ms < 0)
			return lose(worker, err, "it does not answer");
		if (poll(waiting, sizeof(waiting) / sizeof(waiting[0]), left_ms < INT32_MAX ? (int)left_ms + 1 : INT32_MAX) < 0) {
			if (errno == EINTR)
				continue;
			return lose(worker, err, "it cannot be waited for");
		}
		if (waiting[DEATH].revents) /* what it answered before is worth nothing: its unit is dead as well */
			return lose(worker, err, "it died");
		if (waiting[MESSAGE].revents) {
			*ret = WORKER_ANSWERED;
			return 0;
		}
		if (waiting[INTERRUPT].revents && worker_take_interrupt(worker)) {
			*ret = WORKER_INTERRUPTED;
			return 0;
		}
	}
}

int worker_answer(struct worker *worker, enum request_kind kind, struct reply *ret, struct err *err)
{
	struct channel_message message = {0};
	struct err receiving = ERR_INIT;
	int result = channel_receive(&worker->channel, &message, &receiving);
	if (result == 0)
		result = reply_decode(message.text, message.length, ret, &receiving);
	channel_message_done(&message);
	if (result == 0 && ret->kind != kind)
		result = err_set(&receiving, ERR_PROTOCOL, "it answers %s to %s", request_name(ret->kind), request_name(kind));
	if (result < 0)
		return lose(worker, err, receiving.text);
	bool succeeded = ret->error.code == 0;
	if (protocol_begun(ret))
		worker->phase = protocol_next(worker->phase, kind, succeeded, kind == REQUEST_OBSERVE && succeeded ? &ret->event : NULL);
	worker->under_way = worker->goes_on ? protocol_then(ret) : REQUEST_COUNT;
	return 0;
}

void worker_dismiss(struct worker *worker)
{
	worker->dismissed = true;
	shutdown(worker->channel.fd, SHUT_WR);
}

void worker_reap_orphans(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	fd_close(&worker->channel.fd);
	if (!worker->reaped && !reap(worker, LEAVE_MS)) {
		pidfd_send_signal(worker->pidfd, SIGKILL, NULL, 0);
		reap(worker, DEATH_MS);
	}
	if (!worker->adopted)
		worker_reap_orphans();
	release(worker);
}
