/* support.h - what the keeper's tests share: a plan, and a boundary whose calls can be watched from outside the worker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper/worker.h"
#include "manifest/manifest.h"
#include "manifest/plan.h"

enum { FAKE_LOG_MAX = 4096 };

/* In memory that test and worker share. */
struct fake {
	char log[FAKE_LOG_MAX]; /* "open prepare create …", one word a call */
	char fail[16];          /* this call fails, with ERR_UNVERIFIED */
	char die[16];           /* at this call the worker dies */
	int recover_failures;   /* so many calls of recover fail first */
	struct boundary_identity found[4]; /* what enumerate finds */
	size_t found_count;
	int64_t prepares_until_ns; /* CLOCK_BOOTTIME: a long prepare */
	bool observe_blocks;    /* until wake_fd is readable, or it is interrupted; else main exits with 7 at once */
	bool keeps_deadline;    /* it blocks until that at most */
	bool ignores_wake;      /* observe blocks for good */
	bool exits_late;        /* what was awakened reports main's exit, not the interrupt */
	bool no_provider;
	int null_fd_count;      /* of 0 to 2, as the worker finds them */
	int highest_fd;         /* that is open when the factory is called */
	pid_t session;
};

struct fake *fake_new(void);
void fake_free(struct fake *fake);

/* A factory for the profile "recording", whose name manifests and policy know. */
struct provider_factory fake_factory(struct fake *fake);

/* A program with these limits in bytes for its streams, profile `profile`. */
struct plan *plan_for(const char *profile, int64_t stream_bytes, struct manifest **ret_manifest);

/* A ledger in a new directory below /tmp, and a keeper of it. Any number of processes may open one. */
void ledger_place_new(char ret_path[static 64]);
struct keeper *keeper_at(const char *path);
void ledger_place_remove(const char *path);

/* Waits at most some seconds for a process's end and gives waitid's si_code * 1000 + si_status; -1 when it does not come. */
int await_end(int pidfd);
