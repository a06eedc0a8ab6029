/* recover.c - carries an attempt whose keeper is dead from wherever it was to its seal, or to quarantine. */
#include "runner/drive.h"

#include <stdlib.h>
#include <string.h>

/* A plan that cannot be read any more is no reason to leave processes alive: the receipt then has none. */
static void read_plan(struct drive *drive, struct plan **ret)
{
	char *manifest = NULL, *plan = NULL;
	if (drive->ledger->ops->manifest(drive->ledger, drive->attempt.run_id, &manifest, &plan, NULL) < 0)
		return;
	if (manifest)
		digest_of(manifest, strlen(manifest), &drive->manifest);
	if (plan && plan_parse(plan, strlen(plan), ret, NULL) == 0) {
		drive->plan = *ret;
		drive->policy = (*ret)->policy;
	}
	free(manifest);
	free(plan);
}

static int take_over(struct drive *drive, const struct runner_recovery *recovery, struct err *err)
{
	const struct ledger_ops *ops = drive->ledger->ops;
	struct ledger_attempt *attempt = &drive->attempt;
	const char *owner_id = recovery->owner_id;
	int64_t generation;
	if (!strcmp(attempt->owner_id, owner_id))
		return 0;
	int rc = recovery->expired ? ops->expire(drive->ledger, attempt->attempt_id, owner_id, attempt->generation, attempt->renewals,
	                                         &generation, err)
	                           : ops->take_over(drive->ledger, attempt->attempt_id, owner_id, &generation, err);
	if (rc < 0)
		return rc;
	say(attempt->owner_id, sizeof(attempt->owner_id), owner_id);
	attempt->generation = generation;
	return 0;
}

int runner_recover(const struct runner_recovery *recovery, struct runner_result *ret, struct err *err)
{
	struct plan *plan PLAN_AUTO = NULL;
	char *principal = NULL;
	struct drive *drive = calloc(1, sizeof(*drive));
	if (!drive)
		return err_set(err, ERR_NO_MEMORY, "recover attempt %s", recovery->attempt.attempt_id);
	drive->ledger = recovery->ledger;
	drive->key = recovery->key;
	drive->provider = recovery->provider;
	drive->cleanup_ms = recovery->cleanup_ms;
	drive->attempt = recovery->attempt;
	int64_t taken_at_ns = clock_boot_ns();
	bool ours = strcmp(drive->attempt.owner_id, recovery->owner_id) == 0;
	int rc = take_over(drive, recovery, err);
	drive_init(drive, ours ? 0 : taken_at_ns); /* how old a lease of ours is by now, nobody knows: it is renewed first */
	if (rc == 0) {
		read_plan(drive, &plan);
		rc = drive_restore(drive, &principal, err);
	}
	if (rc == 0) {
		struct life_event started = event_of(LIFE_EV_RECOVERY_STARTED, drive_now(drive));
		drive->principal = principal;
		rc = drive_carry(drive, &started, err);
	}
	if (rc == 0)
		*ret = drive->result;
	drive_done(drive);
	free(drive);
	free(principal);
	return rc;
}
