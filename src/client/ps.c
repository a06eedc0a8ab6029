/* ps.c - `caisson ps`: the runs that are not over. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "print/output.h"
#include "print/page.h"

enum {
	PAGE_RUNS = 200,
	PAGES_MAX = 5000, /* a million runs */
	CURSOR_MAX = 128,
};

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "";
}

/* Those of a page that are not sealed, behind what is in `all`. */
static int add_page(json_t *all, const json_t *document, struct err *err)
{
	json_t *runs = json_object_get(document, "runs");

	if (!json_is_array(runs))
		return err_set(err, ERR_PROTOCOL, "the keeper's answer has no runs");
	for (size_t i = 0; i < json_array_size(runs); i++) {
		json_t *run = json_array_get(runs, i);

		if (strcmp(text(run, "state"), "sealed") != 0 && json_array_append(all, run) < 0)
			return err_set(err, ERR_NO_MEMORY, "out of memory");
	}
	return 0;
}

/* A cursor is the keeper's own word; it goes into a path of ours, so it must be one. */
static bool plain_word(const char *word)
{
	size_t length = strlen(word);

	return length <= CURSOR_MAX && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == length;
}

static int collect(struct client *client, json_t *all, struct err *err)
{
	HTTP_CALL_AUTO struct http_call call = HTTP_CALL_INIT;
	char cursor[CURSOR_MAX + 1] = "";

	for (int page = 0; page < PAGES_MAX; page++) {
		JSON_AUTO json_t *document = NULL;

		http_call_set(&call, "GET", "/v1/runs?limit=%d%s%s", PAGE_RUNS, *cursor ? "&cursor=" : "", cursor);

		int result = client_ask(client, &call, &document, err);

		if (result == 0)
			result = add_page(all, document, err);
		if (result)
			return result;

		const char *next = text(document, "next");

		if (!*next)
			return 0;
		if (!plain_word(next))
			return err_set(err, ERR_PROTOCOL, "the keeper's answer has a cursor that is none");
		memcpy(cursor, next, strlen(next) + 1);
	}
	return 0;
}

static int print_table(const json_t *runs, struct err *err)
{
	PAGE_AUTO struct page page = PAGE_INIT;

	for (size_t i = 0; i < json_array_size(runs); i++) {
		const json_t *run = json_array_get(runs, i);

		page_add(&page, "%-20s  %s  %-12s  %-10s  %s\n", text(run, "run"), text(run, "created_at"), text(run, "state"),
		         text(run, "owner"), text(run, "reason"));
	}
	return page_print(&page, STDOUT_FILENO, err);
}

int client_ps(struct client *client, struct err *err)
{
	JSON_AUTO json_t *runs = json_array();
	int result = collect(client, runs, err);

	if (result)
		return result;
	return client->request->json ? print_json(STDOUT_FILENO, runs, err) : print_table(runs, err);
}
