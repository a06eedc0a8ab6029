/* test_worker.c - a real worker process over a boundary that can be watched: the whole way, each death, each breach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "artifact/store.h"
#include "base/clock.h"
#include "base/fd.h"
#include "boundary/recording/recording.h"
#include "capture/capture.h"
#include "side.h"

enum { NOT_LONG_MS = 50, LEASE_MS = 1000 /* enough to begin in */ };

static void the_whole_way(void **state)
{
	struct side *side = *state;
	struct boundary_event event;
	struct boundary_drain drain;
	struct boundary_usage usage;
	struct capture_state captured;
	struct err err = ERR_INIT;
	side_come_to(side, WORKER_LAUNCHED);
	const struct boundary_ops *ops = side->boundary->ops;
	assert_int_equal(ops->terminate(side->boundary, &err), 0);
	assert_int_equal(ops->observe(side->boundary, INT64_MAX, &event, &err), 0);
	assert_true(event.kind == BOUNDARY_MAIN_EXITED && event.status == 7 && event.descendants_alive == 2);
	assert_int_equal(ops->drain(side->boundary, &drain, &err), 0);
	assert_true(!drain.stdout_retained && drain.stderr_retained);
	capture_get_state(side->standard_output, &captured);
	assert_true(captured.total_bytes == 13 && captured.drained);
	assert_int_equal(ops->cleanup(side->boundary, &usage, &err), 0);
	assert_true(usage.memory_peak_bytes == 4096 && usage.survivors_killed == 2 && usage.cpu_system_ns == -1);
	assert_int_equal(ops->verify_empty(side->boundary, &err), 0);
	assert_int_equal(side->evidence.count, 3);
	assert_string_equal(side->evidence.lines[0].name, "limit.memory");
	assert_string_equal(side->evidence.lines[1].detail, "mode 2\\x0a\\xff");
	assert_int_equal(side->evidence.lines[2].grade, EVIDENCE_PROBED);
	side_end(side);
	assert_string_equal(side->fake->log, "open prepare create enroll launch terminate observe drain cleanup verify free ");
}

static void a_worker_starts_with_nothing_but_its_channel(void **state)
{
	struct side *side = *state;
	side_come_to(side, WORKER_OPENED);
	assert_int_equal(side->fake->null_fd_count, 3);
	assert_int_equal(side->fake->highest_fd, 3);
	assert_int_equal(side->fake->session, side->worker->pid);
}

static void a_worker_serves_one_boundary_after_the_other(void **state)
{
	struct side *side = *state;
	struct boundary *second = NULL;
	struct err err = ERR_INIT;
	side_come_to(side, WORKER_PREPARED);
	assert_int_equal(worker_boundary(side->worker, &second, &err), ERR_STATE);
	side->boundary->ops->free(side->boundary);
	side->boundary = NULL;
	for (int phase = WORKER_OPENED; phase <= WORKER_CLEANED; phase++)
		assert_int_equal(side_step(side, (enum worker_phase)phase, &err), 0);
	side_end(side);
	assert_string_equal(side->fake->log, "open prepare create enroll free open prepare create enroll launch observe drain cleanup verify free ");
}

static void what_the_factory_cannot_make_is_told_at_the_opening(void **state)
{
	struct side *side = *state;
	struct boundary *boundary = NULL;
	struct err err = ERR_INIT;
	side->fake->no_provider = true;
	side_spawn(side);
	assert_int_equal(worker_boundary(side->worker, &boundary, &err), ERR_UNSUPPORTED);
	assert_string_equal(err.text, "profile recording is not here");
	assert_null(boundary);
	side_end(side);

	side->fake->no_provider = false;
	snprintf(side->fake->fail, sizeof(side->fake->fail), "%s", "open");
	side_spawn(side);
	assert_int_equal(worker_boundary(side->worker, &boundary, &err), ERR_UNVERIFIED);
	assert_int_equal(worker_boundary(side->worker, &boundary, &err), ERR_UNVERIFIED);
}

static void a_step_that_fails_leads_to_no_launch(void **state)
{
	struct side *side = *state;
	const char *steps[] = {"prepare", "create", "enroll", "launch"};
	for (int i = 0; i < 4; i++) {
		enum worker_phase before = (enum worker_phase)(WORKER_OPENED + i);
		struct boundary_usage usage;
		struct err err = ERR_INIT;
		snprintf(side->fake->fail, sizeof(side->fake->fail), "%s", steps[i]);
		side_come_to(side, before);
		assert_int_equal(side_step(side, (enum worker_phase)(before + 1), &err), ERR_UNVERIFIED);
		assert_non_null(strstr(err.text, "told to fail"));
		assert_int_equal(side->evidence.count, i < 3 ? i + 1 : 3); /* also of the step that failed */
		memset(side->fake->fail, 0, sizeof(side->fake->fail));
		for (int phase = WORKER_PREPARED; phase <= WORKER_LAUNCHED; phase++)
			assert_int_equal(side_step(side, (enum worker_phase)phase, &err), ERR_STATE);
		assert_int_equal(side->boundary->ops->cleanup(side->boundary, &usage, &err), 0);
		assert_int_equal(side->boundary->ops->verify_empty(side->boundary, &err), 0);
		assert_false(side->worker->lost);
		side_end(side);
	}
}

static void await_log(const struct side *side, const char *log)
{
	int64_t deadline_ns = clock_mono_ns() + WORKER_ANSWER_MS * NS_PER_MS;
	while (strcmp(side->fake->log, log) != 0 && clock_mono_ns() < deadline_ns)
		sched_yield();
	assert_string_equal(side->fake->log, log);
}

static void a_worker_goes_on_by_itself_as_far_as_nothing_is_decided(void **state)
{
	struct side *side = *state;
	struct boundary_event event;
	struct err err = ERR_INIT;
	side_come_to(side, WORKER_PREPARED);
	await_log(side, "open prepare create enroll ");
	assert_int_equal(side->evidence.count, 1); /* what it found meanwhile is told when it is asked for */
	assert_int_equal(side_step(side, WORKER_SUSPENDED, &err), 0);
	assert_int_equal(side->evidence.count, 2);
	assert_int_equal(side_step(side, WORKER_ENROLLED, &err), 0);
	assert_int_equal(side_step(side, WORKER_LAUNCHED, &err), 0);
	assert_int_equal(side->boundary->ops->observe(side->boundary, INT64_MAX, &event, &err), 0);
	await_log(side, "open prepare create enroll launch observe drain cleanup verify ");
	assert_int_equal(side->worker->phase, WORKER_EXITED);
}

static void what_it_does_unasked_ends_before_something_else_is_done(void **state)
{
	struct side *side = *state;
	struct boundary_usage usage;
	struct err err = ERR_INIT;
	side_come_to(side, WORKER_PREPARED);
	assert_int_equal(side->boundary->ops->kill(side->boundary, &err), 0);
	assert_int_equal(side->boundary->ops->enroll(side->boundary, &side->evidence, &err), ERR_STATE);
	assert_int_equal(side->boundary->ops->cleanup(side->boundary, &usage, &err), 0);
	assert_int_equal(side->evidence.count, 1);
	side_end(side);
	assert_string_equal(side->fake->log, "open prepare create enroll kill cleanup free ");
}

static void a_step_that_fails_is_the_last_of_those_done_unasked(void **state)
{
	struct side *side = *state;
	struct boundary_drain drain;
	struct boundary_usage usage;
	struct err err = ERR_INIT;
	snprintf(side->fake->fail, sizeof(side->fake->fail), "%s", "cleanup");
	side_come_to(side, WORKER_EXITED);
	assert_int_equal(side->boundary->ops->drain(side->boundary, &drain, &err), 0);
	assert_int_equal(side->boundary->ops->cleanup(side->boundary, &usage, &err), ERR_UNVERIFIED);
	assert_int_equal(side->boundary->ops->verify_empty(side->boundary, &err), ERR_STATE);
	side_end(side);
	assert_string_equal(side->fake->log, "open prepare create enroll launch observe drain cleanup free ");
}

static void nothing_is_begun_when_the_lease_is_over(void **state)
{
	struct side *side = *state;
	static const enum worker_phase before[] = {WORKER_OPENED, WORKER_ENROLLED};
	static const char *const logs[] = {"open cleanup verify free ", "open prepare create enroll cleanup verify free "};
	for (size_t i = 0; i < 2; i++) {
		struct boundary_usage usage;
		struct err err = ERR_INIT;
		side_come_to(side, before[i]);
		side->boundary->ops->lease(side->boundary, clock_boot_ns());
		assert_int_equal(side_step(side, (enum worker_phase)(before[i] + 1), &err), ERR_FENCED);
		assert_int_equal(side->boundary->ops->cleanup(side->boundary, &usage, &err), 0); /* that needs no lease (R13) */
		assert_int_equal(side->boundary->ops->verify_empty(side->boundary, &err), 0);
		side_end(side);
		assert_string_equal(side->fake->log, logs[i]);
	}
}

/* The worker does not know yet that the lease was renewed: it begins nothing unasked, and is asked. */
static void a_prepare_that_outlasts_its_lease_is_gone_on_from_under_the_next(void **state)
{
	struct side *side = *state;
	for (int renewed = 0; renewed < 2; renewed++) {
		struct err err = ERR_INIT;
		side_come_to(side, WORKER_OPENED);
		side->fake->prepares_until_ns = clock_boot_ns() + LEASE_MS * NS_PER_MS;
		side->boundary->ops->lease(side->boundary, side->fake->prepares_until_ns);
		assert_int_equal(side_step(side, WORKER_PREPARED, &err), 0);
		if (renewed)
			side->boundary->ops->lease(side->boundary, INT64_MAX);
		assert_int_equal(side_step(side, WORKER_SUSPENDED, &err), renewed ? 0 : ERR_FENCED);
		side_end(side);
		assert_string_equal(side->fake->log, renewed ? "open prepare create free " : "open prepare free ");
	}
}

static void each_call_is_lost(struct side *side)
{
	const struct boundary_ops *ops = side->boundary->ops;
	struct boundary_event event;
	struct boundary_drain drain;
	struct boundary_usage usage;
	struct err err = ERR_INIT;
	assert_int_equal(ops->kill(side->boundary, &err), ERR_LOST);
	assert_int_equal(side_step(side, WORKER_PREPARED, &err), ERR_LOST);
	assert_int_equal(ops->create_suspended(side->boundary, &side->evidence, &err), ERR_LOST);
	assert_int_equal(ops->enroll(side->boundary, &side->evidence, &err), ERR_LOST);
	assert_int_equal(ops->launch(side->boundary, &err), ERR_LOST);
	assert_int_equal(ops->terminate(side->boundary, &err), ERR_LOST);
	assert_int_equal(ops->drain(side->boundary, &drain, &err), ERR_LOST);
	assert_int_equal(ops->cleanup(side->boundary, &usage, &err), ERR_LOST);
	assert_int_equal(ops->verify_empty(side->boundary, &err), ERR_LOST);
	assert_int_equal(ops->observe(side->boundary, INT64_MAX, &event, &err), 0);
	assert_int_equal(event.kind, BOUNDARY_LOST);
	assert_string_equal(event.detail, "worker_lost");
	assert_true(side->worker->lost && side->worker->reaped);
}

static void what_a_dead_worker_has_answered_is_worth_nothing(void **state)
{
	struct side *side = *state;
	struct pollfd answers, death;
	struct err err = ERR_INIT;
	side_come_to(side, WORKER_PREPARED);
	await_log(side, "open prepare create enroll ");
	answers = (struct pollfd){.fd = side->worker->channel.fd, .events = POLLIN};
	assert_int_equal(poll(&answers, 1, -1), 1);
	kill(side->worker->pid, SIGKILL);
	death = (struct pollfd){.fd = side->worker->pidfd, .events = POLLIN};
	assert_int_equal(poll(&death, 1, -1), 1);
	assert_int_equal(side_step(side, WORKER_SUSPENDED, &err), ERR_LOST);
	each_call_is_lost(side);
}

static void a_worker_killed_in_any_phase_is_lost_and_nothing_hangs(void **state)
{
	struct side *side = *state;
	for (int phase = WORKER_OPENED; phase < WORKER_PHASE_COUNT; phase++) {
		side_come_to(side, (enum worker_phase)phase);
		assert_int_equal(kill(side->worker->pid, SIGKILL), 0);
		each_call_is_lost(side);
		side_end(side);
	}
	side_spawn(side);
	struct err err = ERR_INIT;
	kill(side->worker->pid, SIGKILL);
	int result = worker_boundary(side->worker, &side->boundary, &err);
	assert_true(result == ERR_LOST || result == 0); /* it may have answered before */
}

/* Waits until the guest's output shows that the worker is inside observe, then does something to it. */
struct meddler {
	struct side *side;
	void (*act)(struct side *side);
};

static void *meddle(void *context)
{
	struct meddler *meddler = context;
	struct pollfd output = {.fd = capture_notify_fd(meddler->side->standard_output), .events = POLLIN};
	poll(&output, 1, -1);
	meddler->act(meddler->side);
	return NULL;
}

static int observe_meddled(struct side *side, void (*act)(struct side *side), struct boundary_event *ret)
{
	struct meddler meddler = {.side = side, .act = act};
	struct err err = ERR_INIT;
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, meddle, &meddler), 0);
	int result = side->boundary->ops->observe(side->boundary, INT64_MAX, ret, &err);
	pthread_join(thread, NULL);
	return result;
}

static void kill_worker(struct side *side)
{
	kill(side->worker->pid, SIGKILL);
}

static void interrupt(struct side *side)
{
	worker_interrupt(side->worker);
}

static void a_worker_killed_while_it_observes_is_an_event(void **state)
{
	struct side *side = *state;
	struct boundary_event event;
	side->fake->observe_blocks = true;
	side_come_to(side, WORKER_LAUNCHED);
	assert_int_equal(observe_meddled(side, kill_worker, &event), 0);
	assert_int_equal(event.kind, BOUNDARY_LOST);
	assert_string_equal(event.detail, "worker_lost");
	struct capture_state captured;
	capture_get_state(side->standard_output, &captured);
	assert_int_equal(captured.kept_bytes, 13); /* what came before is not lost with it */
	each_call_is_lost(side);
}

static void an_interrupt_wakes_a_blocked_observe(void **state)
{
	struct side *side = *state;
	struct boundary_event event;
	struct err err = ERR_INIT;
	side->fake->observe_blocks = true;
	side_come_to(side, WORKER_LAUNCHED);
	assert_int_equal(observe_meddled(side, interrupt, &event), 0);
	assert_int_equal(event.kind, BOUNDARY_INTERRUPTED);
	assert_int_equal(side->boundary->ops->kill(side->boundary, &err), 0);
	side->fake->observe_blocks = false;
	assert_int_equal(side->boundary->ops->observe(side->boundary, INT64_MAX, &event, &err), 0);
	assert_int_equal(event.kind, BOUNDARY_MAIN_EXITED);
}

static void an_interrupt_before_observe_is_not_lost(void **state)
{
	struct side *side = *state;
	struct boundary_event event;
	struct err err = ERR_INIT;
	side_come_to(side, WORKER_LAUNCHED);
	side->boundary->ops->interrupt(side->boundary);
	side->boundary->ops->interrupt(side->boundary);
	assert_int_equal(side->boundary->ops->observe(side->boundary, INT64_MAX, &event, &err), 0);
	assert_int_equal(event.kind, BOUNDARY_INTERRUPTED);
	assert_int_equal(side->boundary->ops->observe(side->boundary, INT64_MAX, &event, &err), 0);
	assert_int_equal(event.kind, BOUNDARY_MAIN_EXITED);
	worker_interrupt(NULL);
}

static void an_interrupt_that_crosses_another_event_is_the_next_ones(void **state)
{
	struct side *side = *state;
	struct boundary_event event;
	struct err err = ERR_INIT;
	side->fake->observe_blocks = side->fake->exits_late = true;
	side_come_to(side, WORKER_LAUNCHED);
	assert_int_equal(observe_meddled(side, interrupt, &event), 0);
	assert_int_equal(event.kind, BOUNDARY_MAIN_EXITED);
	assert_int_equal(side->boundary->ops->observe(side->boundary, INT64_MAX, &event, &err), 0);
	assert_int_equal(event.kind, BOUNDARY_INTERRUPTED);
	assert_int_equal(side->boundary->ops->kill(side->boundary, &err), 0);
}

static void a_worker_that_does_not_answer_is_killed(void **state)
{
	struct side *side = *state;
	enum worker_news news;
	struct err err = ERR_INIT;
	side->fake->observe_blocks = side->fake->ignores_wake = true;
	side_come_to(side, WORKER_LAUNCHED);
	assert_int_equal(worker_ask(side->worker, &(struct request){.kind = REQUEST_OBSERVE}, NULL, &err), 0);
	assert_int_equal(worker_await(side->worker, true, clock_mono_ns() + NOT_LONG_MS * NS_PER_MS, &news, &err), ERR_LOST);
	assert_non_null(strstr(err.text, "does not answer"));
	each_call_is_lost(side);
}

static void a_stopped_worker_is_killed(void **state)
{
	struct side *side = *state;
	enum worker_news news;
	struct err err = ERR_INIT;
	int status;
	side_come_to(side, WORKER_LAUNCHED);
	kill(side->worker->pid, SIGSTOP);
	assert_int_equal(waitpid(side->worker->pid, &status, WUNTRACED), side->worker->pid);
	assert_int_equal(worker_ask(side->worker, &(struct request){.kind = REQUEST_KILL}, NULL, &err), 0);
	assert_int_equal(worker_await(side->worker, false, clock_mono_ns() + NOT_LONG_MS * NS_PER_MS, &news, &err), ERR_LOST);
	assert_true(side->worker->reaped);
}

/* What a worker is sent that does not come from worker_ask. */
static void send_raw(struct side *side, const char *text, size_t length, size_t fd_count)
{
	struct channel_message message = {.text = text, .length = length, .fd_count = fd_count};
	struct err err = ERR_INIT;
	assert_int_equal(channel_send(&side->worker->channel, &message, &err), 0);
}

static void ended_by(struct side *side, const char *log)
{
	assert_int_equal(await_end(side->worker->pidfd), CLD_EXITED * 1000 + (strstr(log, "kill") ? 1 : 0));
	side->worker->lost = side->worker->reaped = true;
	if (strcmp(side->fake->log, log) != 0)
		print_message("phase %s\n", worker_phase_name(side->worker->phase));
	assert_string_equal(side->fake->log, log);
	side_end(side);
}

static void send_request(struct side *side, enum request_kind kind)
{
	BUF_AUTO struct buf text = BUF_INIT(4096);
	struct request request = {.kind = kind, .lease_ends_at_ns = INT64_MAX};
	struct err err = ERR_INIT;
	id_new("led", request.identity.ledger_id);
	id_new("bnd", request.identity.boundary_id);
	assert_int_equal(request_encode(&request, &text, &err), 0);
	send_raw(side, text.data, text.len, protocol_fds(kind));
}

/* Into this phase and no further: a worker that is not told to go on does not. */
static void come_alone_to(struct side *side, enum worker_phase last)
{
	static const enum request_kind steps[WORKER_PHASE_COUNT] = {
		[WORKER_PREPARED] = REQUEST_PREPARE, [WORKER_SUSPENDED] = REQUEST_CREATE, [WORKER_ENROLLED] = REQUEST_ENROLL,
		[WORKER_LAUNCHED] = REQUEST_LAUNCH,  [WORKER_EXITED] = REQUEST_OBSERVE,  [WORKER_CLEANED] = REQUEST_CLEANUP,
	};
	const struct channel_message parts = {
		.document = side->plan->canonical,
		.document_length = side->plan->canonical_length,
		.fds = {capture_spool_fd(side->standard_output), capture_notify_fd(side->standard_output),
	                capture_spool_fd(side->standard_error), capture_notify_fd(side->standard_error), side->store_dir},
		.fd_count = PREPARE_FDS,
	};
	side_come_to(side, WORKER_OPENED);
	for (int phase = WORKER_PREPARED; phase <= (int)last; phase++) {
		struct request request = {.kind = steps[phase], .deadline_ns = INT64_MAX, .lease_ends_at_ns = INT64_MAX};
		static struct reply reply;
		struct err err = ERR_INIT;
		id_new("led", request.identity.ledger_id);
		id_new("bnd", request.identity.boundary_id);
		assert_int_equal(worker_ask(side->worker, &request, phase == WORKER_PREPARED ? &parts : NULL, &err), 0);
		assert_int_equal(worker_answer(side->worker, request.kind, &reply, &err), 0);
		assert_int_equal(side->worker->phase, phase);
	}
}

/* Whatever is not in the table ends the worker, and its unit with it. */
static void every_request_out_of_its_phase_ends_the_worker(void **state)
{
	static const char *const logs[] = {
		"open free ",
		"open kill cleanup free ",
		"open prepare kill cleanup free ",
		"open prepare create kill cleanup free ",
		"open prepare create enroll kill cleanup free ",
		"open prepare create enroll launch kill cleanup free ",
		"open prepare create enroll launch observe kill cleanup free ",
		"open prepare create enroll launch observe cleanup ",
	};
	struct side *side = *state;
	int breaches = 0;
	for (int phase = WORKER_IDLE; phase < WORKER_PHASE_COUNT; phase++)
		for (int kind = 0; kind < REQUEST_COUNT; kind++) {
			if (protocol_allows((enum worker_phase)phase, (enum request_kind)kind))
				continue;
			come_alone_to(side, phase == WORKER_IDLE ? WORKER_OPENED : (enum worker_phase)phase);
			if (phase == WORKER_IDLE) {
				side->boundary->ops->free(side->boundary);
				side->boundary = NULL;
			}
			send_request(side, (enum request_kind)kind);
			ended_by(side, logs[phase]);
			breaches++;
		}
	assert_int_equal(breaches, 70);
}

static void a_malformed_message_ends_the_worker(void **state)
{
	struct side *side = *state;
	static const char identity[] = "{\"identity\":{\"boundary_id\":\"bnd-aaaaaaaaaaaaaaaa\",\"ledger_id\":\"led-aaaaaaaaaaaaaaaa\"},"
	                               "\"op\":\"prepare\"}";
	static char huge[CHANNEL_MESSAGE_MAX];
	const struct {
		const char *text;
		size_t length, fd_count;
	} breaches[] = {
		{"x", 1, 0},
		{"{\"op\":\"kill\"}", 13, 1},           /* a descriptor that nobody asked for */
		{"{\"op\":\"kill\"}\0x", 15, 0},        /* a document likewise */
		{identity, sizeof(identity) - 1, 0},    /* without descriptors */
		{identity, sizeof(identity) - 1, PREPARE_FDS}, /* without a plan */
		{identity, sizeof(identity), PREPARE_FDS - 1},
		{huge, sizeof(huge), 0},
	};
	for (size_t i = 0; i < sizeof(breaches) / sizeof(breaches[0]); i++) {
		side_come_to(side, WORKER_OPENED);
		send_raw(side, breaches[i].text, breaches[i].length, breaches[i].fd_count);
		ended_by(side, "open kill cleanup free ");
	}
}

/* A worker that is a process which does nothing, and an end of the channel that the test speaks through. */
static struct worker *pose_as_worker(struct channel *ret_other)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	struct err err = ERR_INIT;
	int ends[2];
	assert_int_equal(channel_pair(ends, &err), 0);
	assert_int_equal(channel_init(&worker->channel, ends[0], &err), 0);
	assert_int_equal(channel_init(ret_other, ends[1], &err), 0);
	worker->pid = fork();
	if (worker->pid == 0)
		for (;;)
			pause();
	worker->pidfd = pidfd_open(worker->pid, 0);
	worker->interrupts = -1;
	worker->under_way = REQUEST_COUNT;
	return worker;
}

static void a_worker_that_says_what_it_may_not_is_killed(void **state)
{
	const char *answers[] = {"{\"op\":\"launch\"}", "{\"op\":\"open\",\"event\":{}}", "open", "{\"at_ns\":1,\"op\":\"open\"}"};
	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct channel other;
		struct worker *worker = pose_as_worker(&other);
		const struct channel_message message = {.text = answers[i], .length = strlen(answers[i])};
		static struct reply reply;
		struct err err = ERR_INIT;
		bool honest = i == 3;
		assert_int_equal(worker_ask(worker, &(struct request){.kind = REQUEST_OPEN}, NULL, &err), 0);
		assert_int_equal(channel_send(&other, &message, &err), 0);
		assert_int_equal(worker_answer(worker, REQUEST_OPEN, &reply, &err), honest ? 0 : ERR_LOST);
		assert_true(worker->lost == !honest && worker->reaped == !honest);
		if (honest)
			kill(worker->pid, SIGKILL);
		channel_done(&other);
		worker_free(worker);
	}
}

static void a_plan_that_is_none_is_an_error_of_prepare(void **state)
{
	struct side *side = *state;
	struct plan plan = *side->plan;
	const struct plan *whole = side->plan;
	struct err err = ERR_INIT;
	plan.canonical_length--;
	side_come_to(side, WORKER_OPENED);
	side->plan = &plan;
	assert_true(side_step(side, WORKER_PREPARED, &err) < 0);
	assert_false(side->worker->lost);
	side->plan = (struct plan *)(uintptr_t)whole;
}

/* A keeper of its own process: comes to `launched`, tells the worker's pid, and waits for its death. */
static _Noreturn void be_a_keeper(struct side *side, int tell, bool observes)
{
	struct boundary_event event;
	side_come_to(side, WORKER_LAUNCHED);
	(void)!write(tell, &side->worker->pid, sizeof(side->worker->pid));
	if (observes)
		side->boundary->ops->observe(side->boundary, INT64_MAX, &event, NULL);
	for (;;)
		pause();
}

static void keeper_dies(struct side *side, bool observes, bool stopped)
{
	int ends[2];
	pid_t worker = -1;
	struct pollfd output = {.fd = capture_notify_fd(side->standard_output), .events = POLLIN};
	uint64_t growth;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t keeper = fork();
	if (keeper == 0)
		be_a_keeper(side, ends[1], observes);
	assert_int_equal(read(ends[0], &worker, sizeof(worker)), sizeof(worker));
	int pidfd = pidfd_open(worker, 0);
	assert_true(pidfd >= 0);
	if (observes) {
		assert_int_equal(poll(&output, 1, -1), 1);
		assert_int_equal(read(output.fd, &growth, sizeof(growth)), sizeof(growth));
	}
	if (stopped)
		kill(worker, SIGSTOP);
	kill(keeper, SIGKILL);
	assert_int_equal(waitpid(keeper, NULL, 0), keeper);
	assert_int_equal(await_end(pidfd), CLD_EXITED * 1000 + 1); /* it is our child now: we are the subreaper */
	assert_string_equal(side->fake->log, observes ? "open prepare create enroll launch observe kill cleanup free "
	                                              : "open prepare create enroll launch kill cleanup free ");
	close(pidfd);
	close(ends[0]);
	close(ends[1]);
}

static void a_worker_whose_keeper_dies_kills_its_unit_and_exits(void **state)
{
	struct side *side = *state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	keeper_dies(side, false, false);
}

static void also_while_it_observes(void **state)
{
	struct side *side = *state;
	side->fake->observe_blocks = true;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	keeper_dies(side, true, false);
}

static void also_when_it_was_stopped(void **state)
{
	struct side *side = *state;
	side->fake->observe_blocks = true;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	keeper_dies(side, true, true);
}

/* An order that is still in the channel when the keeper dies is not begun: another may have cleaned up by then. */
static void nothing_is_begun_for_a_dead_keeper(void **state)
{
	struct side *side = *state;
	struct err err = ERR_INIT;
	int status;
	side_come_to(side, WORKER_ENROLLED);
	kill(side->worker->pid, SIGSTOP);
	assert_int_equal(waitpid(side->worker->pid, &status, WUNTRACED), side->worker->pid);
	assert_int_equal(worker_ask(side->worker, &(struct request){.kind = REQUEST_LAUNCH, .lease_ends_at_ns = INT64_MAX}, NULL, &err), 0);
	shutdown(side->worker->channel.fd, SHUT_RDWR);
	kill(side->worker->pid, SIGCONT);
	ended_by(side, "open prepare create enroll kill cleanup free ");
}

static int make_recording(void *context, const char *profile, int wake_fd, struct boundary_provider **ret, struct err *err)
{
	static const struct recording_event events[] = {
		{.at_ms = 1, .happening = RECORDING_OUTPUT, .stream = 1, .text = "abc", .bytes = 9},
		{.at_ms = 2, .happening = RECORDING_FORK},
		{.at_ms = 5, .happening = RECORDING_EXIT, .status = 3},
	};
	static const struct recording_script script = {.events = events, .event_count = 3};
	static struct boundary_provider provider; /* in the worker: it ends with the process */
	struct recording_world *world = NULL;
	(void)context;
	(void)profile;
	(void)wake_fd;
	int result = recording_world_new(&world, err);
	if (result < 0)
		return result;
	recording_world_script(world, &script);
	provider = recording_provider(world);
	*ret = &provider;
	return 0;
}

static void the_recording_boundary_lives_in_a_worker_as_it_does_here(void **state)
{
	struct side *side = *state;
	const struct provider_factory factory = {.make = make_recording};
	struct boundary_event event;
	struct boundary_drain drain;
	struct boundary_usage usage;
	struct capture_state captured;
	struct err err = ERR_INIT;
	assert_int_equal(worker_spawn("recording", &factory, &side->worker, &err), 0);
	for (int phase = WORKER_OPENED; phase <= WORKER_LAUNCHED; phase++)
		assert_int_equal(side_step(side, (enum worker_phase)phase, &err), 0);
	const struct boundary_ops *ops = side->boundary->ops;
	assert_int_equal(ops->observe(side->boundary, INT64_MAX, &event, &err), 0);
	assert_true(event.kind == BOUNDARY_MAIN_EXITED && event.how == BOUNDARY_EXITED && event.status == 3);
	assert_int_equal(event.descendants_alive, 1);
	assert_int_equal(ops->drain(side->boundary, &drain, &err), 0);
	capture_get_state(side->standard_output, &captured);
	assert_true(captured.total_bytes == 9 && captured.drained);
	assert_int_equal(ops->cleanup(side->boundary, &usage, &err), 0);
	assert_int_equal(usage.survivors_killed, 1);
	assert_int_equal(ops->verify_empty(side->boundary, &err), 0);
}

static void a_profile_with_too_long_a_name_is_none(void **unused)
{
	struct worker *worker = NULL;
	struct err err = ERR_INIT;
	const struct provider_factory factory = {.make = make_recording};
	(void)unused;
	assert_int_equal(worker_spawn("a_name_longer_than_any_profile", &factory, &worker, &err), ERR_UNSUPPORTED);
	assert_null(worker);
	worker_free(NULL);
}

#define WORKER_TEST(name) cmocka_unit_test_setup_teardown(name, side_setup, side_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKER_TEST(the_whole_way),
		WORKER_TEST(a_worker_starts_with_nothing_but_its_channel),
		WORKER_TEST(a_worker_serves_one_boundary_after_the_other),
		WORKER_TEST(what_the_factory_cannot_make_is_told_at_the_opening),
		WORKER_TEST(a_step_that_fails_leads_to_no_launch),
		WORKER_TEST(nothing_is_begun_when_the_lease_is_over),
		WORKER_TEST(a_prepare_that_outlasts_its_lease_is_gone_on_from_under_the_next),
		WORKER_TEST(a_worker_goes_on_by_itself_as_far_as_nothing_is_decided),
		WORKER_TEST(what_it_does_unasked_ends_before_something_else_is_done),
		WORKER_TEST(a_step_that_fails_is_the_last_of_those_done_unasked),
		WORKER_TEST(what_a_dead_worker_has_answered_is_worth_nothing),
		WORKER_TEST(a_worker_killed_in_any_phase_is_lost_and_nothing_hangs),
		WORKER_TEST(a_worker_killed_while_it_observes_is_an_event),
		WORKER_TEST(an_interrupt_wakes_a_blocked_observe),
		WORKER_TEST(an_interrupt_before_observe_is_not_lost),
		WORKER_TEST(an_interrupt_that_crosses_another_event_is_the_next_ones),
		WORKER_TEST(a_worker_that_does_not_answer_is_killed),
		WORKER_TEST(a_stopped_worker_is_killed),
		WORKER_TEST(every_request_out_of_its_phase_ends_the_worker),
		WORKER_TEST(a_malformed_message_ends_the_worker),
		cmocka_unit_test(a_worker_that_says_what_it_may_not_is_killed),
		WORKER_TEST(a_plan_that_is_none_is_an_error_of_prepare),
		WORKER_TEST(a_worker_whose_keeper_dies_kills_its_unit_and_exits),
		WORKER_TEST(also_while_it_observes),
		WORKER_TEST(also_when_it_was_stopped),
		WORKER_TEST(nothing_is_begun_for_a_dead_keeper),
		WORKER_TEST(the_recording_boundary_lives_in_a_worker_as_it_does_here),
		cmocka_unit_test(a_profile_with_too_long_a_name_is_none),
	};
	return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
