/* spy.c - H14: looks into the memory of its parent, of pid 1, of every pid there may be, and of a pid that it is given;
 * `spy only PID` leaves all but the last alone. */
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "probe.h"

enum { PID_SCAN_MAX = 32768 };

static long peek(pid_t pid)
{
	static char here;
	char byte;
	struct iovec local = {.iov_base = &byte, .iov_len = 1}, remote = {.iov_base = &here, .iov_len = 1};

	return syscall(SYS_process_vm_readv, (long)pid, &local, 1L, &remote, 1L, 0L);
}

static void look_at(const char *who, pid_t pid)
{
	char name[64];

	snprintf(name, sizeof(name), "ptrace.%s", who);
	PROBE(name, ptrace(PTRACE_ATTACH, pid, NULL, NULL));
	snprintf(name, sizeof(name), "seize.%s", who);
	PROBE(name, ptrace(PTRACE_SEIZE, pid, NULL, NULL));
	snprintf(name, sizeof(name), "readv.%s", who);
	PROBE(name, peek(pid));
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	snprintf(name, sizeof(name), "mem.%s", who);
	PROBE(name, open(path, O_RDWR));
}

int main(int argc, char **argv)
{
	long seen = 0;

	if (argc > 2 && strcmp(argv[1], "only") == 0) {
		look_at("other", (pid_t)strtol(argv[2], NULL, 10));
		return 0;
	}
	look_at("parent", getppid());
	look_at("init", 1);
	if (argc > 1)
		look_at("other", (pid_t)strtol(argv[1], NULL, 10));
	for (pid_t pid = 2; pid < PID_SCAN_MAX; pid++)
		if (pid != getpid() && (peek(pid) >= 0 || errno == EFAULT)) /* EFAULT: allowed, but nothing is mapped there */
			seen++;
	report_number("seen", seen);
	return 0;
}
