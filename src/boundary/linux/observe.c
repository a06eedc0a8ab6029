/* observe.c - the worker's watch over a running guest: streams, limits, main's exit.
 *
 * One poll loop. A limit is enforced here at once, without asking anybody (a keeper may be slow or gone); it is then reported. What
 * init has said already is heard before a timer is, so that a main which ended in time is not judged by a timer that fired while we
 * were not scheduled. */
#include "boundary/linux/linux_boundary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "capture/capture.h"

enum { PUMP_MAX = 256 * 1024, CPU_STEP_MIN_NS = 500000 };
/* Anonymous memory is looked at soon after the gate, and then less and less often. */
enum { SAMPLE_FIRST_NS = 2000000, SAMPLE_LAST_NS = 128000000 };

enum { SRC_CONTROL, SRC_INIT, SRC_OUT, SRC_ERR, SRC_WALL, SRC_CPU, SRC_SAMPLE, SRC_OOM, SRC_INTERRUPT, SRC_WAKE, SRC_MAIN, SRC_COUNT };

static int arm(int timer, int64_t after_ns, struct err *err)
{
	int64_t ns = after_ns > 0 ? after_ns : 1;
	struct itimerspec when = {.it_value = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S}};
	return timerfd_settime(timer, 0, &when, NULL) == 0 ? 0 : err_sys(err, errno, "timer");
}

static int64_t cpu_limit_ns(const struct linux_boundary *boundary)
{
	return boundary->spec.plan->limits.cpu_ms * NS_PER_MS;
}

/* The budget cannot be used up before left / CPUs from now, so that is when to look again. */
static int arm_cpu_timer(struct linux_boundary *boundary, struct err *err)
{
	int64_t used = cgroups_cpu_ns(&boundary->groups);
	int64_t left = cpu_limit_ns(boundary) - (used < 0 ? 0 : used);
	int pinned = cpu_list_count(&boundary->spec.plan->limits.pin);
	long cpus = pinned > 0 ? pinned : sysconf(_SC_NPROCESSORS_ONLN);
	int64_t step = left / (cpus > 0 ? cpus : 1);
	return arm(boundary->cpu_timer, step < CPU_STEP_MIN_NS ? CPU_STEP_MIN_NS : step, err);
}

static int make_timers(struct linux_boundary *boundary, struct err *err)
{
	boundary->wall_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	boundary->cpu_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	boundary->sample_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (boundary->wall_timer < 0 || boundary->cpu_timer < 0 || boundary->sample_timer < 0)
		return err_sys(err, errno, "timerfd_create");
	boundary->sample_step_ns = SAMPLE_FIRST_NS;
	return arm(boundary->sample_timer, boundary->sample_step_ns, err);
}

int linux_launch(struct linux_boundary *boundary, struct err *err)
{
	int rc = make_timers(boundary, err);
	if (rc == 0)
		rc = cgroups_watch_memory(&boundary->groups, &boundary->oom_event, err);
	if (rc == 0)
		rc = cgroups_start_accounting(&boundary->groups, err);
	if (rc == 0)
		rc = linux_command(boundary, INIT_COMMAND_LAUNCH, err);
	if (rc < 0)
		return rc;
	boundary->launched_ns = clock_mono_ns();
	rc = FAULT_ERR("linux.launched", err);
	if (rc == 0)
		rc = arm(boundary->wall_timer, boundary->spec.plan->limits.wall_ms * NS_PER_MS, err);
	if (rc == 0)
		rc = arm_cpu_timer(boundary, err);
	/* The gate is open: what fails behind it is no failed launch, of which it could be said that nothing has run. */
	return rc < 0 ? err_context(err, ERR_LOST, "launched, but its limits cannot be watched") : 0;
}

/* ---- what can happen ---- */

static void limit_met(struct linux_boundary *boundary, enum boundary_limit limit, struct boundary_event *ret)
{
	*ret = (struct boundary_event){.kind = BOUNDARY_LIMIT, .limit = limit, .at_ns = clock_mono_ns()};
	if (boundary->spec.plan->limits.on_limit_grace_ms == 0 || limit == BOUNDARY_LIMIT_MEMORY)
		linux_kill_unit(boundary);
}

static void main_exited(struct linux_boundary *boundary, const struct init_report *report, struct boundary_event *ret)
{
	int status = report->wait_status;
	boundary->exited = true;
	*ret = (struct boundary_event){
		.kind = BOUNDARY_MAIN_EXITED,
		.at_ns = report->exited_ns,
		.launched_at_ns = report->launched_ns,
		.how = WIFSIGNALED(status) ? BOUNDARY_SIGNALED : BOUNDARY_EXITED,
		.status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		.killed_by_us = WIFSIGNALED(status) && (boundary->kill_sent_ns <= report->exited_ns || boundary->terminating),
		.descendants_alive = cgroups_population(&boundary->groups),
	};
	if (boundary->exec_error != 0 && !WIFSIGNALED(status)) {
		ret->how = BOUNDARY_NOT_EXECUTED;
		ret->status = boundary->exec_error;
	}
}

/* Init is dead. After our kill main is dead too, and was before (init could not report it); otherwise the boundary is lost. */
static void init_died(struct linux_boundary *boundary, struct boundary_event *ret)
{
	boundary->init_reaped = true;
	if (boundary->kill_sent_ns == INT64_MAX) {
		*ret = (struct boundary_event){.kind = BOUNDARY_LOST, .at_ns = clock_mono_ns()};
		snprintf(ret->detail, sizeof(ret->detail), "init_lost");
		return;
	}
	int64_t ended_ns = boundary->main_dead_ns > 0 ? boundary->main_dead_ns : clock_mono_ns();
	struct init_report report = {.wait_status = SIGKILL, .launched_ns = boundary->launched_ns, .exited_ns = ended_ns};
	main_exited(boundary, &report, ret);
}

/* Reads what init has to say. 1: *ret is an event. */
static int hear_init(struct linux_boundary *boundary, struct boundary_event *ret, struct err *err)
{
	for (;;) {
		struct init_report report;
		FD_AUTO int pidfd = -1;
		struct err heard = ERR_INIT; /* an end of the stream is no error of ours: err stays as it is */
		int rc = linux_receive(boundary, &report, &pidfd, &heard);
		if (rc == ERR_LOST || rc == 0)
			return 0; /* its pidfd tells the rest */
		if (rc < 0)
			return err_set(err, rc, "%s", heard.text);
		if (report.kind == INIT_REPORT_NOT_EXECUTED) {
			boundary->exec_error = report.error;
		} else if (report.kind == INIT_REPORT_EXITED && !boundary->exited) {
			main_exited(boundary, &report, ret);
			return 1;
		} else {
			return err_set(err, ERR_PROTOCOL, "guest init: unexpected report %u", report.kind);
		}
	}
}

static struct capture *sink(const struct linux_boundary *boundary, int stream)
{
	return stream == 0 ? boundary->spec.standard_output : boundary->spec.standard_error;
}

/* Moves what is there into the captures. 1: a limit was met. */
static int pump(struct linux_boundary *boundary, int stream, struct boundary_event *ret, struct err *err)
{
	bool eof = false;
	struct capture_state state;
	if (boundary->streams[stream] < 0)
		return 0;
	int rc = capture_pump(sink(boundary, stream), boundary->streams[stream], PUMP_MAX, &eof, err);
	if (rc < 0)
		return err_context(err, rc, "%s", stream == 0 ? "stdout" : "stderr");
	if (eof) {
		capture_mark_drained(sink(boundary, stream));
		fd_close(&boundary->streams[stream]);
	}
	capture_get_state(sink(boundary, stream), &state);
	if (!state.overflow || boundary->output_reported || boundary->spec.plan->limits.on_overflow != OVERFLOW_KILL)
		return 0;
	boundary->output_reported = true;
	if (ret)
		limit_met(boundary, BOUNDARY_LIMIT_OUTPUT, ret);
	return 1;
}

static int cpu_timer_fired(struct linux_boundary *boundary, struct boundary_event *ret, struct err *err)
{
	uint64_t ignored;
	if (read(boundary->cpu_timer, &ignored, sizeof(ignored)) < 0)
		return 0;
	int64_t used = cgroups_cpu_ns(&boundary->groups);
	if (used < 0) /* a counter that cannot be read is a limit that is not kept */
		return err_set(err, ERR_UNVERIFIED, "the CPU time of the guest's group cannot be read");
	if (used < cpu_limit_ns(boundary))
		return arm_cpu_timer(boundary, err);
	boundary->cpu_reported = true;
	limit_met(boundary, BOUNDARY_LIMIT_CPU, ret);
	return 1;
}

static int wall_timer_fired(struct linux_boundary *boundary, struct boundary_event *ret)
{
	uint64_t ignored;
	if (boundary->wall_reported || read(boundary->wall_timer, &ignored, sizeof(ignored)) < 0)
		return 0;
	boundary->wall_reported = true;
	limit_met(boundary, BOUNDARY_LIMIT_WALL, ret);
	return 1;
}

static int sample_timer_fired(struct linux_boundary *boundary, struct err *err)
{
	uint64_t ignored;
	if (read(boundary->sample_timer, &ignored, sizeof(ignored)) < 0)
		return 0;
	int64_t bytes = cgroups_anon_bytes(&boundary->groups);
	if (bytes > 0 && bytes > boundary->anon_peak_bytes) /* 0: the counter lags behind */
		boundary->anon_peak_bytes = bytes;
	if (boundary->sample_step_ns < SAMPLE_LAST_NS)
		boundary->sample_step_ns *= 2;
	return arm(boundary->sample_timer, boundary->sample_step_ns, err);
}

/* v1 tells that the group is out of memory, not yet that somebody was killed for it: the count decides. */
static int memory_event(struct linux_boundary *boundary, struct boundary_event *ret)
{
	uint64_t ignored;
	if (read(boundary->oom_event, &ignored, sizeof(ignored)) < 0 || boundary->memory_reported ||
	    cgroups_oom_kills(&boundary->groups) <= 0)
		return 0;
	boundary->memory_reported = true;
	limit_met(boundary, BOUNDARY_LIMIT_MEMORY, ret);
	return 1;
}

static int interrupted(struct linux_boundary *boundary, bool own, struct boundary_event *ret)
{
	uint64_t ignored;
	if (own && read(boundary->interrupt, &ignored, sizeof(ignored)) < 0)
		return 0;
	*ret = (struct boundary_event){.kind = BOUNDARY_INTERRUPTED, .at_ns = clock_mono_ns()};
	return 1;
}

/* Looks at every source that is ready, in the order that keeps verdicts right. 1: *ret is an event. */
static int handle(struct linux_boundary *boundary, const struct pollfd *sources, struct boundary_event *ret, struct err *err)
{
	int rc = 0;
	if (sources[SRC_MAIN].revents)
		boundary->main_dead_ns = clock_mono_ns();
	for (int stream = 0; stream < 2 && rc == 0; stream++)
		if (sources[SRC_OUT + stream].revents)
			rc = pump(boundary, stream, ret, err);
	if (rc == 0 && (sources[SRC_CONTROL].revents || sources[SRC_INIT].revents))
		rc = hear_init(boundary, ret, err);
	if (rc == 0 && sources[SRC_INIT].revents && !boundary->init_reaped) {
		init_died(boundary, ret);
		rc = 1;
	}
	if (rc == 0 && sources[SRC_OOM].revents)
		rc = memory_event(boundary, ret);
	if (rc == 0 && sources[SRC_WALL].revents)
		rc = wall_timer_fired(boundary, ret);
	if (rc == 0 && sources[SRC_CPU].revents && !boundary->cpu_reported)
		rc = cpu_timer_fired(boundary, ret, err);
	if (rc == 0 && sources[SRC_SAMPLE].revents)
		rc = sample_timer_fired(boundary, err);
	if (rc == 0 && sources[SRC_INTERRUPT].revents)
		rc = interrupted(boundary, true, ret);
	if (rc == 0 && sources[SRC_WAKE].revents)
		rc = interrupted(boundary, false, ret);
	return rc;
}

static int wait_for_sources(struct pollfd *sources, int64_t deadline_ns, struct err *err)
{
	int64_t now = clock_mono_ns();
	struct timespec left = {0}, *timeout = NULL;
	if (deadline_ns != INT64_MAX) {
		int64_t ns = deadline_ns > now ? deadline_ns - now : 0;
		left = (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
		timeout = &left;
	}
	int ready = ppoll(sources, SRC_COUNT, timeout, NULL);
	if (ready < 0 && errno != EINTR)
		return err_sys(err, errno, "poll");
	return ready < 0 ? 0 : ready;
}

/* Init outlives main by what it takes to end a pid namespace, which is not main's time. Without a kill init reports main's end. */
static bool awaits_main(const struct linux_boundary *boundary)
{
	return boundary->kill_sent_ns != INT64_MAX && boundary->main_dead_ns == 0 && !boundary->exited;
}

int linux_observe(struct linux_boundary *boundary, int64_t deadline_ns, struct boundary_event *ret, struct err *err)
{
	for (;;) {
		struct pollfd sources[SRC_COUNT] = {
			[SRC_CONTROL] = {boundary->init_reaped ? -1 : boundary->control, POLLIN, 0},
			[SRC_INIT] = {boundary->init_reaped ? -1 : boundary->init_pidfd, POLLIN, 0},
			[SRC_OUT] = {boundary->streams[0], POLLIN, 0},
			[SRC_ERR] = {boundary->streams[1], POLLIN, 0},
			[SRC_WALL] = {boundary->wall_timer, POLLIN, 0},
			[SRC_CPU] = {boundary->cpu_reported ? -1 : boundary->cpu_timer, POLLIN, 0},
			[SRC_SAMPLE] = {boundary->sample_timer, POLLIN, 0},
			[SRC_OOM] = {boundary->oom_event, POLLIN, 0},
			[SRC_INTERRUPT] = {boundary->interrupt, POLLIN, 0},
			[SRC_WAKE] = {boundary->provider->wake_fd, POLLIN, 0},
			[SRC_MAIN] = {awaits_main(boundary) ? boundary->main_pidfd : -1, POLLIN, 0},
		};
		int rc = wait_for_sources(sources, deadline_ns, err);
		if (rc > 0)
			rc = handle(boundary, sources, ret, err);
		if (rc < 0)
			return rc;
		if (rc > 0)
			return 0;
		if (clock_mono_ns() >= deadline_ns) {
			*ret = (struct boundary_event){.kind = BOUNDARY_DEADLINE, .at_ns = clock_mono_ns()};
			return 0;
		}
	}
}

/* Until both are at EOF or the time is over. What a descendant that still holds a stream writes later is not part of the result. */
int linux_drain(struct linux_boundary *boundary, struct boundary_drain *ret, struct err *err)
{
	int64_t deadline_ns = clock_mono_ns() + boundary->spec.plan->limits.drain_ms * NS_PER_MS;
	for (;;) {
		for (int stream = 0; stream < 2; stream++) {
			int rc = pump(boundary, stream, NULL, err);
			if (rc < 0)
				return rc;
		}
		int64_t left_ns = deadline_ns - clock_mono_ns();
		if ((boundary->streams[0] < 0 && boundary->streams[1] < 0) || left_ns <= 0)
			break;
		struct pollfd sources[2] = {{boundary->streams[0], POLLIN, 0}, {boundary->streams[1], POLLIN, 0}};
		struct timespec left = {.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
		if (ppoll(sources, 2, &left, NULL) < 0 && errno != EINTR)
			return err_sys(err, errno, "poll");
	}
	ret->stdout_retained = boundary->streams[0] >= 0;
	ret->stderr_retained = boundary->streams[1] >= 0;
	return 0;
}
