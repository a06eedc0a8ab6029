/* test_filter.c - the seccomp filter, call by call: on paper for every number, in the kernel for those that matter. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "guest_filter.h"
#include "init/filter/filter_table.h"

enum {
	NUMBER_MAX = 1024, /* well past the newest call */
	X32_BIT = 0x40000000,
};

#define BIT_32 (1L << 32)

/* Runs the filter on one call as the kernel would; only the instructions that libseccomp emits. Returns the action. */
static uint32_t evaluate(const struct seccomp_data *data)
{
	uint32_t accumulator = 0;

	for (size_t pc = 0; pc < GUEST_FILTER_COUNT; pc++) {
		const struct sock_filter *instruction = &guest_filter[pc];
		uint32_t k = instruction->k;
		bool taken;

		switch (instruction->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&accumulator, (const char *)data + k, sizeof(accumulator));
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			accumulator &= k;
			continue;
		case BPF_JMP | BPF_JA:
			pc += k;
			continue;
		case BPF_RET | BPF_K:
			return k;
		case BPF_JMP | BPF_JEQ | BPF_K:
			taken = accumulator == k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			taken = accumulator > k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			taken = accumulator >= k;
			break;
		default:
			fail_msg("instruction %zu: unexpected code 0x%x", pc, instruction->code);
			return 0;
		}
		pc += taken ? instruction->jt : instruction->jf;
	}
	fail_msg("the filter runs off its end");
	return 0;
}

static uint32_t action_of_group(const char *name)
{
	for (size_t i = 0; i < filter_group_count; i++) {
		for (const char *const *call = filter_groups[i].calls; *call; call++) {
			if (strcmp(*call, name) == 0)
				return filter_groups[i].action == FILTER_ALLOW ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EPERM;
		}
	}
	return SECCOMP_RET_ERRNO | ENOSYS;
}

/* Arguments that meet no condition of the table, so that the group alone decides. */
static struct seccomp_data plain_call(int number)
{
	return (struct seccomp_data){.nr = number, .arch = AUDIT_ARCH_X86_64, .args = {UINT64_MAX - 15, 0, 0, 0, 0, 0}};
}

static void every_number_gets_the_action_of_its_group(void **state)
{
	(void)state;
	for (int number = 0; number < NUMBER_MAX; number++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
		struct seccomp_data data = plain_call(number);
		uint32_t expected = name ? action_of_group(name) : SECCOMP_RET_ERRNO | ENOSYS;
		uint32_t actual = evaluate(&data);
		if (actual != expected)
			fail_msg("%s (%d): 0x%x instead of 0x%x", name ? name : "unknown", number, actual, expected);
		free(name);
	}
}

static void x32_and_foreign_architectures_are_killed(void **state)
{
	(void)state;
	for (int number = 0; number < NUMBER_MAX; number++) {
		struct seccomp_data x32 = plain_call(number | X32_BIT);
		struct seccomp_data i386 = plain_call(number);
		i386.arch = AUDIT_ARCH_I386;
		assert_int_equal(evaluate(&x32), SECCOMP_RET_KILL_PROCESS);
		assert_int_equal(evaluate(&i386), SECCOMP_RET_KILL_PROCESS);
	}
}

static void no_action_writes_to_the_kernel_log(void **state)
{
	(void)state;
	for (size_t i = 0; i < GUEST_FILTER_COUNT; i++) {
		if (guest_filter[i].code != (BPF_RET | BPF_K))
			continue;
		uint32_t action = guest_filter[i].k;
		assert_true(action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_KILL_PROCESS ||
		            (action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO);
	}
}

/* One call made for real behind the filter. The arguments are chosen so that the kernel itself would answer something else
 * than `expected` where the filter is to refuse, and so that nothing happens if the filter is broken. */
struct real_call {
	const char *what;
	long number;
	long args[5];
	int expected; /* errno, or 0 for a call that is to succeed */
};

#define CLONE_HARMLESS CLONE_THREAD /* without CLONE_SIGHAND it is EINVAL, always */

static const struct rlimit no_core = {0, 0};
static struct rlimit old_core;

static const struct real_call real_calls[] = {
	{"getpid", SYS_getpid, {0}, 0},
	{"close of no descriptor reaches the kernel", SYS_close, {-1}, EBADF},
	{"a number that is no call", 999, {0}, ENOSYS},
	{"clone3", SYS_clone3, {0}, ENOSYS},
	{"clone without namespaces reaches the kernel", SYS_clone, {CLONE_HARMLESS}, EINVAL},
	{"clone NEWNS", SYS_clone, {CLONE_HARMLESS | CLONE_NEWNS}, EPERM},
	{"clone NEWCGROUP", SYS_clone, {CLONE_HARMLESS | CLONE_NEWCGROUP}, EPERM},
	{"clone NEWUTS", SYS_clone, {CLONE_HARMLESS | CLONE_NEWUTS}, EPERM},
	{"clone NEWIPC", SYS_clone, {CLONE_HARMLESS | CLONE_NEWIPC}, EPERM},
	{"clone NEWUSER", SYS_clone, {CLONE_HARMLESS | CLONE_NEWUSER}, EPERM},
	{"clone NEWPID", SYS_clone, {CLONE_HARMLESS | CLONE_NEWPID}, EPERM},
	{"clone NEWNET", SYS_clone, {CLONE_HARMLESS | CLONE_NEWNET}, EPERM},
	{"clone NEWUSER with bit 32", SYS_clone, {BIT_32 | CLONE_HARMLESS | CLONE_NEWUSER}, EPERM},
	{"unshare", SYS_unshare, {0}, EPERM},
	{"setns", SYS_setns, {-1}, EPERM},
	{"mount", SYS_mount, {0}, EPERM},
	{"umount2", SYS_umount2, {0}, EPERM},
	{"pivot_root", SYS_pivot_root, {0}, EPERM},
	{"chroot", SYS_chroot, {0}, EPERM},
	{"fsopen", SYS_fsopen, {0}, EPERM},
	{"open_tree", SYS_open_tree, {-1}, EPERM},
	{"move_mount", SYS_move_mount, {-1}, EPERM},
	{"mount_setattr", SYS_mount_setattr, {-1}, EPERM},
	{"io_uring_setup", SYS_io_uring_setup, {0}, EPERM},
	{"io_setup", SYS_io_setup, {0}, EPERM},
	{"bpf", SYS_bpf, {-1}, EPERM},
	{"perf_event_open", SYS_perf_event_open, {0}, EPERM},
	{"userfaultfd", SYS_userfaultfd, {-1}, EPERM},
	{"keyctl", SYS_keyctl, {-1}, EPERM},
	{"add_key", SYS_add_key, {0}, EPERM},
	{"kexec_load", SYS_kexec_load, {0, -1}, EPERM},
	{"open_by_handle_at", SYS_open_by_handle_at, {-1}, EPERM},
	{"name_to_handle_at", SYS_name_to_handle_at, {-1}, EPERM},
	{"pidfd_getfd", SYS_pidfd_getfd, {-1}, EPERM},
	{"process_vm_readv", SYS_process_vm_readv, {-1}, EPERM},
	{"clock_settime", SYS_clock_settime, {-1}, EPERM},
	{"adjtimex", SYS_adjtimex, {0}, EPERM},
	{"syslog", SYS_syslog, {-1}, EPERM},
	{"ptrace TRACEME", SYS_ptrace, {PTRACE_TRACEME}, EPERM},
	{"ptrace POKEDATA", SYS_ptrace, {PTRACE_POKEDATA, -1}, EPERM},
	{"ptrace SEIZE", SYS_ptrace, {PTRACE_SEIZE, -1}, EPERM},
	{"ptrace ATTACH reaches the kernel", SYS_ptrace, {PTRACE_ATTACH, -1}, ESRCH},
	{"socket UNIX", SYS_socket, {AF_UNIX, SOCK_STREAM}, 0},
	{"socket INET", SYS_socket, {AF_INET, SOCK_STREAM}, 0},
	{"socket INET with flags", SYS_socket, {AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK}, 0},
	{"socket INET TCP", SYS_socket, {AF_INET, SOCK_STREAM, IPPROTO_TCP}, 0},
	{"socket INET UDP", SYS_socket, {AF_INET, SOCK_DGRAM, IPPROTO_UDP}, 0},
	{"socket INET6 reaches the kernel", SYS_socket, {AF_INET6, SOCK_STREAM | 0x10}, EINVAL},
	{"socket INET6 TCP reaches the kernel", SYS_socket, {AF_INET6, SOCK_STREAM | 0x10, IPPROTO_TCP}, EINVAL},
	{"socket INET6 UDP reaches the kernel", SYS_socket, {AF_INET6, SOCK_DGRAM | 0x10, IPPROTO_UDP}, EINVAL},
	{"socket INET SCTP", SYS_socket, {AF_INET, SOCK_STREAM, IPPROTO_SCTP}, EPERM},
	{"socket INET6 SCTP", SYS_socket, {AF_INET6, SOCK_STREAM, IPPROTO_SCTP}, EPERM},
	{"socket INET MPTCP", SYS_socket, {AF_INET, SOCK_STREAM, IPPROTO_MPTCP}, EPERM},
	{"socket INET UDPLITE", SYS_socket, {AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE}, EPERM},
	{"socket INET DCCP by its type", SYS_socket, {AF_INET, SOCK_DCCP}, EPERM},
	{"socket INET6 DCCP by its type", SYS_socket, {AF_INET6, SOCK_DCCP | SOCK_CLOEXEC}, EPERM},
	{"socket INET SEQPACKET", SYS_socket, {AF_INET, SOCK_SEQPACKET}, EPERM},
	{"socket INET RAW", SYS_socket, {AF_INET, SOCK_RAW, IPPROTO_TCP}, EPERM},
	{"socket INET ping", SYS_socket, {AF_INET, SOCK_DGRAM, IPPROTO_ICMP}, EPERM},
	{"socket NETLINK", SYS_socket, {AF_NETLINK, SOCK_RAW}, EPERM},
	{"socket NETLINK with bit 32", SYS_socket, {BIT_32 | AF_NETLINK, SOCK_RAW}, EPERM},
	{"socket VSOCK", SYS_socket, {AF_VSOCK, SOCK_STREAM}, EPERM},
	{"socket ALG", SYS_socket, {AF_ALG, SOCK_SEQPACKET}, EPERM},
	{"socket PACKET", SYS_socket, {AF_PACKET, SOCK_RAW}, EPERM},
	{"socket of no family", SYS_socket, {-1, SOCK_STREAM}, EPERM},
	{"socketpair INET", SYS_socketpair, {AF_INET, SOCK_STREAM}, EPERM},
	{"ioctl TIOCSTI", SYS_ioctl, {-1, TIOCSTI}, EPERM},
	{"ioctl TIOCSTI with bit 32", SYS_ioctl, {-1, BIT_32 | TIOCSTI}, EPERM},
	{"ioctl TIOCLINUX", SYS_ioctl, {-1, TIOCLINUX}, EPERM},
	{"ioctl TIOCLINUX with bit 32", SYS_ioctl, {-1, BIT_32 | TIOCLINUX}, EPERM},
	{"ioctl TIOCSETD", SYS_ioctl, {-1, TIOCSETD}, EPERM},
	{"ioctl SIOCGIFBR", SYS_ioctl, {-1, SIOCGIFBR}, EPERM},
	{"ioctl SIOCSIFBR", SYS_ioctl, {-1, SIOCSIFBR}, EPERM},
	{"ioctl SIOCBRADDBR", SYS_ioctl, {-1, SIOCBRADDBR}, EPERM},
	{"ioctl SIOCBRDELBR with bit 32", SYS_ioctl, {-1, BIT_32 | SIOCBRDELBR}, EPERM},
	{"ioctl SIOCGIFVLAN", SYS_ioctl, {-1, SIOCGIFVLAN}, EPERM},
	{"ioctl SIOCSIFVLAN", SYS_ioctl, {-1, SIOCSIFVLAN}, EPERM},
	{"ioctl SIOCGIFCONF reaches the kernel", SYS_ioctl, {-1, SIOCGIFCONF}, EBADF},
	{"ioctl TCGETS reaches the kernel", SYS_ioctl, {-1, TCGETS}, EBADF},
	{"setrlimit CORE", SYS_setrlimit, {RLIMIT_CORE, (long)&no_core}, 0},
	{"setrlimit CORE of nothing never reaches the kernel", SYS_setrlimit, {RLIMIT_CORE}, 0},
	{"setrlimit of nothing reaches the kernel", SYS_setrlimit, {RLIM_NLIMITS, (long)&no_core}, EINVAL},
	{"prlimit64 CORE of process -1 never reaches the kernel", SYS_prlimit64, {-1, RLIMIT_CORE, (long)&no_core}, 0},
	{"prlimit64 CORE with bit 32, the same", SYS_prlimit64, {-1, BIT_32 | RLIMIT_CORE, (long)&no_core}, 0},
	{"prlimit64 CORE, new and old", SYS_prlimit64, {0, RLIMIT_CORE, (long)&no_core, (long)&old_core}, EPERM},
	{"prlimit64 CORE, read", SYS_prlimit64, {0, RLIMIT_CORE, 0}, 0},
	{"personality, read", SYS_personality, {0xffffffff}, 0},
	{"personality, read as -1", SYS_personality, {-1}, 0},
	{"personality without randomisation", SYS_personality, {ADDR_NO_RANDOMIZE}, 0},
	{"personality READ_IMPLIES_EXEC", SYS_personality, {READ_IMPLIES_EXEC}, EPERM},
	{"prctl reaches the kernel", SYS_prctl, {-1}, EINVAL},
	{"memfd_create reaches the kernel", SYS_memfd_create, {0}, EFAULT},
};

/* The filter lets itself be loaded and the process go on; anything else is exit 255. */
static void load_filter(void)
{
	const struct sock_fprog program = {GUEST_FILTER_COUNT, (struct sock_filter *)(uintptr_t)guest_filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(255);
}

static _Noreturn void make_call(const struct real_call *call)
{
	const long *args = call->args;

	load_filter();
	_exit(syscall(call->number, args[0], args[1], args[2], args[3], args[4]) < 0 ? errno : 0);
}

static void the_kernel_answers_as_the_table_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(real_calls) / sizeof(real_calls[0]); i++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0)
			make_call(&real_calls[i]);
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != real_calls[i].expected)
			fail_msg("%s: wait status 0x%x, expected errno %d", real_calls[i].what, status, real_calls[i].expected);
	}
}

static void the_core_limit_stays_what_it_is(void **state)
{
	(void)state;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		const struct rlimit one = {1, 1};
		struct rlimit now;
		if (setrlimit(RLIMIT_CORE, &one) != 0)
			_exit(254);
		load_filter();
		if (setrlimit(RLIMIT_CORE, &no_core) != 0 || getrlimit(RLIMIT_CORE, &now) != 0)
			_exit(253);
		_exit((int)now.rlim_cur);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
}

static void an_x32_call_ends_the_process(void **state)
{
	(void)state;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		load_filter();
		syscall(X32_BIT | SYS_getpid);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_gets_the_action_of_its_group),
		cmocka_unit_test(x32_and_foreign_architectures_are_killed),
		cmocka_unit_test(no_action_writes_to_the_kernel_log),
		cmocka_unit_test(the_kernel_answers_as_the_table_says),
		cmocka_unit_test(the_core_limit_stays_what_it_is),
		cmocka_unit_test(an_x32_call_ends_the_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
