/* seal.c - the seal: records, streams, artifacts, terminal state, rows record, receipt, seal chain, in one durable transaction. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ledger/sqlite/internal.h"

static int insert_streams(struct sqlite_ledger *ledger, const struct ledger_seal *seal, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < seal->stream_count; i++) {
		const struct ledger_stream *stream = &seal->streams[i];
		const void *data = stream->kept_bytes == 0 ? "" : stream->data;

		r = db_run(&ledger->db, DB_INSERT_STREAM,
		           DB_VALUES(db_text(seal->attempt_id), db_text(stream->name), db_digest(&stream->sha256),
		                     db_int(stream->bytes), db_int(stream->kept_bytes), db_int(stream->dropped_bytes),
		                     db_int(stream->drained), db_blob(data, (size_t)stream->kept_bytes)), err);
	}
	return r;
}

static int insert_artifacts(struct sqlite_ledger *ledger, const struct ledger_seal *seal, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < seal->artifact_count; i++) {
		const struct ledger_artifact *artifact = &seal->artifacts[i];

		r = db_run(&ledger->db, DB_INSERT_ARTIFACT,
		           DB_VALUES(db_text(seal->attempt_id), db_blob(artifact->path, strlen(artifact->path)),
		                     db_int(artifact->size_bytes), db_digest(&artifact->sha256), db_int(artifact->mode)), err);
	}
	return r;
}

/* Everything is in place but receipt and seal: what the rows say now is what they will always say. */
static int append_rows(struct sqlite_ledger *ledger, const struct ledger_seal *seal, const char *run_id, struct digest *ret_head,
                       struct err *err)
{
	struct ledger_record record = {.at_ms = clock_wall_ms(), .kind = "rows"};
	char *body = NULL;
	int r = rows_of_run(ledger, run_id, record.at_ms, &body, err);

	if (r < 0)
		return r;
	record.body = body;
	r = chain_append(ledger, seal->attempt_id, &record, 1, ret_head, err);
	free(body);
	return r;
}

/* Where this key's chain ends. The digest of a seal is that of its receipt. */
static int seal_chain_end(struct sqlite_ledger *ledger, const char *key, struct ledger_seal_numbers *ret, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *last = NULL;
	const char *receipt;
	int r = db_start(&ledger->db, DB_LAST_SEAL, DB_VALUES(db_text(key)), &last, err);

	if (r == 0)
		r = db_step(&ledger->db, last, err);
	if (r < 0)
		return r;
	if (r == 0) {
		ret->seal_seq = 1;
		return chain_genesis(ledger, &ret->previous, err);
	}
	receipt = db_column_text(last, 1);
	digest_of(receipt, strlen(receipt), &ret->previous);
	ret->seal_seq = sqlite3_column_int64(last, 0) + 1;
	return 0;
}

/* The public key comes with the key's first seal. */
static int record_key(struct sqlite_ledger *ledger, const struct ledger_seal_built *built, struct err *err)
{
	struct digest public_key; /* as long as a digest, and spelled in hex as one */
	char hex[DIGEST_HEX_SIZE];
	bool known = false;
	int r = ledger_has(ledger, DB_HAS_KEY, built->key, &known, err);

	if (r < 0 || known)
		return r;
	memcpy(public_key.bytes, built->public_key, sizeof public_key.bytes);
	return db_run(&ledger->db, DB_INSERT_KEY, DB_VALUES(db_text(built->key), db_text(digest_hex(&public_key, hex))), err);
}

static int insert_seal(struct sqlite_ledger *ledger, const struct ledger_seal *seal, const char *run_id,
                       const struct ledger_seal_numbers *numbers, struct err *err)
{
	struct ledger_seal_built built = {.receipt = NULL};
	int r = seal->build(seal->context, numbers, &built, err);

	if (r < 0)
		return r;
	if (strcmp(built.key, seal->key) != 0)
		return err_set(err, ERR_INTERNAL, "ledger: the receipt is signed with another key than announced");
	r = record_key(ledger, &built, err);
	if (r < 0)
		return r;
	return db_run(&ledger->db, DB_INSERT_SEAL,
	              DB_VALUES(db_text(built.key), db_int(numbers->seal_seq), db_text(run_id), db_text(seal->attempt_id),
	                        db_text(built.receipt)), err);
}

/* Between the caller's last look and this transaction there was time enough for one. */
static int check_cancellation(struct sqlite_ledger *ledger, const struct ledger_seal *seal, const char *run_id, struct err *err)
{
	bool cancelled = false;
	int r = seal->cancel_heard ? 0 : ledger_has(ledger, DB_HAS_CANCELLATION, run_id, &cancelled, err);

	if (r == 0 && cancelled)
		return err_set(err, ERR_CONFLICT, "ledger: run %s is cancelled", run_id);
	return r;
}

static int seal_in_transaction(struct sqlite_ledger *ledger, const struct ledger_seal *seal, struct err *err)
{
	const struct fence fence = {.attempt_id = seal->attempt_id, .owner_id = seal->owner_id, .generation = seal->generation};
	struct ledger_seal_numbers numbers = {.lease_generations = seal->generation};
	char run_id[ID_SIZE];
	int r = ledger_fence(ledger, &fence, run_id, err);

	if (r == 0)
		r = check_cancellation(ledger, seal, run_id, err);
	if (r == 0)
		r = chain_append(ledger, seal->attempt_id, seal->records, seal->record_count, NULL, err);
	if (r == 0)
		r = insert_streams(ledger, seal, err);
	if (r == 0)
		r = insert_artifacts(ledger, seal, err);
	if (r == 0)
		r = ledger_set_state(ledger, seal->attempt_id, "sealed", err);
	if (r == 0)
		r = append_rows(ledger, seal, run_id, &numbers.last_record, err);
	if (r == 0)
		r = seal_chain_end(ledger, seal->key, &numbers, err);
	return r < 0 ? r : insert_seal(ledger, seal, run_id, &numbers, err);
}

int ledger_seal(struct ledger *base, const struct ledger_seal *seal, struct err *err)
{
	struct sqlite_ledger *ledger = sqlite_ledger_of(base);
	int r = db_begin(&ledger->db, true, err);

	if (r < 0)
		return r;
	r = seal_in_transaction(ledger, seal, err);
	return db_end(&ledger->db, r, err);
}
