/* chain.c - the chain of an attempt's records, and where the chains begin. */
#include "ledger/sqlite/internal.h"

#include <string.h>

/* The ledger's own record: the first seal of each key points to it. */
int chain_genesis(const struct sqlite_ledger *ledger, struct digest *ret, struct err *err)
{
	struct digest start;

	digest_of(ledger->ledger_id, strlen(ledger->ledger_id), &start);
	return ledger->options.record_digest(ledger->ledger_id, 0, ledger->created_at_ms, "genesis", "{}", &start, ret, err);
}

int chain_head(struct sqlite_ledger *ledger, const char *attempt_id, int64_t *ret_seq, struct digest *ret, struct err *err)
{
	DB_DONE_AUTO sqlite3_stmt *last = NULL;
	struct digest previous;
	int r = db_start(&ledger->db, DB_LAST_RECORD, DB_VALUES(db_text(attempt_id)), &last, err);

	if (r == 0)
		r = db_step(&ledger->db, last, err);
	if (r < 0)
		return r;
	if (r == 0) {
		digest_of(attempt_id, strlen(attempt_id), ret);
		*ret_seq = 0;
		return 0;
	}
	r = db_column_digest(last, 4, &previous, err);
	if (r < 0)
		return r;
	*ret_seq = sqlite3_column_int64(last, 0);
	return ledger->options.record_digest(attempt_id, *ret_seq, sqlite3_column_int64(last, 1), db_column_text(last, 2),
	                                     db_column_text(last, 3), &previous, ret, err);
}

static int append_one(struct sqlite_ledger *ledger, const char *attempt_id, const struct ledger_record *record, int64_t seq,
                      struct digest *head, struct err *err)
{
	struct digest previous = *head;
	int r = ledger->options.record_digest(attempt_id, seq, record->at_ms, record->kind, record->body, &previous, head, err);

	if (r < 0)
		return r;
	return db_run(&ledger->db, DB_INSERT_RECORD,
	              DB_VALUES(db_text(attempt_id), db_int(seq), db_int(record->at_ms), db_text(record->kind),
	                        db_text(record->body), db_digest(&previous)), err);
}

int chain_append(struct sqlite_ledger *ledger, const char *attempt_id, const struct ledger_record *records, size_t count,
                 struct digest *ret_head, struct err *err)
{
	struct digest head;
	int64_t seq = 0;
	int r = chain_head(ledger, attempt_id, &seq, &head, err);

	for (size_t i = 0; r == 0 && i < count; i++)
		r = append_one(ledger, attempt_id, &records[i], ++seq, &head, err);
	if (r == 0 && ret_head)
		*ret_head = head;
	return r;
}
