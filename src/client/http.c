/* http.c - libcurl over a unix socket.
 *
 * A keeper that dies in the middle of a reply must never look like one that gave a shorter one. libcurl takes the end of a
 * connection for the end of a reply that says no length, so a reply without a length, which the API does not have, counts as
 * lost. */
#include "client/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	CONNECT_MS = 10 * 1000,
	STORED_PER_MS_MIN = 8 * 1024, /* bytes: 8 MiB a second */
	FILE_MS_MAX = 10,
	REPLY_MS = 60 * 1000, /* for an answer, on top of what the keeper was asked to wait */
	URL_SIZE = HTTP_PATH_SIZE + 32,
	HEADER_SIZE = HTTP_KEY_SIZE + 32,
};

struct http {
	CURLM *multi;
	const char *socket_path;
	int active; /* calls that are under way */
};

struct http_transfer {
	CURL *easy;
	struct curl_slist *headers;
	struct hasher *hasher; /* of an upload */
	int stopped;           /* the negative err_code with which a callback ended it */
};

int http_new(const char *socket_path, struct http **ret, struct err *err)
{
	if (curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK)
		return err_set(err, ERR_INTERNAL, "libcurl does not start");

	struct http *http = calloc(1, sizeof(*http));

	if (http)
		http->multi = curl_multi_init();
	if (!http || !http->multi) {
		free(http);
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	}
	http->socket_path = socket_path;
	*ret = http;
	return 0;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	curl_multi_cleanup(http->multi);
	free(http);
	curl_global_cleanup();
}

static void free_transfer(struct http_transfer *transfer)
{
	if (!transfer)
		return;
	curl_easy_cleanup(transfer->easy);
	curl_slist_free_all(transfer->headers);
	hasher_free(transfer->hasher);
	free(transfer);
}

void http_call_done(struct http_call *call)
{
	buf_done(&call->reply);
	*call = HTTP_CALL_INIT;
}

void http_call_set(struct http_call *call, const char *method, const char *path, ...)
{
	va_list args;

	http_call_done(call);
	call->method = method;
	va_start(args, path);
	vsnprintf(call->path, sizeof(call->path), path, args);
	va_end(args);
}

static bool is_good(long status)
{
	return status >= 200 && status < 300;
}

static size_t take_bytes(char *bytes, size_t size, size_t count, void *context)
{
	struct http_call *call = context;
	long status = 0;

	count *= size;
	curl_easy_getinfo(call->transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	if (call->sink && is_good(status))
		call->transfer->stopped = call->sink(call->context, bytes, count);
	else
		call->transfer->stopped = buf_append(&call->reply, bytes, count, &call->err);
	return call->transfer->stopped ? 0 : count;
}

static size_t give_bytes(char *bytes, size_t size, size_t count, void *context)
{
	struct http_call *call = context;
	ssize_t got = 0;

	do
		got = read(call->body_fd, bytes, size * count);
	while (got < 0 && errno == EINTR);
	if (got < 0) {
		call->transfer->stopped = err_sys(&call->err, errno, "read");
		return CURL_READFUNC_ABORT;
	}
	hasher_add(call->transfer->hasher, bytes, (size_t)got);
	return (size_t)got;
}

static bool add_header(struct http_transfer *transfer, const char *name, const char *value)
{
	char line[HEADER_SIZE];

	if (!value)
		return true;
	if ((size_t)snprintf(line, sizeof(line), "%s: %s", name, value) >= sizeof(line))
		return false;

	struct curl_slist *longer = curl_slist_append(transfer->headers, line);

	if (longer)
		transfer->headers = longer;
	return longer;
}

static bool set_headers(struct http_call *call)
{
	struct http_transfer *transfer = call->transfer;

	/* Without "Expect:" libcurl would wait a second for a "100 Continue" that need not come. */
	return add_header(transfer, "Idempotency-Key", call->idempotency_key) &&
	       add_header(transfer, "Last-Event-ID", call->last_event_id) && add_header(transfer, "Expect", "") &&
	       add_header(transfer, "Content-Type", call->upload ? "application/octet-stream" : "application/json") &&
	       curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers) == CURLE_OK;
}

static bool set_body(struct http_call *call)
{
	CURL *easy = call->transfer->easy;

	if (call->upload) {
		call->transfer->hasher = hasher_new();
		return call->transfer->hasher && curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_bytes) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_READDATA, call) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->body_bytes) == CURLE_OK;
	}
	if (strcmp(call->method, "POST") == 0)
		return curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_length) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body ? call->body : "") == CURLE_OK;
	return true;
}

/* The environment's proxies are for other hosts than this socket. */
static bool set_call(const struct http *http, struct http_call *call)
{
	CURL *easy = call->transfer->easy;
	char url[URL_SIZE];

	if ((size_t)snprintf(url, sizeof(url), "http://caisson%s", call->path) >= sizeof(url))
		return false;
	return curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, http->socket_path) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK && curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http") == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, call->wait_ms < 0 ? 0L : (long)(call->wait_ms + REPLY_MS)) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_WRITEDATA, call) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_PRIVATE, call) == CURLE_OK && set_body(call) &&
	       curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method) == CURLE_OK && set_headers(call);
}

int http_call_upload(struct http_call *call, const char *path, int fd, int64_t bytes, int64_t stored, size_t files, struct err *err)
{
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "read it from its beginning");
	http_call_set(call, "PUT", "%s", path);
	call->upload = true;
	call->body_fd = fd;
	call->body_bytes = bytes;
	call->wait_ms = stored / STORED_PER_MS_MIN + (int64_t)files * FILE_MS_MAX;
	return 0;
}

int http_start(struct http *http, struct http_call *call, struct err *err)
{
	struct http_transfer *transfer = calloc(1, sizeof(*transfer));

	if (transfer)
		transfer->easy = curl_easy_init();
	call->transfer = transfer;
	call->result = 0;
	call->refused = call->end = false;
	call->status = 0;
	call->retry_after_ms = call->offset = -1;
	call->reply.len = 0;
	if (transfer && transfer->easy && set_call(http, call) && curl_multi_add_handle(http->multi, transfer->easy) == CURLM_OK) {
		http->active++;
		return 0;
	}
	call->transfer = NULL;
	free_transfer(transfer);
	return err_set(err, ERR_NO_MEMORY, "libcurl cannot make the request");
}

void http_stop(struct http *http, struct http_call *call)
{
	if (!call->transfer)
		return;
	curl_multi_remove_handle(http->multi, call->transfer->easy);
	http->active--;
	free_transfer(call->transfer);
	call->transfer = NULL;
}

int http_wait(struct http *http, struct pollfd *extra, size_t count, int timeout_ms, struct err *err)
{
	struct curl_waitfd waiting[HTTP_EXTRA_FDS_MAX] = {0};
	int running = 0;

	/* What was started since must be moved before anything is waited for: there is no descriptor of it yet. */
	CURLMcode code = curl_multi_perform(http->multi, &running);

	for (size_t i = 0; i < count; i++) /* CURL_WAIT_POLLIN is 1, as POLLIN; a negative fd is not waited for */
		waiting[i] = (struct curl_waitfd){.fd = extra[i].fd, .events = CURL_WAIT_POLLIN};
	if (code == CURLM_OK) /* what is over already would not end the waiting */
		code = curl_multi_poll(http->multi, waiting, (unsigned)count, running < http->active ? 0 : timeout_ms, NULL);
	for (size_t i = 0; i < count; i++)
		extra[i].revents = waiting[i].revents;
	if (code == CURLM_OK)
		code = curl_multi_perform(http->multi, &running);
	return code == CURLM_OK ? 0 : err_set(err, ERR_IO, "libcurl: %s", curl_multi_strerror(code));
}

static const char *header(CURL *easy, const char *name)
{
	struct curl_header *found = NULL;

	return curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &found) == CURLHE_OK ? found->value : NULL;
}

static int64_t header_number(CURL *easy, const char *name)
{
	const char *text = header(easy, name);
	char *end = NULL;

	if (!text || *text < '0' || *text > '9')
		return -1;
	errno = 0;

	long long value = strtoll(text, &end, 10);

	return *end || errno ? -1 : value;
}

static int settle_reply(struct http_call *call)
{
	CURL *easy = call->transfer->easy;
	const char *end = header(easy, "Caisson-End");
	int64_t retry_after_s = header_number(easy, "Retry-After");

	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &call->status);
	if (!header(easy, "Content-Length") && !header(easy, "Transfer-Encoding"))
		return err_set(&call->err, ERR_LOST, "the keeper's reply was cut off");
	if (retry_after_s >= 0 && retry_after_s <= INT32_MAX)
		call->retry_after_ms = retry_after_s * (NS_PER_S / NS_PER_MS);
	call->offset = header_number(easy, "Caisson-Offset");
	call->end = end && strcmp(end, "true") == 0;
	if (call->transfer->hasher)
		hasher_finish(call->transfer->hasher, &call->sent);
	return 0;
}

static int settle(const struct http *http, struct http_call *call, CURLcode code)
{
	if (call->transfer->stopped)
		return call->transfer->stopped;
	if (code == CURLE_OK)
		return settle_reply(call);
	call->refused = code == CURLE_COULDNT_CONNECT;
	if (call->refused)
		return err_set(&call->err, ERR_LOST, "no keeper answers on %s (see caisson serve --help)", http->socket_path);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set(&call->err, ERR_TIMEOUT, "the keeper on %s does not answer in time", http->socket_path);
	if (code == CURLE_GOT_NOTHING || code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_PARTIAL_FILE ||
	    code == CURLE_SEND_FAIL_REWIND)
		return err_set(&call->err, ERR_LOST, "the connection to the keeper was lost: %s", curl_easy_strerror(code));
	return err_set(&call->err, ERR_PROTOCOL, "what answers on %s is no keeper: %s", http->socket_path,
	               curl_easy_strerror(code));
}

struct http_call *http_finished(struct http *http)
{
	int left = 0;

	for (CURLMsg *message; (message = curl_multi_info_read(http->multi, &left));) {
		struct http_call *call = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
		call->result = settle(http, call, message->data.result);
		http_stop(http, call);
		return call;
	}
	return NULL;
}

int http_perform(struct http *http, struct http_call *call, struct err *err)
{
	int result = http_start(http, call, err);

	if (result)
		return result;
	while (!http_finished(http)) {
		result = http_wait(http, NULL, 0, REPLY_MS, err);
		if (result) {
			http_stop(http, call);
			return result;
		}
	}
	if (call->result && err)
		*err = call->err;
	return call->result;
}
