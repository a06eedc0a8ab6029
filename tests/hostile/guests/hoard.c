/* hoard.c - H43, H44, H101: takes as many of the kernel's objects as it gets, `hoard WHAT…`, and tells how many.
 *
 * pipes: full ones of 1 MiB. sockets: full pairs. flight: descriptors sent and never received. inotify, queues, signals, timers.
 * hold: keeps all that until it is killed. one: just one of each, as any program wants it. */
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <time.h>

#include "probe.h"

enum { WANTED = 1024, SIGNALS_WANTED = 100000, MIB = 1 << 20, TIMERS_WANTED = 4096 };
enum { PASSED_AT_ONCE = 200, PASSES = 16 };

static char block[65536];

/* `wanted` times `take`, until it says no. */
static void gather(const char *name, long wanted, long (*take)(long number))
{
	long got = 0, result = 0;

	errno = 0;
	while (got < wanted && (result = take(got)) >= 0)
		got++;
	report(name, result);
	printf("%s.got=%ld\n", name, got);
	fflush(stdout);
}

static long fill(int fd)
{
	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, block, sizeof(block)) > 0)
		;
	return 0;
}

static long take_pipe(long number)
{
	int ends[2];

	(void)number;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	fcntl(ends[1], F_SETPIPE_SZ, MIB);
	return fill(ends[1]);
}

static long take_sockets(long number)
{
	int ends[2];

	(void)number;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	fill(ends[0]);
	return fill(ends[1]);
}

static long pass_descriptors(long number)
{
	static int ends[2];
	char byte = 0, control[CMSG_SPACE(PASSED_AT_ONCE * sizeof(int))] = {0};
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	if (number == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		die("socketpair");
	*header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(PASSED_AT_ONCE * sizeof(int))};
	memset(CMSG_DATA(header), 0, PASSED_AT_ONCE * sizeof(int)); /* descriptor 0, many times */
	return sendmsg(ends[0], &message, MSG_DONTWAIT);
}

static long take_inotify(long number)
{
	(void)number;
	return inotify_init1(IN_CLOEXEC);
}

static long take_queue(long number)
{
	char name[64];

	snprintf(name, sizeof(name), "/caisson-%d-%ld", (int)getpid(), number);
	mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, NULL);
	if (queue >= 0)
		mq_unlink(name);
	return queue;
}

static long take_signal(long number)
{
	return sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = (int)number});
}

static long take_timer(long number)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	timer_t timer;

	(void)number;
	return timer_create(CLOCK_MONOTONIC, &event, &timer);
}

static void want_one_of_each(void)
{
	int ends[2];

	PROBE("inotify", take_inotify(0));
	PROBE("queue", take_queue(0));
	PROBE("signal", take_signal(0));
	PROBE("timer", take_timer(0));
	PROBE("pipe", pipe2(ends, O_CLOEXEC));
	report_number("pipe.bytes", fcntl(ends[1], F_GETPIPE_SZ));
}

static int gather_what(const char *what)
{
	if (strcmp(what, "pipes") == 0)
		gather("pipes", WANTED, take_pipe);
	else if (strcmp(what, "sockets") == 0)
		gather("sockets", WANTED, take_sockets);
	else if (strcmp(what, "flight") == 0)
		gather("flight", PASSES, pass_descriptors);
	else if (strcmp(what, "inotify") == 0)
		gather("inotify", WANTED, take_inotify);
	else if (strcmp(what, "queues") == 0)
		gather("queues", WANTED, take_queue);
	else if (strcmp(what, "signals") == 0)
		gather("signals", SIGNALS_WANTED, take_signal);
	else if (strcmp(what, "timers") == 0)
		gather("timers", TIMERS_WANTED, take_timer);
	else
		return 0;
	return 1;
}

int main(int argc, char **argv)
{
	sigset_t held;

	sigemptyset(&held);
	sigaddset(&held, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &held, NULL);
	for (int i = 1; i < argc; i++) {
		if (gather_what(argv[i]))
			continue;
		if (strcmp(argv[i], "one") == 0)
			want_one_of_each();
		printf("holding\n");
		fflush(stdout);
		while (strcmp(argv[i], "hold") == 0)
			pause();
	}
	return 0;
}
