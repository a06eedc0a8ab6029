/* linux_boundary.h - the state of one native boundary, shared by the files of this folder. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "boundary/boundary.h"
#include "boundary/linux/cgroup.h"
#include "boundary/linux/host.h"
#include "boundary/linux/ids.h"
#include "boundary/linux/linux.h"
#include "boundary/linux/place.h"
#include "boundary/linux/view.h"
#include "init/setup.h"

enum {
	LINUX_CREATE_TIMEOUT_MS = 10000, /* from clone to the gate; a set-up that hangs is a failed one */
	LINUX_SIGNALS = 64,
	LINUX_INIT_GRACE_MS = 1000,      /* init's own timer fires this much behind wall + grace */
	LINUX_UMASK = 022,               /* of whoever makes a view: its modes are exact, whatever the caller's umask is */
};

/* The kernel's own struct sigaction (x86 and arm64). */
struct linux_sigaction {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

struct linux_provider {
	struct boundary_provider base;
	struct host host;
	char *cgroup_parent, *runtime_dir; /* NULL: not given */
	pid_t caller;
	struct place place;
	bool placed;
	struct ids_source ids;
	ino_t apart[NS_COUNT]; /* an ordinary user's worker: the namespaces that it made for itself; 0: not yet */
	struct err entering;   /* what kept it from that */
	int init;    /* guest init's program, O_PATH */
	int wake_fd; /* borrowed */
	int null;    /* /dev/null, read-only: a closed stdin */
	struct spare {                /* made ahead, single use; see spare.c */
		struct view base;
		int network;
	} spare;
	int own_network;          /* the network namespace that we are in, to come back to */
	uint64_t ignored_signals; /* by us, when the provider was made: bit n - 1 is signal n */
};

enum linux_phase { LINUX_NEW, LINUX_PREPARED, LINUX_SUSPENDED, LINUX_ENROLLED, LINUX_LAUNCHED, LINUX_CLEANED };

struct linux_boundary {
	struct boundary base;
	struct linux_provider *provider;
	struct boundary_spec spec;
	enum linux_phase phase;
	int interrupt;               /* eventfd */
	struct ids ids;
	struct cgroups groups;
	struct view view;
	int out;                     /* the output place, from cleanup on */
	int network;                 /* the guest's network namespace, until init is born in it */

	pid_t init_pid, main_pid;
	int init_pidfd, main_pidfd;
	int control;                 /* our end of the control socket */
	int streams[2];              /* read ends of stdout and stderr, non-blocking; -1 at EOF */
	uint32_t init_attested, main_attested;
	bool oom_score_fixed; /* the guest cannot lower it */

	int wall_timer, cpu_timer, sample_timer, oom_event;
	int64_t sample_step_ns;
	int64_t anon_peak_bytes;     /* of the samples; -1: none yet */
	int64_t launched_ns;
	int64_t kill_sent_ns;        /* INT64_MAX: not yet */
	int64_t main_dead_ns;        /* after our kill; 0: not yet */
	bool terminating, exited, init_reaped;
	bool wall_reported, cpu_reported, memory_reported, output_reported;
	int exec_error;              /* errno that main reported, or 0 */
	bool guest_gone;             /* nobody was in its groups when the unit was killed */
	int survivors;
};

/* boundary.c: the vtable. */
int linux_boundary_open(struct linux_provider *provider, struct boundary **ret, struct err *err);

/* provider.c: where the groups go, found once. */
int linux_place(struct linux_provider *provider, struct err *err);

int linux_acquire_ids(const struct linux_provider *provider, uint32_t start, struct ids *ret, struct err *err);

/* namespace.c. Before the first mount or network is made: nothing to do for root. ERR_UNSUPPORTED names the setting that is in the way. */
int linux_enter_namespace(struct linux_provider *provider, struct err *err);
/* The error of a call that only a user namespace's capabilities allow. */
int linux_userns_failed(int error, const char *step, struct err *err);

/* require.c. ERR_UNENFORCEABLE names the property that is not there. */
int linux_check_require(const struct linux_provider *provider, const struct plan *plan, struct err *err);

/* spare.c: what does not depend on a plan, taken from what was made ahead, or made now. */
void linux_spare_make(struct linux_provider *provider);
void linux_spare_done(struct linux_provider *provider);
void linux_take_base(struct linux_provider *provider, const struct plan *plan, struct view *ret);
/* A fresh network namespace with lo up, in which nobody lives yet: the descriptor. */
int linux_take_network(struct linux_provider *provider, struct err *err);

/* spawn.c: creates init and main, main waiting at the gate. */
int linux_spawn(struct linux_boundary *boundary, struct err *err);
/* Sends a command; ERR_LOST when init is gone. */
int linux_command(struct linux_boundary *boundary, enum init_command_kind kind, struct err *err);
/* Receives one report without blocking: 1 got, 0 nothing there, ERR_LOST at the end. *ret_pidfd: -1 when none came along. */
int linux_receive(struct linux_boundary *boundary, struct init_report *ret, int *ret_pidfd, struct err *err);

/* Are the first `count` namespaces of /proc/PID (in the order of NS_*) others than ours? A line for each, evidence NULL for none. Also asked
 * of init before it is told to go on: what it does next must not happen in the host's. */
int linux_check_namespaces(struct linux_boundary *boundary, pid_t pid, int count, struct evidence_list *evidence, struct err *err);
/* enroll.c: every requested property, verified from outside. */
int linux_enroll(struct linux_boundary *boundary, struct evidence_list *evidence, struct err *err);
/* enroll_mounts.c: the view. dir: /proc/PID of main. */
int linux_enroll_mounts(struct linux_boundary *boundary, int dir, struct evidence_list *evidence, struct err *err);

/* observe.c */
int linux_launch(struct linux_boundary *boundary, struct err *err);
int linux_observe(struct linux_boundary *boundary, int64_t deadline_ns, struct boundary_event *ret, struct err *err);
int linux_drain(struct linux_boundary *boundary, struct boundary_drain *ret, struct err *err);

/* cleanup.c */
void linux_kill_unit(struct linux_boundary *boundary);
int linux_cleanup(struct linux_boundary *boundary, struct boundary_usage *ret, struct err *err);
int linux_verify_empty(struct linux_boundary *boundary, struct err *err);
/* Of what is left when nothing is left: the detached output place. */
int linux_collect(struct linux_boundary *boundary, struct artifact_list *ret, struct err *err);

/* probe.c: doctor's lines. */
int linux_probe(struct linux_provider *provider, boundary_probe_fn line, void *context, struct err *err);
