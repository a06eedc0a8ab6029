/* refuse.c - seals an attempt that ends before anything of a boundary was made. */
#include "runner/drive.h"

#include <stdlib.h>

static int end_unmade(const struct runner_refusal *refusal, const struct life_event *event, struct runner_result *ret, struct err *err)
{
	struct drive *drive = calloc(1, sizeof(*drive));
	if (!drive)
		return err_set(err, ERR_NO_MEMORY, "end attempt %s", refusal->attempt.attempt_id);
	drive->ledger = refusal->ledger;
	drive->key = refusal->key;
	drive->plan = refusal->plan;
	drive->attempt = refusal->attempt;
	drive->principal = refusal->principal;
	drive->manifest = refusal->manifest;
	drive->policy = refusal->policy;
	drive->admission = refusal->admission;
	drive->has_admission = true;
	drive_init(drive, clock_boot_ns());
	drive->usage.survivors_killed = -1;
	life_init(&drive->life, 0, 0);
	int rc = drive_carry(drive, event, err);
	if (rc == 0)
		*ret = drive->result;
	drive_done(drive);
	free(drive);
	return rc;
}

int runner_refuse(const struct runner_refusal *refusal, struct runner_result *ret, struct err *err)
{
	struct life_event refuse = event_failed(LIFE_EV_REFUSE, clock_mono_ns(), refusal->reason, refusal->detail);
	return end_unmade(refusal, &refuse, ret, err);
}

int runner_cancel(const struct runner_refusal *refusal, struct runner_result *ret, struct err *err)
{
	struct life_event stop = event_of(LIFE_EV_STOP, clock_mono_ns());
	stop.cause = STOP_CANCEL;
	return end_unmade(refusal, &stop, ret, err);
}
