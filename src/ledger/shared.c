/* shared.c - the ledger's thread: takes what waits, does the writes as one batch, and wakes whoever asked. What only reads goes past it, if
 * there is a reader. */
#include "ledger/shared.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/shared_internal.h"

enum { BATCH_MAX = 256 }; /* calls in one transaction: so that the first of many does not wait for all of them */

/* In order of arrival. */
struct call_list {
	struct shared_call *first, **end;
	size_t count;
};

struct shared {
	struct ledger base; /* first: the vtable's functions cast back */
	struct ledger *inner;
	struct ledger *reader; /* another connection to the same; NULL: none */
	pthread_mutex_t reading; /* held by who uses it */
	ledger_changed_fn changed;
	void *context;
	pid_t pid;
	pthread_t thread;
	struct shared_call *current; /* of the ledger's thread: what is being done */

	pthread_mutex_t mutex; /* of all below */
	pthread_cond_t arrived, left;
	struct call_list waiting;
	size_t inside; /* callers that use this structure */
	bool stopping;
	struct ledger_share_counts counts;
};

static struct shared *shared_of(struct ledger *ledger)
{
	return (struct shared *)ledger;
}

static void list_init(struct call_list *list)
{
	*list = (struct call_list){.end = &list->first};
}

static void list_add(struct call_list *list, struct shared_call *call)
{
	call->next = NULL;
	*list->end = call;
	list->end = &call->next;
	list->count++;
}

static struct shared_call *list_take(struct call_list *list)
{
	struct shared_call *call = list->first;

	if (!call)
		return NULL;
	list->first = call->next;
	list->count--;
	if (!list->first)
		list->end = &list->first;
	return call;
}

/* What is done together. */
struct work {
	struct call_list reads, writes, durable;
};

/* Waits for work, and takes all of it. False: there is none, and there will be none. */
static bool take_work(struct shared *shared, struct work *work)
{
	struct shared_call *call;
	size_t count = 0;

	list_init(&work->reads);
	list_init(&work->writes);
	list_init(&work->durable);
	pthread_mutex_lock(&shared->mutex);
	while (!shared->waiting.first && !shared->stopping)
		pthread_cond_wait(&shared->arrived, &shared->mutex);
	for (; count < BATCH_MAX && (call = list_take(&shared->waiting)); count++)
		list_add(!call->writes ? &work->reads : call->durable ? &work->durable : &work->writes, call);
	shared->counts.writes += (int64_t)(work->writes.count + work->durable.count);
	pthread_mutex_unlock(&shared->mutex);
	return count > 0;
}

static void count_commit(struct shared *shared, bool durable)
{
	pthread_mutex_lock(&shared->mutex);
	shared->counts.commits++;
	shared->counts.durable += durable;
	pthread_mutex_unlock(&shared->mutex);
}

static void note_run(void *context, const char *run_id)
{
	struct shared *shared = context;

	if (shared->current && !shared->current->silent)
		memcpy(shared->current->run_id, run_id, strnlen(run_id, ID_SIZE - 1) + 1);
}

static void perform(struct shared *shared, struct shared_call *call)
{
	shared->current = call;
	call->result = call->run(shared->inner, call, &call->err);
	shared->current = NULL;
}

/* Its thread goes on, and with it goes the call: nothing of it may be touched behind the lock. */
static void end_call(struct shared *shared, struct shared_call *call)
{
	pthread_mutex_lock(&shared->mutex);
	call->done = true;
	pthread_cond_signal(&call->ended);
	pthread_mutex_unlock(&shared->mutex);
}

static void do_reads(struct shared *shared, struct call_list *reads)
{
	struct shared_call *call;

	while ((call = list_take(reads))) {
		perform(shared, call);
		end_call(shared, call);
	}
}

/* The error of the whole is that of each call which would have succeeded. */
static void fail_all(struct call_list *writes, int result, const struct err *err)
{
	for (struct shared_call *call = writes->first; call; call = call->next)
		if (call->result == 0) {
			call->result = result;
			call->err = *err;
		}
}

static void perform_batch(struct shared *shared, struct call_list *writes, bool durable)
{
	const struct ledger_ops *ops = shared->inner->ops;
	struct err err = ERR_INIT;
	int result = ops->batch_begin(shared->inner, durable, &err);

	if (result == 0) {
		for (struct shared_call *call = writes->first; call; call = call->next)
			perform(shared, call);
		result = ops->batch_end(shared->inner, &err);
	}
	if (result < 0)
		fail_all(writes, result, &err);
}

/* One alone is its own transaction: that is cheaper than a batch of it. */
static void do_writes(struct shared *shared, struct call_list *writes, bool durable)
{
	char run_ids[BATCH_MAX][ID_SIZE];
	size_t run_count = 0;
	struct shared_call *call;

	if (!writes->first)
		return;
	if (writes->count == 1)
		perform(shared, writes->first);
	else
		perform_batch(shared, writes, durable);
	count_commit(shared, durable);
	while ((call = list_take(writes))) {
		if (call->result == 0 && call->run_id[0])
			memcpy(run_ids[run_count++], call->run_id, ID_SIZE);
		end_call(shared, call);
	}
	for (size_t i = 0; shared->changed && i < run_count; i++)
		shared->changed(shared->context, run_ids[i]);
}

static void *serve(void *context)
{
	struct shared *shared = context;
	struct work work;

	/* What needs no disk does not wait for it. */
	while (take_work(shared, &work)) {
		do_reads(shared, &work.reads);
		do_writes(shared, &work.writes, false);
		do_writes(shared, &work.durable, true);
	}
	return NULL;
}

/* In the caller's own thread: it waits for no commit, and for nobody to be scheduled. What was committed before, it sees. */
static int read_at_once(struct shared *shared, struct shared_call *call, struct err *err)
{
	int r;

	if (pthread_mutex_lock(&shared->reading) != 0)
		return err_set(err, ERR_STATE, "ledger: called from a callback");
	r = call->run(shared->reader, call, err);
	pthread_mutex_unlock(&shared->reading);
	return r;
}

int shared_ask(struct ledger *ledger, struct shared_call *call, struct err *err)
{
	struct shared *shared = shared_of(ledger);

	if (pthread_equal(pthread_self(), shared->thread))
		return err_set(err, ERR_STATE, "ledger: called from its own thread");
	if (call->reads && shared->reader)
		return read_at_once(shared, call, err);
	pthread_cond_init(&call->ended, NULL);
	pthread_mutex_lock(&shared->mutex);
	shared->inside++;
	list_add(&shared->waiting, call);
	pthread_cond_signal(&shared->arrived);
	while (!call->done)
		pthread_cond_wait(&call->ended, &shared->mutex);
	if (--shared->inside == 0 && shared->stopping)
		pthread_cond_signal(&shared->left);
	pthread_mutex_unlock(&shared->mutex);
	pthread_cond_destroy(&call->ended);
	if (call->result < 0 && err)
		*err = call->err;
	return call->result;
}

const char *shared_id(struct ledger *ledger)
{
	struct ledger *inner = shared_of(ledger)->inner;

	return inner->ops->id(inner);
}

void ledger_share_count(struct ledger *ledger, struct ledger_share_counts *ret)
{
	struct shared *shared = shared_of(ledger);

	pthread_mutex_lock(&shared->mutex);
	*ret = shared->counts;
	ret->waiting = (int64_t)shared->waiting.count;
	pthread_mutex_unlock(&shared->mutex);
}

/* No signal is for this thread. */
static int start_thread(struct shared *shared, struct err *err)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&shared->thread, NULL, serve, shared);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r == 0 ? 0 : err_sys(err, r, "ledger: cannot start its thread");
}

static void shared_free(struct shared *shared)
{
	pthread_cond_destroy(&shared->left);
	pthread_cond_destroy(&shared->arrived);
	pthread_mutex_destroy(&shared->mutex);
	pthread_mutex_destroy(&shared->reading);
	free(shared);
}

void shared_close(struct ledger *ledger)
{
	struct shared *shared = shared_of(ledger);

	if (!shared || getpid() != shared->pid)
		return;
	pthread_mutex_lock(&shared->mutex);
	shared->stopping = true;
	pthread_cond_signal(&shared->arrived);
	pthread_mutex_unlock(&shared->mutex);
	pthread_join(shared->thread, NULL);
	/* All is done, but those who asked have still to wake up. */
	pthread_mutex_lock(&shared->mutex);
	while (shared->inside > 0)
		pthread_cond_wait(&shared->left, &shared->mutex);
	pthread_mutex_unlock(&shared->mutex);
	shared->inner->ops->watch(shared->inner, NULL, NULL);
	if (shared->reader)
		shared->reader->ops->close(shared->reader);
	shared->inner->ops->close(shared->inner);
	shared_free(shared);
}

/* A second lock by its holder is an error, not a wait without end. */
static void make_reading(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(mutex, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

int ledger_share(struct ledger *inner, struct ledger *reader, ledger_changed_fn changed, void *context, struct ledger **ret,
                 struct err *err)
{
	struct shared *shared;
	int r;

	if (!inner->ops->batch_begin || !inner->ops->batch_end || !inner->ops->watch)
		return err_set(err, ERR_UNSUPPORTED, "ledger: this store knows no batches");
	shared = malloc(sizeof *shared);
	if (!shared)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	*shared = (struct shared){.base.ops = &shared_ops, .inner = inner, .reader = reader, .changed = changed, .context = context,
	                          .pid = getpid()};
	make_reading(&shared->reading);
	list_init(&shared->waiting);
	pthread_mutex_init(&shared->mutex, NULL);
	pthread_cond_init(&shared->arrived, NULL);
	pthread_cond_init(&shared->left, NULL);
	inner->ops->watch(inner, note_run, shared);
	r = start_thread(shared, err);
	if (r < 0) {
		inner->ops->watch(inner, NULL, NULL);
		shared_free(shared);
		return r;
	}
	*ret = &shared->base;
	return 0;
}
