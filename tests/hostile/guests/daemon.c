/* daemon.c - H02, H03, H04, H18: a daemon by double fork and setsid that outlives main.
 *
 * closed: its standard handles are closed. open: it keeps them. flight: it closes them, but their write ends are in flight inside a
 * socket that it holds. cycle: no daemon; the write ends fly in a socket that flies inside itself. stay: as
 * closed, and main stays. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "probe.h"

static void send_fds(int socket, const int *fds, size_t count)
{
	char byte = 0, control[CMSG_SPACE(4 * sizeof(int))] = {0};
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	size_t space = CMSG_SPACE(count * sizeof(int));
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = space};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(header), fds, count * sizeof(int));
	if (sendmsg(socket, &message, 0) != 1)
		die("sendmsg");
}

static void put_in_flight(int with_itself)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0)
		die("socketpair");
	int fds[4] = {1, 2, pair[0], pair[1]};
	send_fds(pair[0], fds, with_itself ? 4 : 2);
}

static void become_daemon(const char *how, int ready)
{
	prctl(PR_SET_PDEATHSIG, 0);
	setsid();
	if (strcmp(how, "flight") == 0)
		put_in_flight(0);
	if (strcmp(how, "open") != 0)
		for (int fd = 0; fd <= 2; fd++)
			close(fd);
	if (write(ready, "", 1) != 1)
		_exit(1);
	close(ready);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "closed";
	int ready[2];
	char byte;

	printf("main\n");
	fflush(stdout);
	if (strcmp(how, "cycle") == 0) {
		put_in_flight(1);
		return 0;
	}
	if (pipe(ready) != 0)
		die("pipe");
	pid_t middle = fork();

	if (middle == 0) {
		if (fork() == 0)
			become_daemon(how, ready[1]);
		_exit(0);
	}
	close(ready[1]);
	waitpid(middle, NULL, 0);
	if (read(ready[0], &byte, 1) != 1)
		die("the daemon did not start");
	prctl(PR_SET_PDEATHSIG, 0);
	while (strcmp(how, "stay") == 0)
		pause();
	return 0;
}
