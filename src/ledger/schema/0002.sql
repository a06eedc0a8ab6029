-- 0002.sql - runs that wait: submitted without an attempt, once for each idempotency key, and queued again when an attempt was given up.
--
-- Triggers of 0001 that must know of this are made anew; every table but the queue stays append-only.

-- Whoever submits twice with one key has submitted once.
ALTER TABLE run ADD COLUMN idempotency_key TEXT
	CHECK (idempotency_key IS NULL OR (attached = 0 AND length(idempotency_key) BETWEEN 1 AND 255));
CREATE UNIQUE INDEX run_submitted ON run (principal, idempotency_key) WHERE idempotency_key IS NOT NULL;
-- Somebody's own runs, in order of arrival, among very many of others.
CREATE INDEX run_of_principal ON run (principal);

DROP TRIGGER run_insert;
CREATE TRIGGER run_insert BEFORE INSERT ON run WHEN EXISTS (SELECT 1 FROM run WHERE run_id = NEW.run_id)
	OR (NEW.idempotency_key IS NOT NULL
		AND EXISTS (SELECT 1 FROM run WHERE principal = NEW.principal AND idempotency_key = NEW.idempotency_key))
BEGIN SELECT raise(ABORT, 'run is append-only'); END;

-- Which runs wait to be claimed: it follows from the other tables, and saves looking through all of them. So nothing guards it but
-- verification, which works it out again; whether a run may be claimed is asked of the others. position: the run's rowid.
CREATE TABLE queue (
	position INTEGER NOT NULL PRIMARY KEY,
	run_id TEXT NOT NULL REFERENCES run
) STRICT;

-- An abandoned attempt is over, as a sealed one is, and gives its slot back; its run goes on.
DROP INDEX attempt_unsealed;
CREATE UNIQUE INDEX attempt_unfinished ON attempt (profile, slot) WHERE state <> 'sealed' AND state <> 'abandoned';

-- Abandoned is what never had the intent, of a detached run, behind a last record that says so; the third attempt is sealed.
DROP TRIGGER attempt_update;
CREATE TRIGGER attempt_update BEFORE UPDATE ON attempt
WHEN OLD.state IN ('sealed', 'abandoned') OR (NEW.state = 'abandoned' AND (OLD.number >= 3
	OR EXISTS (SELECT 1 FROM launch_intent WHERE run_id = OLD.run_id)
	OR (SELECT attached FROM run WHERE run_id = OLD.run_id) IS NOT 0
	OR (SELECT kind FROM record WHERE attempt_id = OLD.attempt_id ORDER BY seq DESC LIMIT 1) IS NOT 'abandoned'))
BEGIN SELECT raise(ABORT, 'only the state of an unsealed attempt changes'); END;

-- One attempt at a time: those before it are abandoned, and so neither launched nor sealed.
DROP TRIGGER attempt_insert;
CREATE TRIGGER attempt_insert BEFORE INSERT ON attempt
WHEN NEW.state IN ('sealed', 'abandoned')
	OR EXISTS (SELECT 1 FROM attempt WHERE run_id = NEW.run_id AND state <> 'abandoned')
	OR EXISTS (SELECT 1 FROM attempt WHERE attempt_id = NEW.attempt_id)
	OR EXISTS (SELECT 1 FROM attempt WHERE boundary_id = NEW.boundary_id)
	OR NEW.number <> 1 + (SELECT coalesce(max(number), 0) FROM attempt WHERE run_id = NEW.run_id)
BEGIN SELECT raise(ABORT, 'no further attempt of this run'); END;

DROP TRIGGER lease_insert;
CREATE TRIGGER lease_insert BEFORE INSERT ON lease
WHEN NEW.generation <> 1 + (SELECT coalesce(max(generation), 0) FROM lease WHERE attempt_id = NEW.attempt_id)
	OR (SELECT state FROM attempt WHERE attempt_id = NEW.attempt_id) IN ('sealed', 'abandoned')
BEGIN SELECT raise(ABORT, 'a generation only grows, by one, until the seal'); END;

DROP TRIGGER lease_update;
CREATE TRIGGER lease_update BEFORE UPDATE ON lease
WHEN NEW.renewals <= OLD.renewals OR OLD.generation < (SELECT max(generation) FROM lease WHERE attempt_id = OLD.attempt_id)
	OR (SELECT state FROM attempt WHERE attempt_id = OLD.attempt_id) IN ('sealed', 'abandoned')
BEGIN SELECT raise(ABORT, 'only the renewals of a lease that holds grow'); END;

DROP TRIGGER launch_intent_insert;
CREATE TRIGGER launch_intent_insert BEFORE INSERT ON launch_intent
WHEN EXISTS (SELECT 1 FROM launch_intent WHERE run_id = NEW.run_id)
	OR EXISTS (SELECT 1 FROM cancellation WHERE run_id = NEW.run_id)
	OR NOT EXISTS (SELECT 1 FROM attempt WHERE attempt_id = NEW.attempt_id AND run_id = NEW.run_id
		AND state NOT IN ('sealed', 'abandoned'))
	OR NEW.generation <> (SELECT max(generation) FROM lease WHERE attempt_id = NEW.attempt_id)
BEGIN SELECT raise(ABORT, 'a run is launched once, by the lease that holds, unless it is cancelled or sealed'); END;

-- Neither the rows of a seal nor the end of an abandoned attempt is followed by anything.
DROP TRIGGER record_insert;
CREATE TRIGGER record_insert BEFORE INSERT ON record
WHEN NEW.seq <> 1 + (SELECT coalesce(max(seq), 0) FROM record WHERE attempt_id = NEW.attempt_id)
	OR EXISTS (SELECT 1 FROM record WHERE attempt_id = NEW.attempt_id AND seq = NEW.seq - 1 AND kind IN ('rows', 'abandoned'))
BEGIN SELECT raise(ABORT, 'records follow one another, and none follows the rows'); END;
