/* observe.c - waiting: for the boundary's next event, for stops from outside, and for the time to renew the lease. */
#include "runner/drive.h"

#include "base/fault.h"

enum { EXIT_CODE_MAX = 255, SIGNAL_MAX = 64 };

static struct life_event cancel_event(struct drive *drive)
{
	struct life_event event = event_of(LIFE_EV_STOP, drive_now(drive));
	event.cause = STOP_CANCEL;
	return event;
}

enum drive_came drive_hear(struct drive *drive, struct life_event *ret, struct err *err)
{
	const struct runner_request *request = drive->request;
	if (!request || !request->stop_requested || !life_stoppable(&drive->life))
		return CAME_NOTHING;
	int level = request->stop_requested(request->context);
	if (level <= drive->heard)
		return CAME_NOTHING;
	if (drive->heard == 0) {
		bool sealed; /* not by anybody else: we hold the lease */
		if (drive->ledger->ops->request_cancel(drive->ledger, drive->attempt.run_id, &sealed, err) < 0)
			return CAME_FAILURE;
		(void)FAULT("run.cancelled");
	}
	drive->heard++; /* one at a time: the first terminates, the second kills */
	*ret = cancel_event(drive);
	return CAME_EVENT;
}

enum drive_came drive_hear_ledger(struct drive *drive, struct life_event *ret, struct err *err)
{
	if (drive->heard > 0 || !life_stoppable(&drive->life))
		return CAME_NOTHING;
	bool requested = false;
	if (drive->ledger->ops->cancel_requested(drive->ledger, drive->attempt.run_id, &requested, err) < 0)
		return CAME_FAILURE;
	if (!requested)
		return CAME_NOTHING;
	drive->heard = 1;
	*ret = cancel_event(drive);
	return CAME_EVENT;
}

/* A ledger that cannot be written for a while does not end the lease before its time; somebody else's generation does at once. */
static enum drive_came renew(struct drive *drive, struct err *err)
{
	const struct ledger_attempt *attempt = &drive->attempt;
	int64_t ttl_ns = attempt->ttl_ms * NS_PER_MS, now_ns = drive_now(drive), asked_at_ns = clock_boot_ns();
	struct err failure = ERR_INIT;
	int rc = drive->ledger->ops->renew(drive->ledger, attempt->attempt_id, attempt->owner_id, attempt->generation, &failure);
	if (rc == 0) {
		drive->lease_ends_at_ns = now_ns + ttl_ns;
		drive->leased_at_ns = asked_at_ns;
		drive_tell_lease(drive);
	}
	drive->renew_at_ns = now_ns + ttl_ns / LEASE_SHARE;
	if (rc == 0 || (rc != ERR_FENCED && now_ns < drive->lease_ends_at_ns))
		return CAME_NOTHING;
	drive->renew_at_ns = now_ns; /* whoever asks next is told the same */
	err_set(err, rc, "renew the lease of %s: %s", attempt->attempt_id, failure.text);
	return CAME_FAILURE;
}

/* By the clock of those who watch the lease, too: it goes on while the machine sleeps. */
enum drive_came drive_keep_lease(struct drive *drive, struct err *err)
{
	int64_t share_ns = drive->attempt.ttl_ms * NS_PER_MS / LEASE_SHARE;
	bool due = drive_now(drive) >= drive->renew_at_ns || clock_boot_ns() - drive->leased_at_ns >= share_ns;
	return due ? renew(drive, err) : CAME_NOTHING;
}

/* A lease that is lost meanwhile is found lost before the next step. */
static void meanwhile(void *context)
{
	(void)drive_keep_lease(context, NULL);
}

void drive_enter_boundary(struct drive *drive, struct boundary *boundary)
{
	drive->boundary = boundary;
	boundary->meanwhile = meanwhile;
	boundary->meanwhile_context = drive;
}

void drive_leave_boundary(struct drive *drive)
{
	if (drive->boundary)
		drive->boundary->meanwhile = NULL;
	drive->boundary = NULL;
}

void drive_tell_lease(const struct drive *drive)
{
	if (drive->boundary && drive->boundary->ops->lease)
		drive->boundary->ops->lease(drive->boundary, drive->leased_at_ns + drive->attempt.ttl_ms * NS_PER_MS);
}

/* Once, for a run that lasts: what waits goes into the ledger, and with it the state that others see. */
static enum drive_came settle(struct drive *drive, struct err *err)
{
	struct err failure = ERR_INIT;
	drive->settle_at_ns = INT64_MAX;
	if (drive->request && drive->request->lasts)
		drive->request->lasts(drive->request->context);
	int rc = drive_append(drive, &failure);
	if (rc != ERR_FENCED)
		return CAME_NOTHING; /* what could not be written waits for the seal */
	err_set(err, rc, "%s", failure.text);
	return CAME_FAILURE;
}

static enum drive_came gave_up(struct drive *drive, struct life_event *ret)
{
	drive->give_up_at_ns = INT64_MAX;
	*ret = event_failed(LIFE_EV_BOUNDARY_LOST, drive->now_ns, "no_exit_after_kill",
	                    "main's exit was not reported in time after the kill");
	return CAME_EVENT;
}

static enum drive_came deadline_passed(struct drive *drive, struct life_event *ret, struct err *err)
{
	int64_t now_ns = drive_now(drive);
	enum drive_came came = CAME_NOTHING;
	if (now_ns >= drive->give_up_at_ns)
		return gave_up(drive, ret);
	if (now_ns >= drive->settle_at_ns)
		came = settle(drive, err);
	if (came == CAME_NOTHING && now_ns >= drive->renew_at_ns) {
		came = renew(drive, err);
		if (came == CAME_NOTHING)
			came = drive_hear_ledger(drive, ret, err);
	}
	if (came == CAME_NOTHING && now_ns >= drive->grace_at_ns) {
		drive->grace_at_ns = INT64_MAX;
		*ret = event_of(LIFE_EV_GRACE_OVER, now_ns);
		return CAME_EVENT;
	}
	return came;
}

static enum stop_cause cause_of(enum boundary_limit limit)
{
	switch (limit) {
	case BOUNDARY_LIMIT_WALL:
		return STOP_WALL;
	case BOUNDARY_LIMIT_CPU:
		return STOP_CPU;
	case BOUNDARY_LIMIT_OUTPUT:
		return STOP_OUTPUT;
	case BOUNDARY_LIMIT_MEMORY:
		return STOP_MEMORY;
	}
	return STOP_NONE;
}

static bool exit_makes_sense(const struct boundary_event *report)
{
	switch (report->how) {
	case BOUNDARY_EXITED:
		return report->status >= 0 && report->status <= EXIT_CODE_MAX;
	case BOUNDARY_SIGNALED:
		return report->status >= 1 && report->status <= SIGNAL_MAX;
	case BOUNDARY_NOT_EXECUTED:
		return report->status > 0;
	}
	return false;
}

static enum main_end end_of(enum boundary_exit how)
{
	switch (how) {
	case BOUNDARY_EXITED:
		return MAIN_EXITED;
	case BOUNDARY_SIGNALED:
		return MAIN_SIGNALED;
	case BOUNDARY_NOT_EXECUTED:
		return MAIN_NOT_EXECUTED;
	}
	return MAIN_UNKNOWN;
}

static struct life_event main_exited(struct drive *drive, const struct boundary_event *report)
{
	if (!exit_makes_sense(report))
		return event_failed(LIFE_EV_BOUNDARY_LOST, drive->now_ns, "senseless_report",
		                    "main's exit was reported with an impossible status");
	struct life_event event = event_of(LIFE_EV_MAIN_EXITED, report->at_ns);
	event.exit = (struct main_exit){.how = end_of(report->how), .at_ns = report->at_ns, .killed_by_us = report->killed_by_us};
	if (report->how == BOUNDARY_SIGNALED)
		event.exit.signal = report->status;
	else
		event.exit.code = report->status;
	event.descendants_alive = report->descendants_alive;
	drive->wall_ns = report->at_ns - report->launched_at_ns;
	drive->exited_at_ms = drive->launched_at_ms + drive->wall_ns / NS_PER_MS;
	return event;
}

/* Was it init that is gone, or the whole worker? A worker that lives answers a kill, which is due anyway. */
static struct life_event boundary_lost(struct drive *drive, const struct boundary_event *report)
{
	bool worker_lost = drive->boundary->ops->kill(drive->boundary, NULL) == ERR_LOST;
	return event_failed(LIFE_EV_BOUNDARY_LOST, drive->now_ns, worker_lost ? LIFE_REASON_WORKER_LOST : LIFE_REASON_INIT_LOST,
	                    report->detail);
}

/* CAME_NOTHING: it was nothing for the lifecycle, wait on. */
static enum drive_came take(struct drive *drive, const struct boundary_event *report, struct life_event *ret, struct err *err)
{
	switch (report->kind) {
	case BOUNDARY_MAIN_EXITED:
		*ret = main_exited(drive, report);
		return CAME_EVENT;
	case BOUNDARY_LIMIT:
		*ret = event_of(LIFE_EV_STOP, report->at_ns);
		ret->cause = cause_of(report->limit);
		return CAME_EVENT;
	case BOUNDARY_INTERRUPTED:
		return CAME_NOTHING;
	case BOUNDARY_DEADLINE:
		return deadline_passed(drive, ret, err);
	case BOUNDARY_LOST:
		*ret = boundary_lost(drive, report);
		return CAME_EVENT;
	}
	*ret = event_failed(LIFE_EV_BOUNDARY_LOST, drive->now_ns, "senseless_report", "an event of no known kind");
	return CAME_EVENT;
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

enum drive_came drive_observe(struct drive *drive, struct life_event *ret, struct err *err)
{
	for (;;) { /* ends with main's exit, which the wall limit and the wait after a kill bound */
		enum drive_came came = drive_hear(drive, ret, err);
		if (came != CAME_NOTHING)
			return came;
		int64_t deadline_ns = sooner(sooner(drive->renew_at_ns, drive->settle_at_ns),
		                             sooner(drive->grace_at_ns, drive->give_up_at_ns));
		struct boundary_event report = {.kind = BOUNDARY_LOST};
		struct err failure = ERR_INIT;
		int rc = drive->boundary->ops->observe(drive->boundary, deadline_ns, &report, &failure);
		if (rc < 0) {
			*ret = event_failed(LIFE_EV_BOUNDARY_LOST, drive_now(drive),
			                    reason_of(rc), failure.text);
			return CAME_EVENT;
		}
		if (report.at_ns > drive->now_ns)
			drive->now_ns = report.at_ns;
		came = take(drive, &report, ret, err);
		if (came != CAME_NOTHING)
			return came;
	}
}
