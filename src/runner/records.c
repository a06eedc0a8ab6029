/* records.c - the journal: observations wait here for the next commit; what must not wait is committed at once. */
#include "runner/drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"

void journal_done(struct journal *journal)
{
	for (size_t i = 0; i < journal->count; i++)
		free((char *)journal->records[i].body);
	journal->count = 0;
}

int journal_add(struct journal *journal, const char *kind, json_t *body, struct err *err)
{
	json_t *owned JSON_AUTO = body;
	if (!owned)
		return err_set(err, ERR_NO_MEMORY, "record %s", kind);
	if (journal->count == JOURNAL_MAX)
		return err_set(err, ERR_LIMIT, "more than %d records wait for a commit", JOURNAL_MAX);
	struct buf text BUF_AUTO = BUF_INIT(RECORD_BODY_MAX);
	int rc = json_canonical(owned, &text, err);
	if (rc < 0)
		return err_context(err, rc, "record %s", kind);
	struct ledger_record *record = &journal->records[journal->count++];
	*record = (struct ledger_record){.at_ms = clock_wall_ms(), .body = buf_take(&text)};
	snprintf(record->kind, sizeof(record->kind), "%s", kind);
	return 0;
}

void journal_drop_last(struct journal *journal)
{
	free((char *)journal->records[--journal->count].body);
}

int drive_append(struct drive *drive, struct err *err)
{
	const struct ledger_attempt *attempt = &drive->attempt;
	int rc = drive->ledger->ops->append(drive->ledger, attempt->attempt_id, attempt->owner_id, attempt->generation,
	                                    life_state_name(drive->life.state), drive->journal.records, drive->journal.count, false,
	                                    err);
	if (rc == 0)
		journal_done(&drive->journal);
	return rc;
}

/* NULL: the event has no record of its own. A launch intent's and an abandonment's are in their transactions, the seal is the seal. */
static const char *record_kind(const struct life_event *event)
{
	switch (event->kind) {
	case LIFE_EV_ADMIT:
	case LIFE_EV_INTENT_DURABLE:
	case LIFE_EV_SEALED:
	case LIFE_EV_ABANDONED:
	case LIFE_EVENT_COUNT:
		return NULL;
	case LIFE_EV_STOP:
		return event->cause == STOP_CANCEL ? "cancel" : "limit";
	case LIFE_EV_REFUSE:
		return "refused";
	case LIFE_EV_PREPARED:
		return "prepared";
	case LIFE_EV_SUSPENDED:
		return "suspended";
	case LIFE_EV_ENROLLED:
		return "enrolled";
	case LIFE_EV_STEP_FAILED:
		return "step_failed";
	case LIFE_EV_LAUNCHED:
		return "launched";
	case LIFE_EV_GRACE_OVER:
		return "grace_over";
	case LIFE_EV_MAIN_EXITED:
		return "main_exited";
	case LIFE_EV_DRAINED:
		return "drained";
	case LIFE_EV_BOUNDARY_LOST:
		return "boundary_lost";
	case LIFE_EV_CLEANED:
		return "cleaned";
	case LIFE_EV_CLEANUP_FAILED:
		return "cleanup_failed";
	case LIFE_EV_VERIFIED_EMPTY:
		return "verified_empty";
	case LIFE_EV_VERIFY_FAILED:
		return "verify_failed";
	case LIFE_EV_RECOVERY_STARTED:
		return "recovery_started";
	}
	return NULL;
}

int drive_record(struct drive *drive, const struct life_event *event, struct err *err)
{
	const char *kind = record_kind(event);
	return kind ? journal_add(&drive->journal, kind, body_of_event(drive, event), err) : 0;
}
