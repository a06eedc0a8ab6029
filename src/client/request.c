/* request.c - reads the request. */
#include "client/request.h"

#include <stddef.h>

#include "base/fd.h"

void request_done(struct request *request)
{
	json_decref_p(&request->document);
	*request = (struct request){0};
}

/* A row of a table: the key of the document is the name of the member. */
#define MEMBER(member) #member, offsetof(struct request, member)

static int read_texts(const struct json_at *root, struct request *request, struct err *err)
{
	static const struct {
		const char *key;
		size_t offset;
	} texts[] = {{MEMBER(socket)}, {MEMBER(program)}, {MEMBER(ledger)}, {MEMBER(run)}, {MEMBER(file)}, {MEMBER(key)}};
	int result = 0;

	for (size_t i = 0; result == 0 && i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct json_at at;

		json_at_key(root, texts[i].key, &at);
		result = json_read_string(&at, REQUEST_MAX_BYTES, (const char **)((char *)request + texts[i].offset), err);
	}
	return result;
}

static int read_flags(const struct json_at *root, struct request *request, struct err *err)
{
	static const struct {
		const char *key;
		size_t offset;
	} flags[] = {{MEMBER(json)},   {MEMBER(quiet)},       {MEMBER(summary)},     {MEMBER(wait)},
	             {MEMBER(follow)}, {MEMBER(only_stdout)}, {MEMBER(only_stderr)}, {MEMBER(unordered)}};
	int result = 0;

	for (size_t i = 0; result == 0 && i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct json_at at;

		json_at_key(root, flags[i].key, &at);
		result = json_read_bool(&at, (bool *)((char *)request + flags[i].offset), err);
	}
	return result;
}

static int read_numbers(const struct json_at *root, struct request *request, struct err *err)
{
	static const struct {
		const char *key;
		size_t offset;
	} numbers[] = {{MEMBER(in_flight)}, {MEMBER(slot)}, {MEMBER(patience_ms)}};
	int result = 0;

	for (size_t i = 0; result == 0 && i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct json_at at;

		json_at_key(root, numbers[i].key, &at);
		result = json_read_int(&at, 0, INT64_MAX, (int64_t *)(void *)((char *)request + numbers[i].offset), err);
	}
	return result;
}

static int read_members(struct request *request, struct err *err)
{
	static const char *const keys[] = {"socket",    "program",  "ledger",      "run",         "file",
	                                   "key",       "manifest", "json",        "quiet",       "summary",
	                                   "wait",      "follow",   "only_stdout", "only_stderr", "unordered",
	                                   "in_flight", "slot",     "patience_ms", NULL};
	struct json_at root;

	json_at_root(request->document, &root);

	int result = json_only_keys(&root, keys, err);

	if (result == 0)
		result = read_texts(&root, request, err);
	if (result == 0)
		result = read_flags(&root, request, err);
	if (result == 0)
		result = read_numbers(&root, request, err);
	request->manifest = json_object_get(request->document, "manifest");
	if (result == 0 && !request->socket)
		result = err_set(err, ERR_INVALID, "$.socket: missing");
	return result;
}

int request_read(int fd, struct request *ret, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(REQUEST_MAX_BYTES);
	int result = fd_read_rest(fd, &text, err);

	*ret = (struct request){0};
	if (result == 0)
		result = json_parse(text.data ? text.data : "", text.len, &ret->document, err);
	if (result == 0)
		result = read_members(ret, err);
	return result;
}
