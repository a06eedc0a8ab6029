-- 0001.sql - the first schema: what a run leaves behind, and the rules that must not depend on code.
--
-- No column repeats what another one says. A digest of a text that is here, a verdict that the receipt states, the state of a slot: all
-- derived when asked for. So everything here is either under a run's seal or recomputed from what is.
--
-- Content is a BLOB; digests are TEXT, "sha256:" and 64 hex digits.

-- The genesis: its digest is what the first seal of each key points to.
CREATE TABLE ledger (
	ledger_id TEXT NOT NULL PRIMARY KEY CHECK (ledger_id GLOB 'led-*'),
	created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE owner (
	owner_id TEXT NOT NULL PRIMARY KEY CHECK (owner_id GLOB 'own-*'),
	epoch TEXT NOT NULL CHECK (epoch GLOB 'sha256:*'),
	boot_id TEXT NOT NULL,
	started_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The rowid is the order of arrival; nothing but the order of a list depends on it.
CREATE TABLE run (
	run_id TEXT NOT NULL PRIMARY KEY CHECK (run_id GLOB 'run-*'),
	principal TEXT NOT NULL,
	attached INTEGER NOT NULL CHECK (attached IN (0, 1)),
	manifest BLOB NOT NULL,
	plan BLOB,
	created_at INTEGER NOT NULL,
	labels TEXT NOT NULL
) STRICT;

CREATE TABLE attempt (
	attempt_id TEXT NOT NULL PRIMARY KEY CHECK (attempt_id GLOB 'att-*'),
	run_id TEXT NOT NULL REFERENCES run,
	number INTEGER NOT NULL CHECK (number BETWEEN 1 AND 3),
	boundary_id TEXT NOT NULL UNIQUE CHECK (boundary_id GLOB 'bnd-*'),
	profile TEXT NOT NULL,
	slot INTEGER NOT NULL CHECK (slot >= 0),
	state TEXT NOT NULL,
	UNIQUE (run_id, number)
) STRICT, WITHOUT ROWID;

-- A slot is taken until its attempt is sealed: so a quarantined one stays taken, whatever became of its processes.
CREATE UNIQUE INDEX attempt_unsealed ON attempt (profile, slot) WHERE state <> 'sealed';

-- Who may drive an attempt: one row for each generation, the highest one holds.
CREATE TABLE lease (
	attempt_id TEXT NOT NULL REFERENCES attempt,
	generation INTEGER NOT NULL,
	owner_id TEXT NOT NULL REFERENCES owner,
	renewals INTEGER NOT NULL CHECK (renewals >= 0),
	ttl_ms INTEGER NOT NULL CHECK (ttl_ms > 0),
	PRIMARY KEY (attempt_id, generation)
) STRICT, WITHOUT ROWID;

-- The primary key is contract R3: one launch intent per run, ever.
CREATE TABLE launch_intent (
	run_id TEXT NOT NULL PRIMARY KEY REFERENCES run,
	attempt_id TEXT NOT NULL REFERENCES attempt,
	generation INTEGER NOT NULL,
	at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE cancellation (
	run_id TEXT NOT NULL PRIMARY KEY REFERENCES run,
	at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE record (
	attempt_id TEXT NOT NULL REFERENCES attempt,
	seq INTEGER NOT NULL,
	at INTEGER NOT NULL,
	kind TEXT NOT NULL,
	body TEXT NOT NULL,
	prev_digest TEXT NOT NULL CHECK (prev_digest GLOB 'sha256:*'),
	PRIMARY KEY (attempt_id, seq)
) STRICT, WITHOUT ROWID;

-- data is NULL when the kept bytes are an object of the store.
CREATE TABLE stream (
	attempt_id TEXT NOT NULL REFERENCES attempt,
	name TEXT NOT NULL CHECK (name IN ('stdout', 'stderr')),
	sha256 TEXT NOT NULL CHECK (sha256 GLOB 'sha256:*'),
	bytes INTEGER NOT NULL CHECK (bytes >= kept_bytes),
	kept_bytes INTEGER NOT NULL CHECK (kept_bytes >= 0),
	dropped_bytes INTEGER NOT NULL CHECK (dropped_bytes = bytes - kept_bytes),
	drained INTEGER NOT NULL CHECK (drained IN (0, 1)),
	data BLOB CHECK (data IS NULL OR length(data) = kept_bytes),
	PRIMARY KEY (attempt_id, name)
) STRICT, WITHOUT ROWID;

-- The bytes are an object of the store. mode: 0644 or 0755.
CREATE TABLE artifact (
	attempt_id TEXT NOT NULL REFERENCES attempt,
	path BLOB NOT NULL CHECK (length(path) BETWEEN 1 AND 4095),
	size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
	sha256 TEXT NOT NULL CHECK (sha256 GLOB 'sha256:*'),
	mode INTEGER NOT NULL CHECK (mode IN (420, 493)),
	PRIMARY KEY (attempt_id, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE key (
	key TEXT NOT NULL PRIMARY KEY CHECK (length(key) = 64),
	public_key TEXT NOT NULL CHECK (length(public_key) = 64)
) STRICT, WITHOUT ROWID;

CREATE TABLE seal (
	key TEXT NOT NULL REFERENCES key,
	seal_seq INTEGER NOT NULL,
	run_id TEXT NOT NULL UNIQUE REFERENCES run,
	attempt_id TEXT NOT NULL REFERENCES attempt,
	receipt TEXT NOT NULL,
	PRIMARY KEY (key, seal_seq)
) STRICT, WITHOUT ROWID;

-- Append-only, all of it. INSERT OR REPLACE deletes without asking a DELETE trigger, so what it would replace refuses it.
CREATE TRIGGER ledger_single BEFORE INSERT ON ledger WHEN EXISTS (SELECT 1 FROM ledger)
BEGIN SELECT raise(ABORT, 'a ledger has one genesis'); END;
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger BEGIN SELECT raise(ABORT, 'ledger is append-only'); END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger BEGIN SELECT raise(ABORT, 'ledger is append-only'); END;
CREATE TRIGGER owner_insert BEFORE INSERT ON owner WHEN EXISTS (SELECT 1 FROM owner WHERE owner_id = NEW.owner_id)
BEGIN SELECT raise(ABORT, 'owner is append-only'); END;
CREATE TRIGGER owner_no_update BEFORE UPDATE ON owner BEGIN SELECT raise(ABORT, 'owner is append-only'); END;
CREATE TRIGGER owner_no_delete BEFORE DELETE ON owner BEGIN SELECT raise(ABORT, 'owner is append-only'); END;
CREATE TRIGGER run_insert BEFORE INSERT ON run WHEN EXISTS (SELECT 1 FROM run WHERE run_id = NEW.run_id)
BEGIN SELECT raise(ABORT, 'run is append-only'); END;
CREATE TRIGGER run_no_update BEFORE UPDATE ON run BEGIN SELECT raise(ABORT, 'run is append-only'); END;
CREATE TRIGGER run_no_delete BEFORE DELETE ON run BEGIN SELECT raise(ABORT, 'run is append-only'); END;
CREATE TRIGGER attempt_no_delete BEFORE DELETE ON attempt BEGIN SELECT raise(ABORT, 'attempt is append-only'); END;
CREATE TRIGGER lease_no_delete BEFORE DELETE ON lease BEGIN SELECT raise(ABORT, 'lease is append-only'); END;
CREATE TRIGGER launch_intent_no_update BEFORE UPDATE ON launch_intent
BEGIN SELECT raise(ABORT, 'launch_intent is append-only'); END;
CREATE TRIGGER launch_intent_no_delete BEFORE DELETE ON launch_intent
BEGIN SELECT raise(ABORT, 'launch_intent is append-only'); END;
CREATE TRIGGER cancellation_no_update BEFORE UPDATE ON cancellation
BEGIN SELECT raise(ABORT, 'cancellation is append-only'); END;
CREATE TRIGGER cancellation_no_delete BEFORE DELETE ON cancellation
BEGIN SELECT raise(ABORT, 'cancellation is append-only'); END;
CREATE TRIGGER record_no_update BEFORE UPDATE ON record BEGIN SELECT raise(ABORT, 'record is append-only'); END;
CREATE TRIGGER record_no_delete BEFORE DELETE ON record BEGIN SELECT raise(ABORT, 'record is append-only'); END;
CREATE TRIGGER stream_no_update BEFORE UPDATE ON stream BEGIN SELECT raise(ABORT, 'stream is append-only'); END;
CREATE TRIGGER stream_no_delete BEFORE DELETE ON stream BEGIN SELECT raise(ABORT, 'stream is append-only'); END;
CREATE TRIGGER artifact_no_update BEFORE UPDATE ON artifact BEGIN SELECT raise(ABORT, 'artifact is append-only'); END;
CREATE TRIGGER artifact_no_delete BEFORE DELETE ON artifact BEGIN SELECT raise(ABORT, 'artifact is append-only'); END;
CREATE TRIGGER key_insert BEFORE INSERT ON key WHEN EXISTS (SELECT 1 FROM key WHERE key = NEW.key)
BEGIN SELECT raise(ABORT, 'key is append-only'); END;
CREATE TRIGGER key_no_update BEFORE UPDATE ON key BEGIN SELECT raise(ABORT, 'key is append-only'); END;
CREATE TRIGGER key_no_delete BEFORE DELETE ON key BEGIN SELECT raise(ABORT, 'key is append-only'); END;
CREATE TRIGGER seal_no_update BEFORE UPDATE ON seal BEGIN SELECT raise(ABORT, 'seal is append-only'); END;
CREATE TRIGGER seal_no_delete BEFORE DELETE ON seal BEGIN SELECT raise(ABORT, 'seal is append-only'); END;

-- Of an attempt only the state changes, and `sealed` is the last one.
CREATE TRIGGER attempt_fixed BEFORE UPDATE OF attempt_id, run_id, number, boundary_id, profile, slot ON attempt
BEGIN SELECT raise(ABORT, 'only the state of an unsealed attempt changes'); END;
CREATE TRIGGER attempt_update BEFORE UPDATE ON attempt WHEN OLD.state = 'sealed'
BEGIN SELECT raise(ABORT, 'only the state of an unsealed attempt changes'); END;

-- What was launched, or has ended, gets no further attempt.
CREATE TRIGGER attempt_insert BEFORE INSERT ON attempt
WHEN NEW.state = 'sealed' OR EXISTS (SELECT 1 FROM launch_intent WHERE run_id = NEW.run_id)
	OR EXISTS (SELECT 1 FROM seal WHERE run_id = NEW.run_id)
	OR EXISTS (SELECT 1 FROM attempt WHERE attempt_id = NEW.attempt_id)
	OR EXISTS (SELECT 1 FROM attempt WHERE boundary_id = NEW.boundary_id)
	OR NEW.number <> 1 + (SELECT coalesce(max(number), 0) FROM attempt WHERE run_id = NEW.run_id)
BEGIN SELECT raise(ABORT, 'no further attempt of this run'); END;

CREATE TRIGGER lease_insert BEFORE INSERT ON lease
WHEN NEW.generation <> 1 + (SELECT coalesce(max(generation), 0) FROM lease WHERE attempt_id = NEW.attempt_id)
	OR (SELECT state FROM attempt WHERE attempt_id = NEW.attempt_id) = 'sealed'
BEGIN SELECT raise(ABORT, 'a generation only grows, by one, until the seal'); END;

CREATE TRIGGER lease_fixed BEFORE UPDATE OF attempt_id, generation, owner_id, ttl_ms ON lease
BEGIN SELECT raise(ABORT, 'only the renewals of a lease that holds grow'); END;
CREATE TRIGGER lease_update BEFORE UPDATE ON lease
WHEN NEW.renewals <= OLD.renewals OR OLD.generation < (SELECT max(generation) FROM lease WHERE attempt_id = OLD.attempt_id)
	OR (SELECT state FROM attempt WHERE attempt_id = OLD.attempt_id) = 'sealed'
BEGIN SELECT raise(ABORT, 'only the renewals of a lease that holds grow'); END;

CREATE TRIGGER launch_intent_insert BEFORE INSERT ON launch_intent
WHEN EXISTS (SELECT 1 FROM launch_intent WHERE run_id = NEW.run_id)
	OR EXISTS (SELECT 1 FROM cancellation WHERE run_id = NEW.run_id)
	OR NOT EXISTS (SELECT 1 FROM attempt WHERE attempt_id = NEW.attempt_id AND run_id = NEW.run_id AND state <> 'sealed')
	OR NEW.generation <> (SELECT max(generation) FROM lease WHERE attempt_id = NEW.attempt_id)
BEGIN SELECT raise(ABORT, 'a run is launched once, by the lease that holds, unless it is cancelled or sealed'); END;

CREATE TRIGGER cancellation_insert BEFORE INSERT ON cancellation
WHEN EXISTS (SELECT 1 FROM seal WHERE run_id = NEW.run_id)
	OR EXISTS (SELECT 1 FROM cancellation WHERE run_id = NEW.run_id)
BEGIN SELECT raise(ABORT, 'a run is cancelled once, before its seal'); END;

CREATE TRIGGER record_insert BEFORE INSERT ON record
WHEN NEW.seq <> 1 + (SELECT coalesce(max(seq), 0) FROM record WHERE attempt_id = NEW.attempt_id)
	OR EXISTS (SELECT 1 FROM record WHERE attempt_id = NEW.attempt_id AND seq = NEW.seq - 1 AND kind = 'rows')
BEGIN SELECT raise(ABORT, 'records follow one another, and none follows the rows'); END;

CREATE TRIGGER stream_insert BEFORE INSERT ON stream
WHEN EXISTS (SELECT 1 FROM seal WHERE run_id = (SELECT run_id FROM attempt WHERE attempt_id = NEW.attempt_id))
	OR EXISTS (SELECT 1 FROM stream WHERE attempt_id = NEW.attempt_id AND name = NEW.name)
BEGIN SELECT raise(ABORT, 'a sealed run gets no stream'); END;

CREATE TRIGGER artifact_insert BEFORE INSERT ON artifact
WHEN EXISTS (SELECT 1 FROM seal WHERE run_id = (SELECT run_id FROM attempt WHERE attempt_id = NEW.attempt_id))
	OR EXISTS (SELECT 1 FROM artifact WHERE attempt_id = NEW.attempt_id AND path = NEW.path)
BEGIN SELECT raise(ABORT, 'a sealed run gets no artifact'); END;

-- The rows record is the last one, so what it covers was final.
CREATE TRIGGER seal_insert BEFORE INSERT ON seal
WHEN NEW.seal_seq <> 1 + (SELECT coalesce(max(seal_seq), 0) FROM seal WHERE key = NEW.key)
	OR EXISTS (SELECT 1 FROM seal WHERE run_id = NEW.run_id)
	OR NOT EXISTS (SELECT 1 FROM attempt WHERE attempt_id = NEW.attempt_id AND run_id = NEW.run_id AND state = 'sealed')
	OR (SELECT kind FROM record WHERE attempt_id = NEW.attempt_id ORDER BY seq DESC LIMIT 1) IS NOT 'rows'
BEGIN SELECT raise(ABORT, 'a seal is next in its chain and closes a sealed attempt, once'); END;
