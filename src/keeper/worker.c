/* worker.c - the worker itself: serves one boundary at a time over its channel, until its keeper is gone. */
#include "keeper/worker.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "artifact/list.h"
#include "artifact/store.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "capture/capture.h"

enum { EXIT_CODE_DONE = 0, EXIT_CODE_ABANDONED = 1 };

struct server {
	struct channel channel;
	enum worker_phase phase;
	struct boundary_provider *provider;
	struct err unavailable; /* why there is no provider */

	/* One boundary, and what its spec borrows. */
	struct boundary *boundary;
	struct plan *plan;
	struct store *store;
	struct capture *standard_output, *standard_error;
};

static void close_boundary(struct server *server)
{
	if (server->boundary)
		server->boundary->ops->free(server->boundary);
	plan_free(server->plan);
	store_free(server->store);
	capture_free(server->standard_output);
	capture_free(server->standard_error);
	server->boundary = NULL;
	server->plan = NULL;
	server->store = NULL;
	server->standard_output = server->standard_error = NULL;
}

static int open_boundary(struct server *server, struct err *err)
{
	if (!server->provider) {
		*err = server->unavailable;
		return err->code;
	}
	return server->provider->ops->open(server->provider->context, &server->boundary, err);
}

/* Attaches a capture to the two descriptors of a stream and takes them over. */
static int attach(struct channel_message *message, enum prepare_fd spool, int64_t limit_bytes, enum overflow_mode mode,
                  struct capture **ret, struct err *err)
{
	int notify = spool + 1;
	int result = capture_attach(message->fds[spool], message->fds[notify], limit_bytes, mode, ret, err);
	if (result == 0) {
		fd_take(&message->fds[spool]);
		fd_take(&message->fds[notify]);
	}
	return result;
}

static int prepare(struct server *server, const struct request *request, struct channel_message *message, struct reply *reply,
                   struct err *err)
{
	int result = plan_parse(message->document, message->document_length, &server->plan, err);
	if (result < 0)
		return result;
	const struct plan_limits *limits = &server->plan->limits;
	result = attach(message, PREPARE_STDOUT_SPOOL, limits->stdout_bytes, limits->on_overflow, &server->standard_output, err);
	if (result == 0)
		result = attach(message, PREPARE_STDERR_SPOOL, limits->stderr_bytes, limits->on_overflow, &server->standard_error, err);
	if (result == 0)
		result = store_open(message->fds[PREPARE_STORE], &server->store, err);
	if (result == 0 && server->plan->required_output_count > 0 && !server->boundary->ops->collect)
		result = err_set(err, ERR_UNSUPPORTED, "this boundary has no outputs");
	if (result == 0)
		result = FAULT_ERR("worker.preparing", err);
	if (result < 0)
		return result;
	const struct boundary_spec spec = {
		.identity = request->identity,
		.plan = server->plan,
		.store = server->store,
		.standard_output = server->standard_output,
		.standard_error = server->standard_error,
	};
	return server->boundary->ops->prepare(server->boundary, &spec, &reply->evidence, err);
}

static int observe(struct boundary *boundary, int64_t deadline_ns, struct boundary_event *ret, struct err *err)
{
	int result = boundary->ops->observe(boundary, deadline_ns, ret, err);
	if (result == 0 && ret->kind == BOUNDARY_MAIN_EXITED)
		result = FAULT_ERR("worker.exited", err);
	return result;
}

/* The counters go along whatever came of it: what was captured so far is a fact. */
static int drain(struct server *server, struct reply *reply, struct err *err)
{
	int result = server->boundary->ops->drain(server->boundary, &reply->drain, err);
	capture_get_state(server->standard_output, &reply->standard_output);
	capture_get_state(server->standard_error, &reply->standard_error);
	return result;
}

static int cleanup(struct boundary *boundary, struct boundary_usage *ret, struct err *err)
{
	int result = FAULT_ERR("worker.cleaning", err);
	return result < 0 ? result : boundary->ops->cleanup(boundary, ret, err);
}

/* A boundary without outputs has collected nothing. */
static int collect(struct boundary *boundary, int list_fd, struct err *err)
{
	ARTIFACT_LIST_AUTO struct artifact_list list = {0};
	BUF_AUTO struct buf text = BUF_INIT(ARTIFACT_LIST_TEXT_MAX);
	int result = FAULT_ERR("worker.collecting", err);
	if (result == 0 && boundary->ops->collect)
		result = boundary->ops->collect(boundary, &list, err);
	if (result == 0)
		result = artifact_list_write(&list, &text, err);
	if (result < 0)
		return result;
	result = fd_write_all(list_fd, text.data, text.len);
	return result < 0 ? err_sys(err, -result, "hand over the list of artifacts") : 0;
}

/* Right before something is made or started: is it still our keeper's to begin? It may have been stopped for longer than its lease, or be
 * dead, and another may have verified by now that nothing is there. */
static int may_begin(const struct server *server, const struct request *request, struct err *err)
{
	struct pollfd keeper = {.fd = server->channel.fd, .events = POLLRDHUP};
	if (!protocol_begins(request->kind))
		return 0;
	if (poll(&keeper, 1, 0) != 0)
		return err_set(err, ERR_LOST, "the keeper is gone");
	if (clock_boot_ns() >= request->lease_ends_at_ns)
		return err_set(err, ERR_FENCED, "the lease is over");
	return 0;
}

/* Does what is asked; the code of what came of it, with its text in err. */
static int perform(struct server *server, const struct request *request, struct channel_message *message, struct reply *reply,
                   struct err *err)
{
	struct boundary *boundary = server->boundary;
	int result = may_begin(server, request, err);
	if (result < 0)
		return result;
	switch (request->kind) {
	case REQUEST_OPEN:
		return open_boundary(server, err);
	case REQUEST_PREPARE:
		return prepare(server, request, message, reply, err);
	case REQUEST_CREATE:
		result = boundary->ops->create_suspended(boundary, &reply->evidence, err);
		return result < 0 ? result : FAULT_ERR("worker.suspended", err);
	case REQUEST_ENROLL:
		result = boundary->ops->enroll(boundary, &reply->evidence, err);
		return result < 0 ? result : FAULT_ERR("worker.enrolled", err);
	case REQUEST_LAUNCH:
		result = boundary->ops->launch(boundary, err);
		(void)FAULT("worker.launched");
		return result;
	case REQUEST_OBSERVE:
		return observe(boundary, request->deadline_ns, &reply->event, err);
	case REQUEST_TERMINATE:
		return boundary->ops->terminate(boundary, err);
	case REQUEST_KILL:
		return boundary->ops->kill(boundary, err);
	case REQUEST_DRAIN:
		return drain(server, reply, err);
	case REQUEST_CLEANUP:
		return cleanup(boundary, &reply->usage, err);
	case REQUEST_VERIFY:
		return boundary->ops->verify_empty(boundary, err);
	case REQUEST_COLLECT:
		return collect(boundary, message->fds[COLLECT_LIST], err);
	case REQUEST_FREE:
		close_boundary(server);
		return 0;
	case REQUEST_INTERRUPT: /* did its work when it arrived: it made the channel readable */
	case REQUEST_COUNT:
		return 0;
	}
	return 0;
}

static int send_reply(struct server *server, const struct reply *reply)
{
	BUF_AUTO struct buf text = BUF_INIT(CHANNEL_MESSAGE_MAX);
	int result = reply_encode(reply, &text, NULL);
	if (result < 0)
		return result;
	const struct channel_message message = {.text = text.data, .length = text.len};
	return channel_send(&server->channel, &message, NULL);
}

/* Is this message one that may come now, with the parts that belong to it? */
static bool allowed(const struct server *server, const struct request *request, const struct channel_message *message)
{
	bool prepares = request->kind == REQUEST_PREPARE;
	return protocol_allows(server->phase, request->kind) && message->fd_count == protocol_fds(request->kind) &&
	       (message->document != NULL) == prepares;
}

/* One step and its answer. */
static int do_step(struct server *server, const struct request *request, struct channel_message *message, struct reply *reply)
{
	*reply = (struct reply){.kind = request->kind};
	bool succeeded = perform(server, request, message, reply, &reply->error) == 0;
	reply->at_ns = clock_mono_ns();
	if (protocol_begun(reply))
		server->phase = protocol_next(server->phase, request->kind, succeeded,
		                              request->kind == REQUEST_OBSERVE && succeeded ? &reply->event : NULL);
	return protocol_replies(request->kind) ? send_reply(server, reply) : 0;
}

/* A keeper that is gone shows in the answer that cannot be sent: then nothing more is begun. */
static int do_what_follows(struct server *server, int64_t lease_ends_at_ns, struct reply *reply)
{
	struct channel_message nothing = {0};
	int result = 0;
	for (enum request_kind then; result == 0 && (then = protocol_then(reply)) != REQUEST_COUNT;)
		result = do_step(server, &(struct request){.kind = then, .lease_ends_at_ns = lease_ends_at_ns}, &nothing, reply);
	return result;
}

/* One request. A negative code ends the worker. */
static int serve_one(struct server *server)
{
	struct channel_message message = {0};
	struct request request;
	struct reply reply;
	int result = channel_receive(&server->channel, &message, NULL);
	if (result < 0)
		return result;
	result = request_decode(message.text, message.length, &request, NULL);
	if (result == 0 && !allowed(server, &request, &message))
		result = ERR_PROTOCOL;
	if (result < 0) {
		channel_message_done(&message);
		return result;
	}
	result = do_step(server, &request, &message, &reply);
	channel_message_done(&message);
	if (result == 0 && request.go_on)
		result = do_what_follows(server, request.lease_ends_at_ns, &reply);
	if (request.kind == REQUEST_OPEN && server->phase == WORKER_OPENED && server->provider->ops->ahead)
		server->provider->ops->ahead(server->provider->context); /* the keeper accepts the run meanwhile */
	return result;
}

/* The keeper is gone, or says what it may not say. R7: no further effect but to end what was begun. */
static _Noreturn void leave(struct server *server)
{
	struct boundary_usage usage;
	if (server->phase == WORKER_IDLE || server->phase == WORKER_CLEANED)
		_exit(EXIT_CODE_DONE);
	server->boundary->ops->kill(server->boundary, NULL);
	server->boundary->ops->cleanup(server->boundary, &usage, NULL);
	close_boundary(server);
	_exit(EXIT_CODE_ABANDONED);
}

_Noreturn void worker_serve(int fd, const char *profile, const struct provider_factory *factory)
{
	struct server server = {.phase = WORKER_IDLE};
	if (channel_init(&server.channel, fd, NULL) < 0)
		_exit(EXIT_CODE_ABANDONED);
	factory->make(factory->context, profile, fd, &server.provider, &server.unavailable);
	while (serve_one(&server) == 0)
		continue;
	leave(&server);
}
