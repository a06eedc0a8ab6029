/* worker.h - a worker as its keeper holds it, and the loop that it runs itself.
 *
 * The keeper's side asks and awaits answers, each within a time; a worker that dies, says what it may not say, or does not answer in time is
 * killed and `lost` for good. It never takes its keeper along. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "keeper/channel.h"
#include "keeper/keeper.h"
#include "keeper/protocol.h"

enum {
	WORKER_PROFILE_SIZE = 16,
	WORKER_ANSWER_MS = 30 * 1000, /* for what should take milliseconds: a worker that takes longer is stuck */
};

struct worker {
	struct channel channel;
	pid_t pid;
	int pidfd;
	int interrupts; /* eventfd, written by worker_interrupt */
	char profile[WORKER_PROFILE_SIZE];
	enum worker_phase phase; /* idle: no boundary is given out */
	bool goes_on;                /* it was told so */
	enum request_kind under_way; /* what it does unasked, and will answer; REQUEST_COUNT: nothing */
	void (*idle)(void *context); /* called once while a unit is created, when there is nothing to do but wait; NULL: none */
	void *idle_context;
	bool opening; /* REQUEST_OPEN was sent, its answer not yet read */
	bool dismissed; /* nothing can be asked any more */
	bool lost;
	bool reaped;
	bool adopted; /* the child of a nursery, which reaps it */
};

/* Runs in the child until its keeper is gone; fd is its end of the channel. */
_Noreturn void worker_serve(int fd, const char *profile, const struct provider_factory *factory);

/* Forks a process that serves this end of a channel, which stays the caller's as well; its pid. */
pid_t worker_fork(int fd, const char *profile, const struct provider_factory *factory, struct err *err);

/* Has a process that is ready to run not wait for this one, where another processor is allowed. */
void worker_start_at_once(pid_t pid);

/* A worker that somebody else forked, by the other end of its channel and its pidfd, which it takes over on success. */
int worker_adopt(const char *profile, int channel, int pidfd, struct worker **ret, struct err *err);

/* Lets an idle worker open its next boundary, and make ahead what needs no plan, before it is asked for: worker_spawn has done so. */
void worker_open_ahead(struct worker *worker);

/* Sends a request; text and kind are made from it, document and descriptors taken from `extra` (may be NULL). What the worker does already,
 * unasked, is not sent; the answers to what else it does so are awaited and dropped. ERR_STATE, with nothing sent, when the phase does not
 * allow it; ERR_LOST. */
int worker_ask(struct worker *worker, const struct request *request, const struct channel_message *extra, struct err *err);

/* Waits at most so long until there is something to await: an answer, or its death. */
bool worker_has_news(const struct worker *worker, int timeout_ms);

/* What worker_await saw. */
enum worker_news { WORKER_ANSWERED, WORKER_INTERRUPTED };

/* Waits until there is an answer, or with `interruptible` until worker_interrupt was called (which is then forgotten). ERR_LOST when the worker is
 * dead, whatever it has answered, or was killed because deadline_ns (CLOCK_MONOTONIC) passed. */
int worker_await(struct worker *worker, bool interruptible, int64_t deadline_ns, enum worker_news *ret, struct err *err);

/* Reads the answer to this kind of request and moves the phase on. 0 also when the answer is an error (ret->error). ERR_LOST. */
int worker_answer(struct worker *worker, enum request_kind kind, struct reply *ret, struct err *err);

/* Was worker_interrupt called since the last time? Then it is forgotten. */
bool worker_take_interrupt(struct worker *worker);

/* Nothing more will be asked: the worker goes while its keeper does the rest. worker_free reaps it. */
void worker_dismiss(struct worker *worker);

/* Reaps what a dead worker left to us as the subreaper: its guest inits, which end by themselves when it is gone. Never waits. */
void worker_reap_orphans(void);
