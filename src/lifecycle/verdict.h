/* verdict.h - one verdict from what happened: the contract's table, first line that holds decides. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lifecycle/lifecycle.h"

enum verdict_kind {
	VERDICT_SUCCEEDED,
	VERDICT_FAILED,
	VERDICT_SIGNALED,
	VERDICT_TIMED_OUT,
	VERDICT_LIMIT_EXCEEDED,
	VERDICT_CANCELLED,
	VERDICT_REFUSED,
	VERDICT_NOT_LAUNCHED,
	VERDICT_INTERRUPTED,
	VERDICT_BOUNDARY_ERROR,
	VERDICT_COUNT
};

/* Totals after exit; -1 for what could not be read. */
struct verdict_totals {
	int64_t wall_ns;         /* gate to main's stamped exit */
	int64_t cpu_ns;
	int64_t oom_kills;       /* of the guest's group */
	bool output_over;        /* a stream had more than its limit and on_overflow is kill */
	bool retained_ignored;   /* manifest: retained_output ignore */
	int64_t wall_limit_ns, cpu_limit_ns;
	char artifact_rejected[LIFE_DETAIL_MAX]; /* empty when the output rules hold */
};

struct verdict {
	enum verdict_kind kind;
	char reason[LIFE_REASON_MAX]; /* "exit_code", "wall_limit", a signal's name, a step's reason, …; "" for succeeded */
	char detail[LIFE_DETAIL_MAX]; /* for people, with the figure: "ran 1000 ms of 1000 ms" */
	int exit_code;                /* -1: none. How main ended, whatever the verdict but `interrupted`, whose end is unknown */
	int signal;                   /* 0: none; never both. Also one that Caisson sent */
	int exec_errno;               /* exec_failed: errno of execve; else 0 */
};

void verdict_decide(const struct life *life, const struct verdict_totals *totals, struct verdict *ret);

const char *verdict_name(enum verdict_kind kind);

/* "SIGKILL", or "SIGRTMIN+3"; "SIG32" for a number that has no name; "SIG?" outside 1..64. Static text. */
const char *verdict_signal_name(int signal);

/* `caisson run`'s exit status for a verdict (contract, below the verdict table). cancel_signal: the signal that cancelled it,
 * or 0. */
int verdict_exit_status(const struct verdict *verdict, int cancel_signal);
