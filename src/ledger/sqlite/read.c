/* read.c - what is asked of a ledger. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/sqlite/internal.h"
#include "ledger/sqlite/owner.h"

enum {
	UNSEALED_MAX = 8 * LEDGER_SLOTS_MAX, /* slots of all profiles */
	ARGV_SIZE = 256,                     /* of a command, for display */
};

/* A statement about one run, at its row. ERR_NOT_FOUND. */
static int row_of_run(struct sqlite_ledger *ledger, enum db_statement which, const char *run_id, sqlite3_stmt **ret,
                      struct err *err)
{
	int r = db_start(&ledger->db, which, DB_VALUES(db_text(run_id)), ret, err);

	if (r == 0)
		r = db_step(&ledger->db, *ret, err);
	if (r == 0)
		return err_set(err, ERR_NOT_FOUND, "ledger: no run %s", run_id);
	return r < 0 ? r : 0;
}

static int read_attempt(struct sqlite_ledger *ledger, sqlite3_stmt *row, struct ledger_attempt *ret, struct err *err)
{
	*ret = (struct ledger_attempt){
		.number = sqlite3_column_int(row, 2), .slot = sqlite3_column_int(row, 5),
		.generation = sqlite3_column_int64(row, 7), .renewals = sqlite3_column_int64(row, 8),
		.ttl_ms = sqlite3_column_int64(row, 9),
		.intent = sqlite3_column_int(row, 11) != 0, .attached = sqlite3_column_int(row, 12) != 0};
	db_column_copy(row, 0, ret->attempt_id, sizeof ret->attempt_id);
	db_column_copy(row, 1, ret->run_id, sizeof ret->run_id);
	db_column_copy(row, 3, ret->boundary_id, sizeof ret->boundary_id);
	db_column_copy(row, 4, ret->profile, sizeof ret->profile);
	db_column_copy(row, 6, ret->owner_id, sizeof ret->owner_id);
	db_column_copy(row, 10, ret->state, sizeof ret->state);
	return owner_is_alive(ledger->dir, ret->owner_id, &ret->owner_alive, err);
}

struct attempts {
	struct ledger_attempt *list;
	size_t count;
};

struct attempt_sink {
	ledger_attempt_fn fn;
	void *context;
};

static int collect_attempts(struct sqlite_ledger *ledger, sqlite3_stmt *row, struct attempts *ret, struct err *err)
{
	size_t capacity = 0;
	int r;

	while ((r = db_step(&ledger->db, row, err)) == 1) {
		if (ret->count == UNSEALED_MAX)
			return err_set(err, ERR_LIMIT, "ledger: more than %d attempts are not sealed", UNSEALED_MAX);
		if (ret->count == capacity) {
			struct ledger_attempt *list;

			capacity = capacity ? 2 * capacity : 8;
			list = realloc(ret->list, capacity * sizeof *list);
			if (!list)
				return err_set(err, ERR_NO_MEMORY, "out of memory");
			ret->list = list;
		}
		r = read_attempt(ledger, row, &ret->list[ret->count++], err);
		if (r < 0)
			return r;
	}
	return r;
}

/* All are read before the first is shown, so that fn may write. */
static int show_attempts(struct sqlite_ledger *ledger, enum db_statement which, const struct db_value *values, size_t count,
                         const struct attempt_sink *sink, struct err *err)
{
	struct attempts attempts = {.count = 0};
	sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, which, values, count, &row, err);

	if (r == 0)
		r = collect_attempts(ledger, row, &attempts, err);
	db_done(&row);
	for (size_t i = 0; r == 0 && i < attempts.count; i++)
		r = sink->fn(sink->context, &attempts.list[i]);
	free(attempts.list);
	return r;
}

int ledger_unsealed(struct ledger *base, ledger_attempt_fn fn, void *context, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	const struct attempt_sink sink = {.fn = fn, .context = context};

	if (!ledger->options.read_only)
		owner_sweep(ledger->dir);
	return show_attempts(ledger, DB_UNSEALED, NULL, 0, &sink, err);
}

int ledger_attempts(struct ledger *base, const char *run_id, ledger_attempt_fn fn, void *context, struct err *err)
{
	const struct attempt_sink sink = {.fn = fn, .context = context};

	return show_attempts(sqlite_ledger_of(base), DB_ATTEMPTS, DB_VALUES(db_text(run_id)), &sink, err);
}

int ledger_open_runs(struct ledger *base, ledger_run_fn fn, void *context, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, DB_OPEN_RUNS, NULL, 0, &row, err);

	while (r == 0 && (r = db_step(&ledger->db, row, err)) == 1)
		r = fn(context, db_column_text(row, 0));
	return r;
}

static int read_run_state(struct sqlite_ledger *ledger, const char *run_id, struct ledger_run_state *ret, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = row_of_run(ledger, DB_RUN_STATE, run_id, &row, err);

	if (r < 0)
		return r;
	*ret = (struct ledger_run_state){.attached = sqlite3_column_int(row, 1) != 0, .created_at_ms = sqlite3_column_int64(row, 2),
	                                 .cancelled = sqlite3_column_int(row, 3) != 0, .sealed = sqlite3_column_int(row, 4) != 0};
	db_column_copy(row, 0, ret->principal, sizeof ret->principal);
	db_column_copy(row, 5, ret->verdict, sizeof ret->verdict);
	db_column_copy(row, 6, ret->reason, sizeof ret->reason);
	return 0;
}

static int take_latest(void *context, const struct ledger_attempt *attempt)
{
	struct ledger_run_state *state = context;

	state->latest = *attempt;
	state->attempts++;
	return 0;
}

int ledger_run_state(struct ledger *base, const char *run_id, struct ledger_run_state *ret, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	struct ledger_run_state state;
	int r = db_begin_read(&ledger->db, err); /* somebody may be writing: both are of one moment */

	if (r < 0)
		return r;
	r = read_run_state(ledger, run_id, &state, err);
	if (r == 0)
		r = ledger_attempts(base, run_id, take_latest, &state, err);
	r = db_end_read(&ledger->db, r, err);
	if (r == 0)
		*ret = state;
	return r;
}

/* What no id that begins so reaches. */
static void end_of_stem(const char *stem, char ret[static ID_SIZE + 1])
{
	snprintf(ret, ID_SIZE + 1, "%s~", stem);
}

/* end: room for the end of the stem, to be kept as long as the statement is stepped through. */
static int start_list(struct sqlite_ledger *ledger, const struct ledger_list_query *query, char end[static ID_SIZE + 1], sqlite3_stmt **ret,
                      struct err *err)
{
	const struct db_value limit = db_int(query->limit), before = db_int(query->before > 0 ? query->before : INT64_MAX);
	const struct db_value principal = db_text(query->principal); /* NULL for everybody's */

	if (query->stem) {
		end_of_stem(query->stem, end);
		return db_start(&ledger->db, DB_LIST_BEGINNING, DB_VALUES(limit, before, db_text(query->stem), db_text(end), principal), ret, err);
	}
	return query->principal ? db_start(&ledger->db, DB_LIST_OF, DB_VALUES(limit, before, principal), ret, err)
	                        : db_start(&ledger->db, DB_LIST, DB_VALUES(limit, before), ret, err);
}

int ledger_list(struct ledger *base, const struct ledger_list_query *query, ledger_list_fn fn, void *context, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	char end[ID_SIZE + 1];
	int r = start_list(ledger, query, end, &row, err);

	while (r == 0 && (r = db_step(&ledger->db, row, err)) == 1) {
		struct ledger_list_row shown = {.created_at_ms = sqlite3_column_int64(row, 5), .position = sqlite3_column_int64(row, 7)};
		char argv[ARGV_SIZE];

		db_column_copy(row, 0, shown.run_id, sizeof shown.run_id);
		db_column_copy(row, 1, shown.attempt_id, sizeof shown.attempt_id);
		db_column_copy(row, 2, shown.state, sizeof shown.state);
		db_column_copy(row, 3, shown.verdict, sizeof shown.verdict);
		db_column_copy(row, 4, shown.reason, sizeof shown.reason);
		db_column_copy(row, 6, argv, sizeof argv);
		db_column_copy(row, 8, shown.principal, sizeof shown.principal);
		shown.argv0 = argv;
		r = fn(context, &shown);
	}
	return r;
}

static int latest_run(struct sqlite_ledger *ledger, char ret_run_id[static ID_SIZE], struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, DB_LATEST_RUN, NULL, 0, &row, err);

	if (r == 0)
		r = db_step(&ledger->db, row, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, ERR_NOT_FOUND, "ledger: it has no run yet");
	db_column_copy(row, 0, ret_run_id, ID_SIZE);
	return 0;
}

static int run_by_prefix(struct sqlite_ledger *ledger, const char *name, char ret_run_id[static ID_SIZE], struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	char end[ID_SIZE + 1], found[ID_SIZE];

	end_of_stem(name, end);
	int r = db_start(&ledger->db, DB_FIND_RUN, DB_VALUES(db_text(name), db_text(end)), &row, err);
	if (r == 0)
		r = db_step(&ledger->db, row, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, ERR_NOT_FOUND, "ledger: no run %s", name);
	db_column_copy(row, 0, found, sizeof found);
	r = db_step(&ledger->db, row, err);
	if (r < 0)
		return r;
	if (r == 1)
		return err_set(err, ERR_CONFLICT, "ledger: more than one run begins with %s", name);
	memcpy(ret_run_id, found, sizeof found);
	return 0;
}

int ledger_find_run(struct ledger *base, const char *name, char ret_run_id[static ID_SIZE], struct err *err)
{
	if (strcmp(name, "latest") == 0)
		return latest_run(sqlite_ledger_of(base), ret_run_id, err);
	if (!id_begins("run", name))
		return err_set(err, ERR_INVALID, "a run is named by its id, run- and at least %d characters of it, or `latest`", ID_STEM_MIN);
	return run_by_prefix(sqlite_ledger_of(base), name, ret_run_id, err);
}

int ledger_receipt(struct ledger *base, const char *run_id, char **ret_receipt, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = row_of_run(sqlite_ledger_of(base), DB_RECEIPT, run_id, &row, err);

	return r < 0 ? r : db_column_dup(row, 0, ret_receipt, err);
}

int ledger_manifest(struct ledger *base, const char *run_id, char **ret_manifest, char **ret_plan, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	char *manifest = NULL;
	int r = row_of_run(sqlite_ledger_of(base), DB_MANIFEST, run_id, &row, err);

	if (r == 0)
		r = db_column_dup(row, 0, &manifest, err);
	if (r == 0)
		r = db_column_dup(row, 1, ret_plan, err);
	if (r < 0) {
		free(manifest);
		return r;
	}
	*ret_manifest = manifest;
	return 0;
}

int ledger_stream(struct ledger *base, const char *run_id, const char *name, struct ledger_stream *ret, void **ret_data,
                  bool *ret_in_store, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	struct ledger_stream stream = {.name = name};
	char *data = NULL;
	int r = db_start(&ledger->db, DB_STREAM, DB_VALUES(db_text(run_id), db_text(name)), &row, err);

	if (r == 0)
		r = db_step(&ledger->db, row, err);
	if (r == 0)
		return err_set(err, ERR_NOT_FOUND, "ledger: run %s has no %s", run_id, name);
	if (r > 0)
		r = db_column_digest(row, 0, &stream.sha256, err);
	if (r == 0)
		r = db_column_dup(row, 5, &data, err);
	if (r < 0)
		return r;
	stream.bytes = sqlite3_column_int64(row, 1);
	stream.kept_bytes = sqlite3_column_int64(row, 2);
	stream.dropped_bytes = sqlite3_column_int64(row, 3);
	stream.drained = sqlite3_column_int(row, 4) != 0;
	stream.data = data;
	*ret = stream;
	*ret_data = data;
	*ret_in_store = !data;
	return 0;
}

int ledger_artifacts(struct ledger *base, const char *run_id, ledger_artifact_fn fn, void *context, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, DB_ARTIFACTS, DB_VALUES(db_text(run_id)), &row, err);

	while (r == 0 && (r = db_step(&ledger->db, row, err)) == 1) {
		struct ledger_artifact artifact = {.size_bytes = sqlite3_column_int64(row, 1),
		                                   .mode = (uint32_t)sqlite3_column_int(row, 3)};

		r = db_column_digest(row, 2, &artifact.sha256, err);
		artifact.path = db_column_text(row, 0);
		if (r == 0)
			r = fn(context, &artifact);
	}
	return r;
}

int ledger_references(struct ledger *base, ledger_reference_fn fn, void *context, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, DB_REFERENCES, NULL, 0, &row, err);

	while (r == 0 && (r = db_step(&ledger->db, row, err)) == 1) {
		struct ledger_reference reference = {
			.run_id = db_column_text(row, 0), .kind = db_column_text(row, 1), .name = db_column_text(row, 2)};

		r = db_column_digest(row, 3, &reference.sha256, err);
		if (r == 0)
			r = fn(context, &reference);
	}
	return r;
}

int ledger_records(struct ledger *base, const char *attempt_id, ledger_record_fn fn, void *context, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	DB_DONE_AUTO sqlite3_stmt *row = NULL;
	int r = db_start(&ledger->db, DB_RECORDS, DB_VALUES(db_text(attempt_id)), &row, err);

	while (r == 0 && (r = db_step(&ledger->db, row, err)) == 1) {
		struct ledger_record record = {.seq = sqlite3_column_int64(row, 0), .at_ms = sqlite3_column_int64(row, 1),
		                               .body = db_column_text(row, 3)};
		struct digest previous, digest;

		db_column_copy(row, 2, record.kind, sizeof record.kind);
		r = db_column_digest(row, 4, &previous, err);
		if (r == 0)
			r = ledger->options.record_digest(attempt_id, record.seq, record.at_ms, record.kind, record.body, &previous,
			                                  &digest, err);
		if (r == 0)
			r = fn(context, &record, &digest);
	}
	return r;
}
