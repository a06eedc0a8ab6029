/* filter.c - the system calls that serving takes; every other one is EPERM. */
#include <errno.h>
#include <seccomp.h>
#include <sys/mman.h>

#include "http/privilege.h"

/* No file is opened, no socket made, no process started: what there is to work with comes from the keeper, as descriptors. */
static const int allowed[] = {
	/* events and sockets */
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(poll),
	SCMP_SYS(eventfd2),
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendmsg),
	SCMP_SYS(recvfrom),
	SCMP_SYS(sendto),
	SCMP_SYS(sendfile),
	SCMP_SYS(shutdown),
	SCMP_SYS(setsockopt),
	SCMP_SYS(getsockopt),
	/* descriptors */
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(pread64),
	SCMP_SYS(lseek),
	SCMP_SYS(close),
	SCMP_SYS(fcntl),
	SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(memfd_create),
	/* memory and time */
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(futex),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(getrandom),
	/* the end */
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(exit_group),
};

/* With memory that is not to be executed: all code is here already. The protection is the third argument of both. */
static const int allowed_without_exec[] = {SCMP_SYS(mmap), SCMP_SYS(mprotect)};

static int add_rules(scmp_filter_ctx context)
{
	int failed = 0;
	for (size_t i = 0; failed == 0 && i < sizeof(allowed) / sizeof(allowed[0]); i++)
		failed = seccomp_rule_add(context, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; failed == 0 && i < sizeof(allowed_without_exec) / sizeof(allowed_without_exec[0]); i++)
		failed = seccomp_rule_add(context, SCMP_ACT_ALLOW, allowed_without_exec[i], 1,
		                          SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	return failed;
}

int filter_load(struct err *err)
{
	scmp_filter_ctx context = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!context)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a filter");
	int failed = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (failed == 0)
		failed = add_rules(context);
	if (failed == 0)
		failed = seccomp_load(context);
	seccomp_release(context);
	return failed ? err_sys(err, -failed, "load the filter of system calls") : 0;
}
