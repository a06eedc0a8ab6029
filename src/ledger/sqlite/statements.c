/* statements.c - the text of each statement that is prepared more than once. */
#include "ledger/sqlite/db.h"

/* Spelled as in the index of that name. */
#define UNFINISHED "state <> 'sealed' AND state <> 'abandoned'"

/* An attempt with the lease that holds; the rest of the condition comes between the two. */
#define ATTEMPT_COLUMNS \
	"SELECT attempt_id, run_id, number, boundary_id, profile, slot, owner_id, generation, renewals, ttl_ms, state," \
	" EXISTS (SELECT 1 FROM launch_intent WHERE launch_intent.run_id = attempt.run_id), attached" \
	" FROM attempt JOIN run USING (run_id) JOIN lease USING (attempt_id)"
#define HOLDING_LEASE " AND generation = (SELECT max(generation) FROM lease WHERE lease.attempt_id = attempt.attempt_id)"

/* A document that somebody has damaged is NULL, and no error of all the other rows. */
#define READABLE(text) "(CASE WHEN json_valid(" text ") THEN " text " END)"

/* A row of a list; the condition follows. */
#define LIST_COLUMNS \
	"SELECT run.run_id, attempt.attempt_id, coalesce(nullif(state, 'abandoned'), 'queued')," \
	READABLE("receipt") " ->> '$.verdict'," READABLE("receipt") " ->> '$.reason', created_at," \
	" (SELECT group_concat(value, ' ') FROM json_each(" READABLE("CAST(manifest AS TEXT)") ", '$.command.argv'))," \
	" run.rowid, principal" \
	" FROM run LEFT JOIN attempt ON attempt.run_id = run.run_id" \
	" AND number = (SELECT max(number) FROM attempt AS a WHERE a.run_id = run.run_id)" \
	" LEFT JOIN seal ON seal.run_id = run.run_id"

const char *const db_statement_text[DB_STATEMENT_COUNT] = {
	[DB_BEGIN] = "BEGIN IMMEDIATE",
	[DB_BEGIN_READ] = "BEGIN",
	[DB_COMMIT] = "COMMIT",
	[DB_ROLLBACK] = "ROLLBACK",
	[DB_SAVEPOINT] = "SAVEPOINT one",
	[DB_RELEASE] = "RELEASE one",
	[DB_ROLLBACK_TO] = "ROLLBACK TO one",
	[DB_INSERT_OWNER] = "INSERT INTO owner VALUES (?, ?, ?, ?)",
	[DB_INSERT_RUN] = "INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
	[DB_INSERT_ATTEMPT] = "INSERT INTO attempt VALUES (?, ?, ?, ?, ?, ?, ?)",
	[DB_INSERT_LEASE] = "INSERT INTO lease VALUES (?, ?, ?, 0, ?)",
	[DB_INSERT_RECORD] = "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)",
	[DB_INSERT_STREAM] = "INSERT INTO stream VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
	[DB_INSERT_ARTIFACT] = "INSERT INTO artifact VALUES (?, ?, ?, ?, ?)",
	[DB_INSERT_INTENT] = "INSERT INTO launch_intent VALUES (?, ?, ?, ?)",
	[DB_INSERT_CANCELLATION] = "INSERT INTO cancellation VALUES (?, ?)",
	[DB_INSERT_KEY] = "INSERT INTO key VALUES (?, ?)",
	[DB_INSERT_SEAL] = "INSERT INTO seal VALUES (?, ?, ?, ?, ?)",
	[DB_INSERT_QUEUE] = "INSERT INTO queue SELECT rowid, run_id FROM run WHERE run_id = ?",
	[DB_DELETE_QUEUE] = "DELETE FROM queue WHERE position = ?",
	[DB_SET_STATE] = "UPDATE attempt SET state = ?2 WHERE attempt_id = ?1",
	[DB_RENEW] = "UPDATE lease SET renewals = renewals + 1 WHERE attempt_id = ?1 AND generation = ?2",
	[DB_FENCE] = "SELECT state, run_id, owner_id, generation, ttl_ms, renewals FROM attempt JOIN lease USING (attempt_id)"
		" WHERE attempt_id = ? ORDER BY generation DESC LIMIT 1",
	[DB_LAST_RECORD] = "SELECT seq, at, kind, body, prev_digest FROM record WHERE attempt_id = ? ORDER BY seq DESC LIMIT 1",
	[DB_LAST_SEAL] = "SELECT seal_seq, receipt FROM seal WHERE key = ? ORDER BY seal_seq DESC LIMIT 1",
	[DB_TAKEN_SLOTS] = "SELECT slot FROM attempt WHERE profile = ? AND " UNFINISHED " ORDER BY slot",
	[DB_HAS_KEY] = "SELECT 1 FROM key WHERE key = ?",
	[DB_HAS_INTENT] = "SELECT 1 FROM launch_intent WHERE run_id = ?",
	[DB_HAS_CANCELLATION] = "SELECT 1 FROM cancellation WHERE run_id = ?",
	[DB_RUN_SEALED] = "SELECT EXISTS (SELECT 1 FROM seal WHERE run_id = ?1) FROM run WHERE run_id = ?1",
	[DB_SUBMITTED] = "SELECT run_id, manifest = ?3 FROM run WHERE principal = ?1 AND idempotency_key = ?2",
	[DB_QUEUE_LENGTH] = "SELECT count(*) FROM queue",
	[DB_QUEUE_PLACE] = "SELECT position, (SELECT count(*) FROM attempt WHERE attempt.run_id = run.run_id)"
		" FROM run LEFT JOIN queue ON position = run.rowid WHERE run.run_id = ?",
	[DB_QUEUED] = "SELECT position, run.run_id, principal, coalesce(" READABLE("CAST(plan AS TEXT)") " ->> '$.profile', ''),"
		" (SELECT count(*) FROM attempt WHERE attempt.run_id = run.run_id),"
		" EXISTS (SELECT 1 FROM cancellation WHERE cancellation.run_id = run.run_id), created_at"
		" FROM queue JOIN run ON run.rowid = position WHERE position > ? ORDER BY position LIMIT ?",
	[DB_MAY_ABANDON] = "SELECT attached, number, EXISTS (SELECT 1 FROM launch_intent WHERE launch_intent.run_id = attempt.run_id)"
		" FROM attempt JOIN run USING (run_id) WHERE attempt_id = ?",
	[DB_UNSEALED] = ATTEMPT_COLUMNS " WHERE " UNFINISHED HOLDING_LEASE " ORDER BY profile, slot",
	[DB_ATTEMPTS] = ATTEMPT_COLUMNS " WHERE run_id = ?" HOLDING_LEASE " ORDER BY number",
	[DB_OPEN_RUNS] = "SELECT run_id FROM queue UNION ALL SELECT run_id FROM attempt WHERE " UNFINISHED,
	[DB_RUN_STATE] = "SELECT principal, attached, created_at, EXISTS (SELECT 1 FROM cancellation WHERE run_id = ?1),"
		" receipt IS NOT NULL, " READABLE("receipt") " ->> '$.verdict', " READABLE("receipt") " ->> '$.reason'"
		" FROM run LEFT JOIN seal USING (run_id)"
		" WHERE run_id = ?1",
	[DB_LIST] = LIST_COLUMNS " WHERE run.rowid < ?2 ORDER BY run.rowid DESC LIMIT ?1",
	[DB_LIST_OF] = LIST_COLUMNS " WHERE principal = ?3 AND run.rowid < ?2 ORDER BY run.rowid DESC LIMIT ?1",
	[DB_LIST_BEGINNING] = LIST_COLUMNS " WHERE run.run_id >= ?3 AND run.run_id < ?4 AND coalesce(principal = ?5, 1)"
		" AND run.rowid < ?2 ORDER BY run.rowid DESC LIMIT ?1",
	[DB_LATEST_RUN] = "SELECT run_id FROM run ORDER BY rowid DESC LIMIT 1",
	[DB_FIND_RUN] = "SELECT run_id FROM run WHERE run_id >= ?1 AND run_id < ?2 ORDER BY run_id LIMIT 2",
	[DB_RECEIPT] = "SELECT receipt FROM run LEFT JOIN seal USING (run_id) WHERE run_id = ?",
	[DB_MANIFEST] = "SELECT manifest, plan FROM run WHERE run_id = ?",
	[DB_STREAM] = "SELECT sha256, bytes, kept_bytes, dropped_bytes, drained, data FROM stream JOIN attempt USING (attempt_id)"
		" WHERE run_id = ? AND name = ? ORDER BY number DESC LIMIT 1",
	[DB_ARTIFACTS] = "SELECT path, size_bytes, sha256, mode FROM attempt JOIN artifact USING (attempt_id)"
		" WHERE run_id = ? ORDER BY path",
	[DB_REFERENCES] = "SELECT run_id, 'artifact', path, sha256 FROM artifact JOIN attempt USING (attempt_id) UNION ALL"
		" SELECT run_id, 'stream', name, sha256 FROM stream JOIN attempt USING (attempt_id) WHERE data IS NULL",
	[DB_RECORDS] = "SELECT seq, at, kind, body, prev_digest FROM record WHERE attempt_id = ? ORDER BY seq",

	/* What a run leaves in each table; ? is the id that it is found by. The rows record holds all columns of all of it. */
	[DB_ROWS_ARTIFACT] = "SELECT * FROM artifact WHERE attempt_id = ? ORDER BY path",
	[DB_ROWS_ATTEMPT] = "SELECT * FROM attempt WHERE run_id = ? ORDER BY number",
	[DB_ROWS_CANCELLATION] = "SELECT * FROM cancellation WHERE run_id = ?",
	[DB_ROWS_LAUNCH_INTENT] = "SELECT * FROM launch_intent WHERE run_id = ?",
	[DB_ROWS_LEASE] = "SELECT * FROM lease WHERE attempt_id = ? ORDER BY generation",
	[DB_ROWS_LEDGER] = "SELECT * FROM ledger WHERE ledger_id = ?",
	[DB_ROWS_OWNER] = "SELECT * FROM owner WHERE owner_id = ?",
	[DB_ROWS_RECORD] = "SELECT * FROM record WHERE attempt_id = ? ORDER BY seq",
	[DB_ROWS_RUN] = "SELECT * FROM run WHERE run_id = ?",
	[DB_ROWS_STREAM] = "SELECT * FROM stream WHERE attempt_id = ? ORDER BY name",
};
