/* restore.c - reads an attempt's records back into what its life was, as far as a dead keeper came to write it down.
 *
 * A tolerant reader (R11): what is missing or makes no sense is not known, and never keeps a recovery from cleaning up. */
#include "runner/drive.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

struct restoring {
	struct drive *drive;
	char *principal;
	bool quarantined, intent, launched, drained, retained, lost, worker_lost;
	struct life facts; /* the members that the records speak of */
};

static int64_t number(const json_t *body, const char *key, int64_t otherwise)
{
	const json_t *value = json_object_get(body, key);
	return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

static const char *text(const json_t *body, const char *key)
{
	const char *value = json_string_value(json_object_get(body, key));
	return value ? value : "";
}

static void read_accepted(struct restoring *restoring, const json_t *body, int64_t at_ms)
{
	(void)at_ms;
	if (!restoring->principal)
		restoring->principal = strdup(text(body, "principal"));
}

static void read_admission(struct restoring *restoring, const json_t *body, int64_t at_ms)
{
	struct drive *drive = restoring->drive;
	drive->admitted_at_ms = at_ms;
	drive->has_admission = digest_parse(text(body, "admission"), &drive->admission, NULL) == 0;
}

static void read_enrolled(struct restoring *restoring, const json_t *body, int64_t at_ms)
{
	const json_t *lines = json_object_get(body, "evidence"), *line;
	size_t index;
	(void)at_ms;
	json_array_foreach(lines, index, line) {
		enum evidence_grade grade = EVIDENCE_OBSERVED;
		for (enum evidence_grade known = EVIDENCE_OBSERVED; known <= EVIDENCE_PROBED; known++) {
			if (!strcmp(text(line, "grade"), evidence_grade_name(known)))
				grade = known;
		}
		(void)evidence_add(&restoring->drive->evidence, text(line, "name"), grade, NULL, "%s", text(line, "detail"));
	}
}

static void read_step_failed(struct restoring *restoring, const json_t *body, int64_t at_ms)
{
	(void)at_ms;
	for (enum life_step step = STEP_ADMISSION; step < STEP_COUNT; step++) {
		if (!strcmp(text(body, "step"), life_step_name(step)))
			restoring->facts.failed_step = step;
	}
	say(restoring->facts.reason, sizeof(restoring->facts.reason), text(body, "reason"));
	say(restoring->facts.detail, sizeof(restoring->facts.detail), text(body, "detail"));
}

static void read_intent(struct restoring *restoring, const json_t *body, int64_t at_ms)
{
	(void)body;
	(void)at_ms;
	restoring->intent = true;
}

static void read_launched(struct restoring *restoring, const json_t *body, int64_t at_ms)
{
	restoring->launched = true;
	restoring->facts.launched_at_ns = number(body, "at_ns", 0);
	restoring->drive->launched_at_ms = at_ms;
}

static void read_stop(struct restoring *restoring, const json_t *body, int64_t at_ms)
{
	(void)at_ms;
	for (enum stop_cause cause = STOP_CANCEL; cause < STOP_CAUSE_COUNT && restoring->facts.stop == STOP_NONE; cause++) {
		if (!strcmp(text(body, "cause"), stop_cause_name(cause))) {
			restoring->facts.stop = cause;
			restoring->facts.stop_at_ns = number(body, "at_ns", 0);
		}
	}
}

static void read_exit(struct restoring *restoring, const json_t *body, int64_t at_ms)
{
	struct main_exit *end = &restoring->facts.exit;
	for (enum main_end how = MAIN_EXITED; how <= MAIN_NOT_EXECUTED; how++) {
		if (!strcmp(text(body, "how"), body_main_end(how)))
			end->how = how;
	}
	end->code = (int)number(body, "code", 0);
	end->signal = (int)number(body, "signal", 0);
	end->at_ns = number(body, "exit_at_ns", 0);
	end->killed_by_us = json_is_true(json_object_get(body, "killed_by_us"));
	restoring->facts.descendants_alive = (int)number(body, "descendants_alive", -1);
	restoring->drive->exited_at_ms = at_ms;
	if (restoring->launched && end->at_ns >= restoring->facts.launched_at_ns)
		restoring->drive->wall_ns = end->at_ns - restoring->facts.launched_at_ns;
}

static void read_drained(struct restoring *restoring, const json_t *body, int64_t at_ms)
{
	struct boundary_drain *retained = &restoring->drive->retained;
	(void)at_ms;
	restoring->drained = true;
	retained->stdout_retained = json_is_true(json_object_get(body, "stdout_retained"));
	retained->stderr_retained = json_is_true(json_object_get(body, "stderr_retained"));
	restoring->retained = retained->stdout_retained || retained->stderr_retained;
}

/* The first one tells why. */
static void read_lost(struct restoring *restoring, const json_t *body, int64_t at_ms)
{
	(void)at_ms;
	if (restoring->facts.boundary_reason[0])
		return;
	restoring->lost = true;
	restoring->worker_lost = !strcmp(text(body, "reason"), LIFE_REASON_WORKER_LOST);
	say(restoring->facts.boundary_reason, sizeof(restoring->facts.boundary_reason), text(body, "reason"));
	say(restoring->facts.boundary_detail, sizeof(restoring->facts.boundary_detail), text(body, "detail"));
}

static void read_not_empty(struct restoring *restoring, const json_t *body, int64_t at_ms)
{
	(void)at_ms;
	if (restoring->facts.boundary_reason[0])
		return;
	say(restoring->facts.boundary_reason, sizeof(restoring->facts.boundary_reason), LIFE_REASON_NOT_VERIFIED_EMPTY);
	say(restoring->facts.boundary_detail, sizeof(restoring->facts.boundary_detail), text(body, "detail"));
}

static void read_cleaned(struct restoring *restoring, const json_t *body, int64_t at_ms)
{
	struct boundary_usage *usage = &restoring->drive->usage;
	const json_t *known = json_object_get(body, "usage");
	(void)at_ms;
	usage->cpu_user_ns = number(known, "cpu_user_ns", -1);
	usage->cpu_system_ns = number(known, "cpu_system_ns", -1);
	usage->cpu_total_ns = number(known, "cpu_total_ns", -1);
	usage->memory_peak_bytes = number(known, "memory_peak_bytes", -1);
	usage->memory_peak_anon_sampled_bytes = number(known, "memory_peak_anon_sampled_bytes", -1);
	usage->pids_peak = number(known, "pids_peak", -1);
	usage->oom_kills = number(known, "oom_kills", -1);
	usage->survivors_killed = (int)number(known, "survivors_killed", 0);
	usage->space_full = json_is_true(json_object_get(known, "space_full"));
}

static void read_quarantined(struct restoring *restoring, const json_t *body, int64_t at_ms)
{
	(void)body;
	(void)at_ms;
	restoring->quarantined = true;
}

static const struct reader {
	const char *kind;
	void (*read)(struct restoring *restoring, const json_t *body, int64_t at_ms);
} readers[] = {
	{"accepted", read_accepted},
	{"admission", read_admission},
	{"enrolled", read_enrolled},
	{"step_failed", read_step_failed},
	{"launch_intent", read_intent},
	{"launched", read_launched},
	{"limit", read_stop},
	{"cancel", read_stop},
	{"main_exited", read_exit},
	{"drained", read_drained},
	{"boundary_lost", read_lost},
	{"cleaned", read_cleaned},
	{"cleanup_failed", read_not_empty},
	{"verify_failed", read_not_empty},
	{"quarantined", read_quarantined},
};

static int read_record(void *context, const struct ledger_record *record, const struct digest *digest)
{
	struct restoring *restoring = context;
	json_t *body JSON_AUTO = NULL;
	(void)digest; /* whether the chain holds is for `verify` to say */
	if (json_parse(record->body, strlen(record->body), &body, NULL) < 0)
		return 0;
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		if (!strcmp(record->kind, readers[i].kind))
			readers[i].read(restoring, body, record->at_ms);
	}
	return 0;
}

/* The row lags behind the records, and both behind what was: a state column is written with the commits only. */
static enum life_state reached(const struct restoring *restoring, enum life_state row, bool intent)
{
	const struct life *facts = &restoring->facts;
	if (row > LIFE_EXITED)
		return row;
	if (restoring->quarantined)
		return LIFE_QUARANTINED;
	if (facts->exit.how != MAIN_UNKNOWN)
		return LIFE_EXITED;
	if (restoring->launched)
		return LIFE_RUNNING;
	if (facts->failed_step != STEP_NONE || facts->stop != STOP_NONE)
		return LIFE_CLEANING;
	return intent && row < LIFE_ENROLLED ? LIFE_ENROLLED : row;
}

static void set_life(struct restoring *restoring, enum life_state row)
{
	struct life *life = &restoring->drive->life;
	const struct life *facts = &restoring->facts;
	bool intent = restoring->drive->attempt.intent || restoring->intent || row == LIFE_RUNNING || row == LIFE_EXITED;
	restoring->launched = restoring->launched && facts->failed_step == STEP_NONE;
	life_restore(life, reached(restoring, row, intent), intent, restoring->quarantined);
	life->retriable = !restoring->drive->attempt.attached && restoring->drive->attempt.number < LEDGER_ATTEMPTS_MAX;
	life->launched = life->launched || restoring->launched;
	life->launched_at_ns = facts->launched_at_ns;
	life->stop = facts->stop;
	life->stop_at_ns = facts->stop_at_ns;
	life->failed_step = facts->failed_step;
	memcpy(life->reason, facts->reason, sizeof(life->reason));
	memcpy(life->detail, facts->detail, sizeof(life->detail));
	if (life->launched) {
		life->exit = facts->exit;
		life->descendants_alive = facts->descendants_alive;
		life->drained = restoring->drained;
		life->retained = restoring->retained;
	}
	life->interrupted = restoring->worker_lost && intent && life->failed_step == STEP_NONE && life->stop == STOP_NONE &&
	                    !restoring->drained;
	life->boundary_misbehaved = life->boundary_misbehaved || (restoring->lost && life->launched && !life->interrupted);
	if (facts->boundary_reason[0] && (life->boundary_misbehaved || life->interrupted)) {
		memcpy(life->boundary_reason, facts->boundary_reason, sizeof(life->boundary_reason));
		memcpy(life->boundary_detail, facts->boundary_detail, sizeof(life->boundary_detail));
	}
}

int drive_restore(struct drive *drive, char **ret_principal, struct err *err)
{
	struct ledger *ledger = drive->ledger;
	struct restoring restoring = {.drive = drive, .facts = {.descendants_alive = -1}};
	enum life_state row;
	bool cancelled = false;
	int rc = life_state_parse(drive->attempt.state, &row, err);
	if (rc == 0)
		rc = ledger->ops->records(ledger, drive->attempt.attempt_id, read_record, &restoring, err);
	if (rc == 0)
		rc = ledger->ops->cancel_requested(ledger, drive->attempt.run_id, &cancelled, err);
	if (rc == 0 && !restoring.principal)
		restoring.principal = strdup("");
	if (rc == 0 && !restoring.principal)
		rc = err_set(err, ERR_NO_MEMORY, "restore attempt %s", drive->attempt.attempt_id);
	if (rc < 0) {
		free(restoring.principal);
		return rc;
	}
	if (cancelled && restoring.facts.stop == STOP_NONE && restoring.facts.failed_step == STEP_NONE) {
		restoring.facts.stop = STOP_CANCEL;
		restoring.facts.stop_at_ns = restoring.facts.launched_at_ns;
	}
	set_life(&restoring, row);
	*ret_principal = restoring.principal;
	return 0;
}
