/* refuse.c - seals an attempt that admission, or the plan compiler, refused. */
#include "runner/drive.h"

#include <stdlib.h>

int runner_refuse(const struct runner_refusal *refusal, struct runner_result *ret, struct err *err)
{
	struct drive *drive = calloc(1, sizeof(*drive));
	if (!drive)
		return err_set(err, ERR_NO_MEMORY, "refuse attempt %s", refusal->attempt.attempt_id);
	drive->ledger = refusal->ledger;
	drive->key = refusal->key;
	drive->plan = refusal->plan;
	drive->attempt = refusal->attempt;
	drive->principal = refusal->principal;
	drive->manifest = refusal->manifest;
	drive->policy = refusal->policy;
	drive->admission = refusal->admission;
	drive->has_admission = true;
	drive_init(drive);
	drive->usage.survivors_killed = -1;
	life_init(&drive->life, 0, 0);

	struct life_event refuse = event_failed(LIFE_EV_REFUSE, drive_now(drive), refusal->reason, refusal->detail);
	int rc = drive_carry(drive, &refuse, err);
	if (rc == 0)
		*ret = drive->result;
	drive_done(drive);
	free(drive);
	return rc;
}
