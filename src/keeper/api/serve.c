/* serve.c - a thread of the API: takes one connection's question at a time and lets its operation answer. */
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "keeper/api/api_internal.h"

static const struct operation *const operations[] = {
	&operation_submit,    &operation_list,     &operation_run,    &operation_cancel,       &operation_logs,
	&operation_artifacts, &operation_artifact, &operation_events, &operation_object_begin, &operation_object_seal,
	&operation_tree_seal, &operation_workers,  &operation_recover, &operation_health,      &operation_readiness,
	&operation_metrics,
};

enum { OPERATION_COUNT = sizeof(operations) / sizeof(operations[0]), KEYS_MAX = 8 };

void call_done(struct call *call)
{
	json_decref(call->arguments);
	capture_free(call->capture);
	reply_done(&call->reply);
	*call = CALL_NONE;
}

static const struct operation *find_operation(const char *name)
{
	for (size_t i = 0; name && i < OPERATION_COUNT; i++)
		if (strcmp(operations[i]->name, name) == 0)
			return operations[i];
	return NULL;
}

static int check_keys(const struct operation *operation, const json_t *arguments, struct err *err)
{
	const char *keys[KEYS_MAX + 2] = {"op"};
	struct json_at root;
	for (size_t i = 0; operation->keys && operation->keys[i] && i < KEYS_MAX; i++)
		keys[i + 1] = operation->keys[i];
	json_at_root(arguments, &root);
	return json_only_keys(&root, keys, err);
}

/* The front is not trusted: a question that it may not ask ends the connection. */
static int begin(struct api *api, struct connection *connection, struct channel_message *message, struct err *err)
{
	struct call *call = &connection->call;
	*call = (struct call){
		.api = api,
		.peer = &connection->peer,
		.document = message->document ? message->document : "",
		.document_length = message->document_length,
		.fd = message->fd_count > 0 ? message->fds[0] : -1,
		.spool = &connection->spool,
		.woken = true,
		.again_ms = API_LOOK_AGAIN_MS,
		.reply = {.body = BUF_INIT(API_BODY_MAX), .fd = -1},
	};
	int result = json_parse(message->text, message->length, &call->arguments, err);
	if (result)
		return result;
	call->operation = find_operation(json_string_value(json_object_get(call->arguments, "op")));
	return call->operation ? check_keys(call->operation, call->arguments, err)
	                       : err_set(err, ERR_PROTOCOL, "the front asks for what there is not");
}

static void finish(struct api *api, struct connection *connection, int result, const struct err *error)
{
	int sent = reply_send(connection, result, error, NULL);
	call_done(&connection->call);
	if (sent)
		schedule_drop(api, connection);
	else
		schedule_idle(api, connection);
}

static void carry_on(struct api *api, struct connection *connection)
{
	struct err err = ERR_INIT;
	struct call *call = &connection->call;
	int result = call->operation->handle(call, &err);
	call->document = "";
	call->document_length = 0;
	call->fd = -1;
	if (result == CALL_PARK)
		schedule_park(api, connection);
	else
		finish(api, connection, result, &err);
}

static void serve_new(struct api *api, struct connection *connection, char *incoming)
{
	struct channel channel = {.fd = connection->channel, .incoming = incoming};
	struct channel_message message;
	struct err err = ERR_INIT;
	if (channel_receive(&channel, &message, NULL)) {
		schedule_drop(api, connection);
		return;
	}
	int result = begin(api, connection, &message, &err);
	if (result) {
		api->options.core->log(api->options.core->context, err.text);
		call_done(&connection->call);
		schedule_drop(api, connection);
	} else {
		carry_on(api, connection);
	}
	channel_message_done(&message);
}

void *serve_run(void *context)
{
	struct api *api = context;
	struct connection *connection;
	char *incoming = malloc(CHANNEL_MESSAGE_MAX + 1);
	while (incoming && (connection = schedule_next(api)))
		if (connection->call.operation)
			carry_on(api, connection);
		else
			serve_new(api, connection, incoming);
	free(incoming);
	return NULL;
}
