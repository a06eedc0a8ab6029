/* op_runs.c - lists runs, says how one stands, waits for its end, and cancels it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "keeper/api/api_internal.h"

enum { CURSOR_SIZE = 24 };

struct listing {
	json_t *rows;
	int64_t limit;      /* one more is asked for, to know whether there are more */
	int64_t last;       /* position of the last row that is shown */
	bool more;
};

/* A run without a verdict has none, not an empty one. */
static json_t *text_or_null(const char *text)
{
	return *text ? json_string(text) : json_null();
}

static int add_row(void *context, const struct ledger_list_row *row)
{
	struct listing *listing = context;
	char created[CLOCK_TEXT_SIZE];
	const char *command = row->argv0 ? row->argv0 : "";
	if ((int64_t)json_array_size(listing->rows) == listing->limit) {
		listing->more = true;
		return 0;
	}
	json_t *object = json_pack("{s:s, s:s, s:s, s:o, s:o, s:s}", "run", row->run_id, "owner", row->principal, "state",
	                           row->state, "verdict", text_or_null(row->verdict), "reason", text_or_null(row->reason),
	                           "created_at", clock_format(row->created_at_ms, created));
	if (!object || json_set_bytes(object, "command", command, strlen(command), NULL)) {
		json_decref(object);
		return ERR_NO_MEMORY;
	}
	listing->last = row->position;
	return json_array_append_new(listing->rows, object) < 0 ? ERR_NO_MEMORY : 0;
}

static int read_cursor(const struct call *call, int64_t *ret, struct err *err)
{
	const char *cursor;
	char *end;
	int result = argument_text(call, "cursor", CURSOR_SIZE, &cursor, err);
	if (result || !cursor)
		return result;
	errno = 0;
	long long position = strtoll(cursor, &end, 10);
	if (*cursor < '0' || *cursor > '9' || *end || errno || position < 1)
		return err_set(err, ERR_INVALID, "cursor must be the `next` of an earlier answer");
	*ret = position;
	return 0;
}

static int read_stem(const struct call *call, const char **ret, struct err *err)
{
	int result = argument_text(call, "run", ID_SIZE - 1, ret, err);
	if (result == 0 && *ret && !id_begins("run", *ret))
		return err_set(err, ERR_INVALID, "run must be an id, or run- and %d characters of one at least", ID_STEM_MIN);
	return result;
}

static json_t *next_cursor(const struct listing *listing)
{
	char text[CURSOR_SIZE];
	snprintf(text, sizeof(text), "%" PRId64, listing->last);
	return listing->more ? json_string(text) : json_null();
}

static int handle_list(struct call *call, struct err *err)
{
	struct ledger *ledger = call->api->options.ledger;
	struct ledger_list_query query = {.limit = 0};
	JSON_AUTO json_t *rows = json_array();
	struct listing listing = {.rows = rows, .limit = 1};
	const char *owner = NULL;
	int result = argument_number(call, "limit", WIRE_LIST_MAX, &listing.limit, err);
	if (result == 0)
		result = argument_text(call, "owner", API_PRINCIPAL_MAX - 1, &owner, err);
	if (result == 0)
		result = read_cursor(call, &query.before, err);
	if (result == 0)
		result = read_stem(call, &query.stem, err);
	if (result == 0 && listing.limit == 0)
		result = err_set(err, ERR_INVALID, "limit must be 1 or more");
	if (result)
		return result;
	query.limit = listing.limit + 1;
	query.principal = owner ? owner : call->peer->admin ? NULL : call->peer->principal;
	if (!query.principal || peer_may_see(call->peer, query.principal))
		result = ledger->ops->list(ledger, &query, add_row, &listing, err);
	if (result)
		return result;
	return reply_json(call, json_pack("{s:O, s:o}", "runs", rows, "next", next_cursor(&listing)), err);
}

static const char *const list_keys[] = {"limit", "cursor", "owner", "run", NULL};

const struct operation operation_list = {.name = "list", .keys = list_keys, .handle = handle_list};

struct provisional {
	json_t *result;
};

static int keep_provisional(void *context, const struct ledger_record *record, const struct digest *digest)
{
	struct provisional *provisional = context;
	(void)digest;
	if (strcmp(record->kind, "provisional_result") != 0)
		return 0;
	json_decref(provisional->result);
	provisional->result = public_record(record);
	return provisional->result ? 0 : ERR_NO_MEMORY;
}

/* What a quarantined run would have been, had its boundary been empty. */
static int add_provisional(struct call *call, const struct ledger_run_state *state, json_t *view, struct err *err)
{
	struct ledger *ledger = call->api->options.ledger;
	struct provisional provisional = {.result = NULL};
	int result = ledger->ops->records(ledger, state->latest.attempt_id, keep_provisional, &provisional, err);
	if (result == 0 && provisional.result)
		return json_object_set_new(view, "provisional_result", provisional.result) < 0
		               ? err_set(err, ERR_NO_MEMORY, "out of memory")
		               : 0;
	json_decref(provisional.result);
	return result;
}

static int add_receipt(struct call *call, json_t *view, struct err *err)
{
	struct ledger *ledger = call->api->options.ledger;
	char *text = NULL;
	json_t *receipt = NULL;
	int result = ledger->ops->receipt(ledger, call->run_id, &text, err);
	if (result == 0 && text)
		result = json_parse(text, strlen(text), &receipt, err);
	free(text);
	if (result)
		return err_context(err, ERR_DAMAGED, "the receipt");
	return json_object_set_new(view, "receipt", receipt ? receipt : json_null()) < 0
	               ? err_set(err, ERR_NO_MEMORY, "out of memory")
	               : 0;
}

/* state: of the attempt, if there is one that counts; of the queue otherwise. A quarantine that is being recovered at this moment,
 * because its worker was lost, is none yet. */
static void fill_live(struct call *call, const struct ledger_run_state *state, struct api_live *ret, const char **ret_state)
{
	const struct api_core *core = call->api->options.core;
	*ret = (struct api_live){.paused = false};
	if (!state->sealed)
		core->live(core->context, call->run_id, ret, NULL);
	if (state->sealed)
		*ret_state = "sealed";
	else if (state->attempts == 0 || strcmp(state->latest.state, "abandoned") == 0)
		*ret_state = ret->paused ? "paused" : "queued";
	else if (ret->driven && strcmp(state->latest.state, "quarantined") == 0)
		*ret_state = "recovering";
	else
		*ret_state = state->latest.state;
}

static int reply_view(struct call *call, const struct ledger_run_state *state, const struct api_live *live, const char *name,
                      struct err *err)
{
	char created[CLOCK_TEXT_SIZE];
	JSON_AUTO json_t *view =
		json_pack("{s:s, s:s, s:s, s:s, s:i, s:b, s:o, s:o, s:n}", "run", call->run_id, "owner", state->principal,
	                  "created_at", clock_format(state->created_at_ms, created), "state", name, "attempts", state->attempts,
	                  "cancelled", (int)state->cancelled, "verdict", state->sealed ? json_string(state->verdict) : json_null(),
	                  "reason", text_or_null(state->sealed ? state->reason : live->reason), "receipt");
	if (!view)
		return err_set(err, ERR_NO_MEMORY, "out of memory for an answer");
	int result = state->sealed ? add_receipt(call, view, err) : 0;
	if (result == 0 && strcmp(name, "quarantined") == 0)
		result = add_provisional(call, state, view, err);
	return result ? result : reply_json(call, json_incref(view), err);
}

static int handle_run(struct call *call, struct err *err)
{
	struct ledger_run_state state;
	struct api_live live;
	const char *name;
	bool over = false;
	int result = access_run(call, &state, err);
	if (result == 0)
		result = argument_waits(call, &over, err);
	if (result)
		return result;
	fill_live(call, &state, &live, &name);
	if (strcmp(name, "quarantined") == 0) { /* its recovery may have ended since the state was read: then it is over in another way */
		result = access_run(call, &state, err);
		if (result)
			return result;
		fill_live(call, &state, &live, &name);
	}
	bool ended = state.sealed || strcmp(name, "quarantined") == 0;
	return ended || over ? reply_view(call, &state, &live, name, err) : CALL_PARK;
}

static const char *const run_keys[] = {"run", "wait_ms", NULL};

const struct operation operation_run = {.name = "run", .keys = run_keys, .handle = handle_run};

static int handle_cancel(struct call *call, struct err *err)
{
	const struct api_core *core = call->api->options.core;
	struct ledger_run_state state;
	bool sealed = false;
	int result = access_run(call, &state, err);
	if (result == 0)
		result = core->cancel(core->context, call->run_id, &sealed, err);
	if (result)
		return result;
	call->reply.ok = json_pack("{s:b}", "sealed", (int)sealed);
	return reply_json(call, json_pack("{s:s, s:b}", "run", call->run_id, "sealed", (int)sealed), err);
}

static const char *const cancel_keys[] = {"run", NULL};

const struct operation operation_cancel = {.name = "cancel", .keys = cancel_keys, .handle = handle_cancel};
