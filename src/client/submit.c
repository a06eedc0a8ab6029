/* submit.c - `caisson submit`: sends the inputs, then the manifest, under a key that makes it safe to send again. */
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "client/key.h"
#include "client/reply.h"
#include "client/sources.h"
#include "print/output.h"
#include "print/page.h"

static int send_source(struct client *client, const struct source *source, struct http_call *call, struct err *err)
{
	struct losses losses = {0};

	for (;;) {
		int result = sources_call(source, call, err);

		if (result == 0)
			result = http_perform(client->http, call, err);
		if (!client_may_retry(call))
			return result;
		result = client_lost(client, call, &losses, err);
		if (result)
			return result;
	}
}

static int send_whole(struct client *client, json_t *input, struct err *err)
{
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	struct source source;
	int result = sources_open(input, true, &source, err);

	if (result)
		return result;
	do {
		result = send_source(client, &source, &call, err);
		if (result == 0)
			result = sources_settle(&source, input, &call, err);
	} while (result > 0);
	sources_close(&source);
	return result;
}

static int send_sources(struct client *client, json_t *manifest, struct err *err)
{
	char path[JSON_PATH_MAX];

	for (json_t *input; (input = sources_next(manifest, path));) {
		int result = send_whole(client, input, err);

		if (result)
			return err_context(err, result, "%s.source", path);
	}
	return 0;
}

static int send_manifest(struct client *client, char ret_run_id[static ID_SIZE], struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(REQUEST_MAX_BYTES);
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	JSON_AUTO json_t *document = NULL;
	char key[ID_SIZE];
	int result = client->request->key ? key_check(client->request->key, err) : 0;

	if (result)
		return err_context(err, result, "--key");
	result = json_canonical(client->request->manifest, &text, err);

	if (result)
		return result;
	id_new("key", key);
	http_call_set(&call, "POST", "/v1/runs");
	call.idempotency_key = client->request->key ? client->request->key : key;
	call.body = text.data;
	call.body_length = text.len;
	result = client_ask(client, &call, &document, err);
	if (result)
		return result;

	const char *run = json_string_value(json_object_get(document, "run"));

	if (!run || !id_valid("run", run))
		return err_set(err, ERR_PROTOCOL, "the keeper's answer names no run");
	memcpy(ret_run_id, run, ID_SIZE);
	return 0;
}

static int say(const struct client *client, const char *run_id, struct err *err)
{
	PAGE_AUTO struct page page = PAGE_INIT;

	if (client->request->json)
		page_add(&page, "{\"run\":\"%s\"}\n", run_id);
	else
		page_add(&page, "%s\n", run_id);
	return page_print(&page, STDOUT_FILENO, err);
}

int client_submit(struct client *client, struct err *err)
{
	char run_id[ID_SIZE];
	int result = send_sources(client, client->request->manifest, err);

	if (result == 0)
		result = send_manifest(client, run_id, err);
	if (result)
		return result;
	if (!client->request->wait || !client->request->json)
		result = say(client, run_id, err);
	if (result == 0 && !client->request->wait && output_lost())
		result = err_sys(err, output_lost(), "%s is submitted; standard output", run_id);
	if (result || !client->request->wait)
		return result;
	return client_await(client, run_id, err);
}
