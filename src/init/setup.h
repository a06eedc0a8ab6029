/* setup.h - what a worker and guest init say to each other: the setup, the commands, the reports.
 *
 * Init is a program of its own (caisson-init), always pid 1 of the guest's pid namespace. It is executed with these descriptors:
 *
 *   0, 1, 2   the guest's stdin, stdout and stderr
 *   3         the setup: a sealed memfd, `struct init_setup` followed by strings; mapped read-only
 *   4         the control socket (SOCK_SEQPACKET); its end of file means that the worker is gone, and ends init and the guest
 *   others    named in the setup: detached mounts, cgroup descriptors
 *
 * Both sides are built together and run on one machine, so that structs travel as they are; magic and size guard against a mix. */
#pragma once

#include <stdint.h>

enum {
	INIT_SETUP_FD = 3,
	INIT_CONTROL_FD = 4,
	INIT_FIRST_FREE_FD = 10, /* everything else that is handed over has a number from here on */

	INIT_SETUP_MAGIC = 0x43534e31, /* "CSN1" */
	INIT_SETUP_MAX_BYTES = 512 * 1024,
	INIT_MAX_MOUNTS = 1200,
	INIT_MAX_JOINS = 5,
	INIT_MAX_ARGS = 4096, /* of argv, and of env */
	INIT_STEP_MAX = 32,
};

/* One detached mount to be moved into place below the new root, in order. target: offset of a path without a leading slash; the empty
 * path is the root itself and comes first. fd -1: what the work space has at the same path. */
struct init_mount {
	int32_t fd;
	uint32_t target;
};

/* Offsets count from the start of the setup. Lists of strings are `count` strings, one behind the other, each with its NUL. */
struct init_setup {
	uint32_t magic, size;
	uint32_t guest_uid, guest_gid;   /* as the guest sees them */
	uint32_t init_uid, init_gid;
	uint32_t keep_groups;            /* 1: this user namespace forbids to set them, and there are none but the guest's own */
	int64_t deadline_ms;             /* init's own timer, from the gate: a stopped worker cannot stretch a limit beyond it */
	uint64_t open_files, stack_bytes;
	int32_t unified_guest_fd;        /* O_PATH of the v2 group that main is born into, or -1 */
	int32_t join_count;
	int32_t join_fds[INIT_MAX_JOINS];/* tasks of v1 groups, opened by the worker: main joins by writing 0 */
	int32_t work_fd;                 /* the work space, a detached mount */
	uint32_t mount_count, mounts;    /* offset of struct init_mount[mount_count] */
	uint32_t argc, argv;
	uint32_t envc, env;
	uint32_t cwd, hostname;
	uint32_t writable_count, writable; /* absolute paths that Landlock lets the guest write beneath */
	int32_t landlock_abi;            /* of this kernel, 0 when it has none */
};

/* What init or main confirms by its own return values: bit numbers of an `attested` word. */
enum init_attest {
	INIT_DID_UCOUNTS,
	INIT_DID_HOSTNAME,
	INIT_DID_KEYRING,
	INIT_DID_SECUREBITS,
	INIT_DID_LANDLOCK,
	INIT_DID_PDEATHSIG,
	INIT_DID_DUMPABLE,
	INIT_ATTEST_COUNT
};

enum init_report_kind {
	INIT_REPORT_FAILED = 1, /* step, error: a step of the set-up failed; init ends */
	INIT_REPORT_BORN,       /* main exists: its pidfd comes along (SCM_RIGHTS) */
	INIT_REPORT_SET_UP,     /* init has dropped what it had; attested */
	INIT_REPORT_AT_GATE,    /* main waits at the gate; attested */
	INIT_REPORT_NOT_EXECUTED, /* execve failed: error */
	INIT_REPORT_EXITED,     /* main was reaped */
};

struct init_report {
	uint32_t kind;
	int32_t error;             /* errno, or 0 */
	char step[INIT_STEP_MAX];
	uint32_t attested;
	int32_t wait_status;       /* EXITED: as waitpid(2) gives it */
	int64_t launched_ns, exited_ns; /* EXITED: CLOCK_MONOTONIC */
};

enum init_command_kind {
	INIT_COMMAND_MAPPED = 1, /* the uid and gid maps are written: go on */
	INIT_COMMAND_LAUNCH,     /* open the gate */
	INIT_COMMAND_TERMINATE,  /* SIGTERM to every process of the guest */
};

struct init_command {
	uint32_t kind;
};
