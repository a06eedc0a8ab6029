/* verdict.c - decides what an attempt comes to: the contract's table of verdicts, one function a line, the first that holds. */
#include "lifecycle/verdict.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* `caisson run`'s own exit statuses; the others are the guest's. */
enum {
	STATUS_TIMED_OUT = 124,
	STATUS_OTHER = 125,
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
	STATUS_SIGNAL_BASE = 128,
	STATUS_LIMIT_EXCEEDED = 137,
};

struct facts {
	const struct life *life;
	const struct verdict_totals *totals;
};

/* Cuts a character that snprintf left incomplete: the text becomes a JSON string. */
static void trim_cut_character(char *text, size_t length)
{
	while (length > 0 && ((unsigned char)text[length - 1] & 0xc0) == 0x80)
		length--;
	if (length > 0 && (unsigned char)text[length - 1] >= 0xc0)
		length--;
	text[length] = '\0';
}

/* Always true, so that a line of the table reads `return decide(...)`. */
__attribute__((format(printf, 4, 5)))
static bool decide(struct verdict *ret, enum verdict_kind kind, const char *reason, const char *format, ...)
{
	va_list args;

	ret->kind = kind;
	snprintf(ret->reason, sizeof(ret->reason), "%s", reason);
	va_start(args, format);
	int length = vsnprintf(ret->detail, sizeof(ret->detail), format, args);
	va_end(args);
	if (length >= (int)sizeof(ret->detail))
		trim_cut_character(ret->detail, sizeof(ret->detail) - 1);
	return true;
}

/* -1 when a recovery does not know when it was launched. */
static int64_t launch_to_stop_ns(const struct life *life)
{
	return life->launched_at_ns > 0 ? life->stop_at_ns - life->launched_at_ns : -1;
}

static bool over(int64_t total_ns, int64_t limit_ns)
{
	return limit_ns > 0 && total_ns > limit_ns;
}

/* --- ways to say it, shared by the stop causes and the totals after exit --- */

static bool wall_limit(const struct facts *facts, struct verdict *ret)
{
	const struct life *life = facts->life;
	int64_t wall_ns = facts->totals->wall_ns >= 0 ? facts->totals->wall_ns : launch_to_stop_ns(life);

	if (wall_ns < 0)
		return decide(ret, VERDICT_TIMED_OUT, "wall_limit", "ran for all of %" PRId64 " ms",
		              clock_ns_to_ms(facts->totals->wall_limit_ns));
	return decide(ret, VERDICT_TIMED_OUT, "wall_limit", "ran %" PRId64 " ms of %" PRId64 " ms", clock_ns_to_ms(wall_ns),
	              clock_ns_to_ms(facts->totals->wall_limit_ns));
}

static bool cpu_limit(const struct facts *facts, struct verdict *ret)
{
	const struct verdict_totals *totals = facts->totals;

	if (totals->cpu_ns < 0)
		return decide(ret, VERDICT_TIMED_OUT, "cpu_limit", "used up %" PRId64 " ms of CPU time", clock_ns_to_ms(totals->cpu_limit_ns));
	return decide(ret, VERDICT_TIMED_OUT, "cpu_limit", "used %" PRId64 " ms of %" PRId64 " ms CPU time", clock_ns_to_ms(totals->cpu_ns),
	              clock_ns_to_ms(totals->cpu_limit_ns));
}

static bool output_limit(struct verdict *ret)
{
	return decide(ret, VERDICT_LIMIT_EXCEEDED, "output_limit", "wrote more than its output limit");
}

static bool memory_limit(const struct facts *facts, struct verdict *ret)
{
	if (facts->totals->oom_kills <= 0)
		return decide(ret, VERDICT_LIMIT_EXCEEDED, "memory_limit", "the kernel reported an OOM kill");
	return decide(ret, VERDICT_LIMIT_EXCEEDED, "memory_limit", "%" PRId64 " OOM kill%s", facts->totals->oom_kills,
	              facts->totals->oom_kills == 1 ? "" : "s");
}

/* --- the lines of the table, in its order --- */

static bool refused(const struct facts *facts, struct verdict *ret)
{
	const struct life *life = facts->life;

	return life->failed_step == STEP_ADMISSION && decide(ret, VERDICT_REFUSED, life->reason, "%s", life->detail);
}

static bool not_launched(const struct facts *facts, struct verdict *ret)
{
	const struct life *life = facts->life;
	const char *step = life_step_name(life->failed_step);

	if (life->failed_step == STEP_NONE)
		return false;
	return decide(ret, VERDICT_NOT_LAUNCHED, life->reason[0] != '\0' ? life->reason : step, "%s: %s", step,
	              life->detail[0] != '\0' ? life->detail : "not done");
}

static bool interrupted(const struct facts *facts, struct verdict *ret)
{
	const struct life *life = facts->life;

	return life->interrupted && decide(ret, VERDICT_INTERRUPTED, life->boundary_reason, "%s",
	                                   life->boundary_detail[0] != '\0' ? life->boundary_detail : "its end is not known");
}

static bool boundary_error(const struct facts *facts, struct verdict *ret)
{
	const struct life *life = facts->life;

	if (life->boundary_misbehaved)
		return decide(ret, VERDICT_BOUNDARY_ERROR, life->boundary_reason, "%s",
		              life->boundary_detail[0] != '\0' ? life->boundary_detail : "the boundary misbehaved");
	return !life->verified_empty &&
	       decide(ret, VERDICT_BOUNDARY_ERROR, LIFE_REASON_NOT_VERIFIED_EMPTY, "not verified empty in state %s",
	              life_state_name(life->state));
}

static bool cancelled(const struct life *life, struct verdict *ret)
{
	if (!life->launched)
		return decide(ret, VERDICT_CANCELLED, "cancel_requested", "before the launch");
	if (launch_to_stop_ns(life) < 0)
		return decide(ret, VERDICT_CANCELLED, "cancel_requested", "after the launch");
	return decide(ret, VERDICT_CANCELLED, "cancel_requested", "%" PRId64 " ms after the launch", clock_ns_to_ms(launch_to_stop_ns(life)));
}

static bool stopped(const struct facts *facts, struct verdict *ret)
{
	switch (facts->life->stop) {
	case STOP_CANCEL:
		return cancelled(facts->life, ret);
	case STOP_WALL:
		return wall_limit(facts, ret);
	case STOP_CPU:
		return cpu_limit(facts, ret);
	case STOP_OUTPUT:
		return output_limit(ret);
	case STOP_MEMORY:
		return memory_limit(facts, ret);
	case STOP_NONE:
	case STOP_CAUSE_COUNT:
		break;
	}
	return false;
}

static bool out_of_memory(const struct facts *facts, struct verdict *ret)
{
	return facts->totals->oom_kills > 0 && memory_limit(facts, ret);
}

static bool totals_over(const struct facts *facts, struct verdict *ret)
{
	const struct verdict_totals *totals = facts->totals;

	if (over(totals->cpu_ns, totals->cpu_limit_ns))
		return cpu_limit(facts, ret);
	if (over(totals->wall_ns, totals->wall_limit_ns))
		return wall_limit(facts, ret);
	return totals->output_over && output_limit(ret);
}

/* A signal of ours that nothing above explains was not the guest's doing. */
static bool killed_without_cause(const struct facts *facts, struct verdict *ret)
{
	const struct main_exit *end = &facts->life->exit;

	return end->how == MAIN_SIGNALED && end->killed_by_us &&
	       decide(ret, VERDICT_BOUNDARY_ERROR, "killed_without_cause", "Caisson sent %s and no cause is recorded",
	              verdict_signal_name(end->signal));
}

static bool signaled(const struct facts *facts, struct verdict *ret)
{
	const struct main_exit *end = &facts->life->exit;

	return end->how == MAIN_SIGNALED &&
	       decide(ret, VERDICT_SIGNALED, verdict_signal_name(end->signal), "main died of signal %d", end->signal);
}

static bool exec_failed(const struct facts *facts, struct verdict *ret)
{
	const struct main_exit *end = &facts->life->exit;
	const char *name = strerrorname_np(end->code);
	const char *text = strerrordesc_np(end->code);

	if (end->how != MAIN_NOT_EXECUTED)
		return false;
	ret->exec_errno = end->code;
	return decide(ret, VERDICT_FAILED, "exec_failed", "%s (%s)", text ? text : "unknown error", name ? name : "?");
}

static bool exit_code(const struct facts *facts, struct verdict *ret)
{
	const struct main_exit *end = &facts->life->exit;

	return end->how == MAIN_EXITED && end->code != 0 && decide(ret, VERDICT_FAILED, "exit_code", "exit code %d", end->code);
}

static bool handle_retained(const struct facts *facts, struct verdict *ret)
{
	return facts->life->retained && !facts->totals->retained_ignored &&
	       decide(ret, VERDICT_FAILED, "output_handle_retained", "a process that outlived main still held an output stream");
}

static bool artifact_rejected(const struct facts *facts, struct verdict *ret)
{
	const char *rejected = facts->totals->artifact_rejected;

	return rejected[0] != '\0' && decide(ret, VERDICT_FAILED, "artifact_rejected", "%s", rejected);
}

/* "Otherwise", but never on trust: an end that nobody reported is no success. */
static bool otherwise(const struct facts *facts, struct verdict *ret)
{
	if (facts->life->exit.how != MAIN_EXITED)
		return decide(ret, VERDICT_BOUNDARY_ERROR, "end_unknown", "main's end was not reported");
	return decide(ret, VERDICT_SUCCEEDED, "", "exit code 0");
}

static bool (*const table[])(const struct facts *facts, struct verdict *ret) = {
	refused,              /*  1 */
	not_launched,         /*  2 */
	interrupted,          /*  3 */
	boundary_error,       /*  4 */
	stopped,              /*  5 */
	out_of_memory,        /*  6 */
	totals_over,          /*  7 */
	killed_without_cause, /*  8, the signals that Caisson did send */
	signaled,             /*  8 */
	exec_failed,          /*  9 */
	exit_code,            /* 10 */
	handle_retained,      /* 11 */
	artifact_rejected,    /* 12 */
	otherwise,            /* 13 */
};

void verdict_decide(const struct life *life, const struct verdict_totals *totals, struct verdict *ret)
{
	const struct facts facts = {.life = life, .totals = totals};

	*ret = (struct verdict){
		.exit_code = life->exit.how == MAIN_EXITED ? life->exit.code : -1,
		.signal = life->exit.how == MAIN_SIGNALED ? life->exit.signal : 0,
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i](&facts, ret))
			break;
	if (ret->kind == VERDICT_INTERRUPTED) { /* what was heard of the end is not the end: an OOM kill may hide behind it */
		ret->exit_code = -1;
		ret->signal = 0;
	}
}

static int failed_status(const struct verdict *verdict)
{
	if (verdict->exec_errno != 0)
		return verdict->exec_errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
	return verdict->exit_code > 0 ? verdict->exit_code : STATUS_OTHER;
}

int verdict_exit_status(const struct verdict *verdict, int cancel_signal)
{
	switch (verdict->kind) {
	case VERDICT_SUCCEEDED:
		return 0;
	case VERDICT_FAILED:
		return failed_status(verdict);
	case VERDICT_SIGNALED:
		return STATUS_SIGNAL_BASE + verdict->signal;
	case VERDICT_TIMED_OUT:
		return STATUS_TIMED_OUT;
	case VERDICT_LIMIT_EXCEEDED:
		return STATUS_LIMIT_EXCEEDED;
	case VERDICT_CANCELLED:
		return cancel_signal > 0 ? STATUS_SIGNAL_BASE + cancel_signal : STATUS_OTHER;
	case VERDICT_REFUSED:
	case VERDICT_NOT_LAUNCHED:
	case VERDICT_INTERRUPTED:
	case VERDICT_BOUNDARY_ERROR:
	case VERDICT_COUNT:
		break;
	}
	return STATUS_OTHER;
}
