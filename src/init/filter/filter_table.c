/* filter_table.c - which system calls a guest may make, group by group, with the reason beside each.
 *
 * An allow list: what is not named here is ENOSYS, so a call of a newer kernel is closed until somebody has read what it does.
 * Two answers say no. ENOSYS where a library has a fallback for "this kernel does not have it" (clone3); EPERM where the call
 * is known and refused. Never a log action: a guest that loops over refused calls must not be able to flood the kernel's log.
 *
 * The filter is one layer of several. Calls that the namespaces, the missing capabilities or the limits already make harmless
 * are allowed, because programs use them (chown, setuid, mlock, SysV and POSIX queues, and programs that sandbox themselves
 * further: seccomp, landlock, capset). What is refused is what reaches past those layers: code of the kernel with a history of
 * being broken into, state that is not namespaced, and resources counted once for the whole machine. */
#include "init/filter/filter_table.h"

#include <linux/sched.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define CALLS(...) ((const char *const[]){__VA_ARGS__, NULL})

const struct filter_group filter_groups[] = {
	{FILTER_ALLOW, "read, write and wait on descriptors the guest already holds",
	 CALLS("read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2", "lseek",
	       "close", "close_range", "dup", "dup2", "dup3", "fcntl", "flock", "fsync", "fdatasync", "sync_file_range",
	       "ftruncate", "fallocate", "fadvise64", "readahead", "sendfile", "copy_file_range", "splice", "tee", "vmsplice",
	       "pipe", "pipe2", "poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait",
	       "epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2", "signalfd", "signalfd4", "timerfd_create", "timerfd_settime",
	       "timerfd_gettime", "memfd_create", "inotify_init", "inotify_init1", "inotify_add_watch", "inotify_rm_watch",
	       "ioctl")},

	{FILTER_ALLOW, "names in the guest's own tree; mknod makes FIFOs and sockets, a device needs a capability it has not",
	 CALLS("open", "openat", "openat2", "creat", "stat", "fstat", "lstat", "newfstatat", "statx", "statfs", "fstatfs", "access",
	       "faccessat", "faccessat2", "getdents", "getdents64", "getcwd", "chdir", "fchdir", "mkdir", "mkdirat", "rmdir",
	       "unlink", "unlinkat", "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "readlink",
	       "readlinkat", "mknod", "mknodat", "truncate", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown",
	       "lchown", "fchownat", "umask", "utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr",
	       "getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr", "removexattr", "lremovexattr",
	       "fremovexattr")},

	{FILTER_ALLOW, "memory, charged to the guest's group; where its pages lie is advice",
	 CALLS("brk", "mmap", "mprotect", "munmap", "mremap", "msync", "madvise", "mincore", "remap_file_pages", "mlock", "mlock2",
	       "munlock", "mlockall", "munlockall", "pkey_alloc", "pkey_free", "pkey_mprotect", "get_mempolicy", "set_mempolicy",
	       "mbind")},

	{FILTER_ALLOW, "processes and threads of the guest's own pid namespace",
	 CALLS("fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid", "getpid", "getppid", "gettid",
	       "getpgid", "setpgid", "getpgrp", "getsid", "setsid", "set_tid_address", "futex", "futex_waitv", "futex_wait",
	       "futex_wake", "futex_requeue", "set_robust_list", "get_robust_list", "rseq", "membarrier", "arch_prctl", "prctl",
	       "pidfd_open", "restart_syscall")},

	{FILTER_ALLOW, "signals; those of other runs are in other pid namespaces",
	 CALLS("kill", "tkill", "tgkill", "pidfd_send_signal", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending",
	       "rt_sigtimedwait", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "rt_sigsuspend", "sigaltstack", "pause")},

	{FILTER_ALLOW, "identity: a guest has no capability and one uid mapped, so these can only give up or stay",
	 CALLS("getuid", "geteuid", "getgid", "getegid", "getgroups", "getresuid", "getresgid", "setuid", "setgid", "setreuid",
	       "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid", "setgroups", "capget", "capset")},

	{FILTER_ALLOW, "programs that build a smaller box for their own children; filters and rule sets only ever add up",
	 CALLS("seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")},

	{FILTER_ALLOW, "scheduling: real-time classes and negative nice need a limit the guest does not have",
	 CALLS("sched_yield", "sched_setparam", "sched_getparam", "sched_setscheduler", "sched_getscheduler",
	       "sched_get_priority_max", "sched_get_priority_min", "sched_rr_get_interval", "sched_setaffinity",
	       "sched_getaffinity", "sched_setattr", "sched_getattr", "getpriority", "setpriority", "ioprio_get", "ioprio_set",
	       "getcpu")},

	{FILTER_ALLOW, "limits and usage; the core limit has a condition of its own",
	 CALLS("getrlimit", "setrlimit", "prlimit64", "getrusage", "times", "sysinfo", "uname")},

	{FILTER_ALLOW, "reading clocks, sleeping, timers",
	 CALLS("time", "gettimeofday", "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "alarm", "getitimer",
	       "setitimer", "timer_create", "timer_settime", "timer_gettime", "timer_getoverrun", "timer_delete", "getrandom")},

	{FILTER_ALLOW, "sockets of the families that the conditions let through",
	 CALLS("connect", "accept", "accept4", "bind", "listen", "getsockname", "getpeername", "setsockopt", "getsockopt",
	       "shutdown", "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg")},

	{FILTER_ALLOW, "System V and POSIX IPC, in the guest's own ipc namespace",
	 CALLS("shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv",
	       "msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr")},

	{FILTER_REFUSE, "the case that no condition lets through", CALLS("clone", "socket", "socketpair", "ptrace", "personality")},

	{FILTER_REFUSE, "mounts and roots: the guest's view was made once and is proven before launch",
	 CALLS("mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "mount_setattr", "fsopen", "fsconfig",
	       "fsmount", "fspick", "quotactl", "quotactl_fd", "swapon", "swapoff")},

	{FILTER_REFUSE, "new namespaces give capabilities over kernel code that expects an administrator",
	 CALLS("unshare", "setns")},

	{FILTER_REFUSE, "handles open files past the root that was pivoted away", CALLS("name_to_handle_at", "open_by_handle_at")},

	{FILTER_REFUSE, "other processes' memory, descriptors and kernel pointers; no runtime needs them",
	 CALLS("process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp")},

	{FILTER_REFUSE, "keys belong to a uid and a session, not to a run", CALLS("add_key", "request_key", "keyctl")},

	{FILTER_REFUSE, "large, young or rarely used kernel code, and work done outside the filter (io_uring)",
	 CALLS("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "fanotify_init",
	       "fanotify_mark", "modify_ldt", "lookup_dcookie", "nfsservctl", "migrate_pages", "move_pages")},

	{FILTER_REFUSE, "fs.aio-max-nr is one number for the whole machine: a guest could use up what belongs to all",
	 CALLS("io_setup", "io_destroy", "io_submit", "io_cancel", "io_getevents", "io_pgetevents")},

	{FILTER_REFUSE, "flush file systems of the host; a guest's own files need no such thing", CALLS("sync", "syncfs")},

	{FILTER_REFUSE, "the machine itself",
	 CALLS("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot", "sethostname",
	       "setdomainname", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "acct", "syslog", "iopl", "ioperm",
	       "vhangup")},
};
const size_t filter_group_count = sizeof(filter_groups) / sizeof(filter_groups[0]);

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

/* The kernel looks at 32 bits of these arguments. A comparison of all 64 would let "the same value with bit 32 set" through. */
#define LOW_32 0xffffffffULL
#define SOCKET_TYPES 0xfULL /* SOCK_TYPE_MASK of the kernel */
#define IS(arg, value)                                                                                                             \
	{                                                                                                                          \
		(arg), SCMP_CMP_MASKED_EQ, LOW_32, (value)                                                                         \
	}
/* SOCK_CLOEXEC and SOCK_NONBLOCK are in the same argument. */
#define IS_TYPE(arg, type)                                                                                                         \
	{                                                                                                                          \
		(arg), SCMP_CMP_MASKED_EQ, SOCKET_TYPES, (type)                                                                    \
	}
#define HAS_NONE(arg, flags)                                                                                                       \
	{                                                                                                                          \
		(arg), SCMP_CMP_MASKED_EQ, (flags), 0                                                                              \
	}
/* All 64 bits: "the same value with bit 32 set" is another one, and refused with the others. */
#define IS_NOT(arg, value)                                                                                                         \
	{                                                                                                                          \
		(arg), SCMP_CMP_NE, (value), 0                                                                                     \
	}
#define IS_NULL(arg)                                                                                                               \
	{                                                                                                                          \
		(arg), SCMP_CMP_EQ, 0, 0                                                                                           \
	}
#define IS_NOT_NULL(arg)                                                                                                           \
	{                                                                                                                          \
		(arg), SCMP_CMP_NE, 0, 0                                                                                           \
	}

/* CLONE_NEWTIME is missing: for clone(2) its bit belongs to the exit signal. */
#define NEW_NAMESPACES                                                                                                             \
	((unsigned long long)CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |          \
	 CLONE_NEWNET)

const struct filter_condition filter_conditions[] = {
	/* clone3 passes its flags in memory, where a filter cannot look: it is absent, and libc falls back to this. */
	{FILTER_ALLOW, "clone", 1, {HAS_NONE(0, NEW_NAMESPACES)}},

	/* Local sockets, and TCP and UDP on the guest's own loopback. AF_VSOCK is not namespaced, AF_ALG and AF_NETLINK reach
	 * kernel code that a program does not need; every family that comes later is closed as well. So is any other protocol:
	 * to ask for one that is not there makes the kernel load its module (SCTP, DCCP), for the whole machine. */
	{FILTER_ALLOW, "socket", 1, {IS(0, AF_UNIX)}},
	{FILTER_ALLOW, "socket", 3, {IS(0, AF_INET), IS_TYPE(1, SOCK_STREAM), IS(2, 0)}},
	{FILTER_ALLOW, "socket", 3, {IS(0, AF_INET), IS_TYPE(1, SOCK_STREAM), IS(2, IPPROTO_TCP)}},
	{FILTER_ALLOW, "socket", 3, {IS(0, AF_INET), IS_TYPE(1, SOCK_DGRAM), IS(2, 0)}},
	{FILTER_ALLOW, "socket", 3, {IS(0, AF_INET), IS_TYPE(1, SOCK_DGRAM), IS(2, IPPROTO_UDP)}},
	{FILTER_ALLOW, "socket", 3, {IS(0, AF_INET6), IS_TYPE(1, SOCK_STREAM), IS(2, 0)}},
	{FILTER_ALLOW, "socket", 3, {IS(0, AF_INET6), IS_TYPE(1, SOCK_STREAM), IS(2, IPPROTO_TCP)}},
	{FILTER_ALLOW, "socket", 3, {IS(0, AF_INET6), IS_TYPE(1, SOCK_DGRAM), IS(2, 0)}},
	{FILTER_ALLOW, "socket", 3, {IS(0, AF_INET6), IS_TYPE(1, SOCK_DGRAM), IS(2, IPPROTO_UDP)}},
	{FILTER_ALLOW, "socketpair", 1, {IS(0, AF_UNIX)}},

	/* Asked of any socket by anybody, these make the kernel load bridge and 8021q before it looks for a capability (sock_ioctl in
	 * net/socket.c). */
	{FILTER_REFUSE, "ioctl", 1, {IS(1, SIOCGIFBR)}},
	{FILTER_REFUSE, "ioctl", 1, {IS(1, SIOCSIFBR)}},
	{FILTER_REFUSE, "ioctl", 1, {IS(1, SIOCBRADDBR)}},
	{FILTER_REFUSE, "ioctl", 1, {IS(1, SIOCBRDELBR)}},
	{FILTER_REFUSE, "ioctl", 1, {IS(1, SIOCGIFVLAN)}},
	{FILTER_REFUSE, "ioctl", 1, {IS(1, SIOCSIFVLAN)}},

	/* Typing into the terminal that the guest was started from; its line discipline is a module as well. */
	{FILTER_REFUSE, "ioctl", 1, {IS(1, TIOCSTI)}},
	{FILTER_REFUSE, "ioctl", 1, {IS(1, TIOCLINUX)}},
	{FILTER_REFUSE, "ioctl", 1, {IS(1, TIOCSETD)}},

	/* A core limit of 1 is what stops a piped core handler, which would run on the host: it must stay 1. Each sanitizer's
	 * runtime sets it to 0 and gives up if it cannot. Core dumps are off, so it is told yes; but where the old limit is asked
	 * for in the same call there is nobody to write it, and the answer is no. */
	{FILTER_IGNORE, "setrlimit", 1, {IS(0, RLIMIT_CORE)}},
	{FILTER_IGNORE, "prlimit64", 3, {IS(1, RLIMIT_CORE), IS_NOT_NULL(2), IS_NULL(3)}},
	{FILTER_REFUSE, "prlimit64", 3, {IS(1, RLIMIT_CORE), IS_NOT_NULL(2), IS_NOT_NULL(3)}},

	/* Guest init, which an ordinary user's guest shares its uid with: it could be given limits that it dies of. */
	{FILTER_REFUSE, "prlimit64", 3, {IS(0, 1), IS_NOT(1, RLIMIT_CORE), IS_NOT_NULL(2)}},

	/* Reading the persona, the plain one, and fixed addresses (ThreadSanitizer starts itself again with them). The rest
	 * emulates other systems and older kernels. */
	{FILTER_ALLOW, "personality", 1, {IS(0, 0xffffffff)}},
	{FILTER_ALLOW, "personality", 1, {IS(0, 0)}},
	{FILTER_ALLOW, "personality", 1, {IS(0, ADDR_NO_RANDOMIZE)}},

	/* LeakSanitizer, part of each AddressSanitizer build, stops the threads of its own process and reads their registers at
	 * exit. No request that writes, steps or traces calls; and whom one may attach to is the kernel's to say: neither guest
	 * init (not dumpable, and mostly another uid) nor anything of another run. */
	{FILTER_ALLOW, "ptrace", 1, {IS(0, PTRACE_ATTACH)}},
	{FILTER_ALLOW, "ptrace", 1, {IS(0, PTRACE_DETACH)}},
	{FILTER_ALLOW, "ptrace", 1, {IS(0, PTRACE_CONT)}},
	{FILTER_ALLOW, "ptrace", 1, {IS(0, PTRACE_KILL)}},
	{FILTER_ALLOW, "ptrace", 1, {IS(0, PTRACE_GETREGS)}},
	{FILTER_ALLOW, "ptrace", 1, {IS(0, PTRACE_GETREGSET)}},
};
const size_t filter_condition_count = sizeof(filter_conditions) / sizeof(filter_conditions[0]);
