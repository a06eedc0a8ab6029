/* receipt_fill.c - the verdict and the receipt of an attempt, and the one transaction that seals both. */
#include "runner/drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/json.h"
#include "evidence/receipt.h"

static struct verdict_totals totals_of(const struct drive *drive)
{
	struct verdict_totals totals = {
		.wall_ns = drive->wall_ns,
		.cpu_ns = drive->usage.cpu_total_ns,
		.oom_kills = drive->usage.oom_kills,
	};
	if (!drive->plan)
		return totals;
	struct capture *const captures[2] = {drive->standard_output, drive->standard_error};
	for (size_t i = 0; i < 2; i++) {
		struct capture_state state = {.overflow = false};
		if (captures[i])
			capture_get_state(captures[i], &state);
		totals.output_over |= state.overflow && drive->plan->limits.on_overflow == OVERFLOW_KILL;
	}
	if (drive->artifacts.rejected > 0)
		drive_say_rejections(&drive->artifacts, totals.artifact_rejected);
	totals.retained_ignored = drive->plan->retained_output == RETAINED_IGNORE;
	totals.wall_limit_ns = drive->plan->limits.wall_ms * NS_PER_MS;
	totals.cpu_limit_ns = drive->plan->limits.cpu_ms * NS_PER_MS;
	return totals;
}

/* Without its outputs a run is no success; whose failure that was depends on who is left to tell. */
static void note_artifact_failure(const struct drive *drive, struct life *life)
{
	if (life->boundary_misbehaved || life->interrupted)
		return;
	life->interrupted = drive->provider != NULL;
	life->boundary_misbehaved = !life->interrupted;
	snprintf(life->boundary_reason, sizeof(life->boundary_reason), "%s",
	         life->interrupted ? "outputs_not_collected" : "artifacts_not_kept");
	snprintf(life->boundary_detail, sizeof(life->boundary_detail), "%s", drive->artifact_failure);
}

void drive_decide(const struct drive *drive, struct verdict *ret)
{
	struct verdict_totals totals = totals_of(drive);
	struct life life = drive->life;
	if (drive->stream_failure[0] && !life.boundary_misbehaved) { /* the run must not be judged by streams that are incomplete */
		life.boundary_misbehaved = true;
		snprintf(life.boundary_reason, sizeof(life.boundary_reason), "output_not_kept");
		snprintf(life.boundary_detail, sizeof(life.boundary_detail), "%s", drive->stream_failure);
	}
	if (drive->artifact_failure[0])
		note_artifact_failure(drive, &life);
	verdict_decide(&life, &totals, ret);
	if (drive->provider && ret->kind == VERDICT_CANCELLED) /* when it was asked for, on which clock, is not known any more */
		snprintf(ret->detail, sizeof(ret->detail), "recorded before its keeper was lost");
}

/* The families of what was verified: "ns" of "ns.pid", each once, in the order of the evidence. */
static json_t *layers_of(const struct evidence_list *evidence)
{
	json_t *layers = json_array();
	for (size_t i = 0; i < evidence->count; i++) {
		const char *name = evidence->lines[i].name;
		size_t length = strcspn(name, "."), index;
		json_t *layer;
		bool known = false;
		json_array_foreach(layers, index, layer)
			known = known || (json_string_length(layer) == length && !strncmp(json_string_value(layer), name, length));
		if (!known && json_array_append_new(layers, json_stringn(name, length)) < 0) {
			json_decref(layers);
			return NULL;
		}
	}
	return layers;
}

static int limits_of(const struct plan *plan, json_t **ret, struct err *err)
{
	json_t *document JSON_AUTO = NULL;
	if (!plan)
		return 0;
	int rc = json_parse(plan->canonical, plan->canonical_length, &document, err);
	if (rc == 0)
		*ret = json_incref(json_object_get(document, "limits"));
	return rc;
}

/* What build() needs while the ledger's transaction is open. */
struct sealing {
	const struct drive *drive;
	struct verdict verdict;
	json_t *limits, *layers, *evidence, *artifacts;
	char *text;
};

static struct receipt_stream stream_of(const struct drive *drive, size_t i, bool retained)
{
	const struct drive_stream *stream = &drive->streams[i];
	struct receipt_stream receipt = {
		.sha256 = stream->sha256,
		.bytes = stream->state.total_bytes,
		.kept_bytes = stream->state.kept_bytes,
		.dropped_bytes = stream->state.dropped_bytes,
		.drained = stream->state.drained,
		.retained = retained,
	};
	return receipt;
}

/* The two add up to the total as it rounds, which is what the limit is about; each rounded by itself could be a millisecond off. */
static void fill_cpu(const struct boundary_usage *usage, struct receipt *receipt)
{
	bool split = usage->cpu_user_ns >= 0 && usage->cpu_total_ns >= usage->cpu_user_ns;
	receipt->cpu_user_ms = clock_ns_to_ms(usage->cpu_user_ns);
	receipt->cpu_system_ms = split ? clock_ns_to_ms(usage->cpu_total_ns) - receipt->cpu_user_ms : clock_ns_to_ms(usage->cpu_system_ns);
}

static void fill_usage(const struct drive *drive, struct receipt *receipt)
{
	const struct boundary_usage *usage = &drive->usage;
	receipt->wall_ms = clock_ns_to_ms(drive->wall_ns);
	fill_cpu(usage, receipt);
	receipt->memory_peak_bytes = usage->memory_peak_bytes;
	receipt->memory_peak_anon_sampled_bytes = usage->memory_peak_anon_sampled_bytes;
	receipt->pids_peak = usage->pids_peak;
	receipt->oom_kills = usage->oom_kills;
	receipt->survivors_killed = usage->survivors_killed;
	receipt->space_full = usage->space_full;
	receipt->standard_output = stream_of(drive, 0, drive->retained.stdout_retained);
	receipt->standard_error = stream_of(drive, 1, drive->retained.stderr_retained);
}

static void fill_binding(const struct drive *drive, const struct ledger_seal_numbers *numbers, struct receipt *receipt)
{
	receipt->has_plan = drive->plan != NULL;
	if (drive->plan)
		receipt->plan = drive->plan->digest;
	receipt->manifest = drive->manifest;
	receipt->policy = drive->policy;
	receipt->has_admission = drive->has_admission;
	receipt->admission = drive->admission;
	receipt->lease_generations = numbers->lease_generations;
	receipt->last_record = numbers->last_record;
	receipt->ledger_id = drive->ledger->ops->id(drive->ledger);
	receipt->seal_seq = numbers->seal_seq;
	receipt->previous_seal = numbers->previous;
	receipt->times = (struct receipt_times){
		.admitted_at = drive->admitted_at_ms,
		.launched_at = drive->launched_at_ms,
		.exited_at = drive->exited_at_ms,
		.sealed_at = clock_wall_ms(),
		.drain_ms = drive->drain_ms,
		.cleanup_ms = drive->cleanup_took_ms,
	};
}

static int build(void *context, const struct ledger_seal_numbers *numbers, struct ledger_seal_built *ret, struct err *err)
{
	struct sealing *sealing = context;
	const struct drive *drive = sealing->drive;
	const struct verdict *verdict = &sealing->verdict;
	struct receipt receipt = {
		.run_id = drive->attempt.run_id,
		.attempt_id = drive->attempt.attempt_id,
		.owner = drive->principal,
		.verdict = verdict_name(verdict->kind),
		.reason = verdict->reason,
		.detail = verdict->detail,
		.exit_code = verdict->exit_code,
		.signal = verdict->signal > 0 ? verdict_signal_name(verdict->signal) : NULL,
		.limits = sealing->limits,
		.artifacts = sealing->artifacts,
		.boundary_kind = drive->attempt.profile,
		.layers = sealing->layers,
		.evidence = sealing->evidence,
		.verified_empty = drive->life.verified_empty,
	};
	fill_usage(drive, &receipt);
	fill_binding(drive, numbers, &receipt);
	free(sealing->text);
	sealing->text = NULL;
	int rc = receipt_seal(&receipt, drive->key, &sealing->text, &ret->digest, ret->signature, err);
	if (rc < 0)
		return rc;
	ret->receipt = sealing->text;
	snprintf(ret->key, sizeof(ret->key), "%s", key_fingerprint(drive->key));
	memcpy(ret->public_key, key_public(drive->key), sizeof(ret->public_key));
	return 0;
}

static void rows_of(const struct drive *drive, struct ledger_stream rows[static 2])
{
	static const char *const names[2] = {"stdout", "stderr"};
	for (size_t i = 0; i < 2; i++) {
		const struct drive_stream *stream = &drive->streams[i];
		rows[i] = (struct ledger_stream){
			.name = names[i],
			.sha256 = stream->sha256,
			.bytes = stream->state.total_bytes,
			.kept_bytes = stream->state.kept_bytes,
			.dropped_bytes = stream->state.dropped_bytes,
			.drained = stream->state.drained,
			.data = stream->data,
		};
	}
}

static struct ledger_artifact *artifacts_of(const struct artifact_list *list)
{
	struct ledger_artifact *rows = calloc(list->count + 1, sizeof(*rows));
	for (size_t i = 0; rows && i < list->count; i++) {
		const struct artifact *artifact = &list->items[i];
		rows[i] = (struct ledger_artifact){
			.path = artifact->path,
			.size_bytes = artifact->size_bytes,
			.sha256 = artifact->sha256,
			.mode = artifact->mode,
		};
	}
	return rows;
}

static int commit(struct drive *drive, struct sealing *sealing, struct err *err)
{
	struct ledger_stream rows[2];
	struct ledger_artifact *artifacts = artifacts_of(&drive->artifacts);
	if (!artifacts)
		return err_set(err, ERR_NO_MEMORY, "the artifacts' rows");
	rows_of(drive, rows);
	struct ledger_seal seal = {
		.attempt_id = drive->attempt.attempt_id,
		.generation = drive->attempt.generation,
		.owner_id = drive->attempt.owner_id,
		.cancel_heard = drive->heard > 0,
		.records = drive->journal.records,
		.record_count = drive->journal.count,
		.streams = rows,
		.stream_count = drive->life.launched && drive->standard_output ? 2 : 0,
		.artifacts = artifacts,
		.artifact_count = drive->artifacts.count,
		.verdict = verdict_name(sealing->verdict.kind),
		.reason = sealing->verdict.reason,
		.build = build,
		.context = sealing,
	};
	snprintf(seal.key, sizeof(seal.key), "%s", key_fingerprint(drive->key));
	int rc = drive->ledger->ops->seal(drive->ledger, &seal, err);
	free(artifacts);
	return rc;
}

/* It is verified empty, and its outputs are collected. */
static void release_boundary(struct drive *drive)
{
	if (!drive->request || !drive->request->released)
		return;
	drive_leave_boundary(drive);
	drive->request->released(drive->request->context);
}

/* What the receipt says, for the verdict as it is now. */
static int fill(struct sealing *sealing, struct err *err)
{
	const struct drive *drive = sealing->drive;
	drive_decide(drive, &sealing->verdict);
	sealing->layers = layers_of(&drive->evidence);
	sealing->evidence = body_evidence(&drive->evidence);
	sealing->artifacts = artifact_list_items(&drive->artifacts);
	int rc = limits_of(drive->plan, &sealing->limits, err);
	if (rc == 0 && (!sealing->layers || !sealing->evidence || !sealing->artifacts))
		rc = err_set(err, ERR_NO_MEMORY, "the receipt's lists");
	return rc;
}

static void sealing_done(struct sealing *sealing)
{
	free(sealing->text);
	json_decref(sealing->limits);
	json_decref(sealing->layers);
	json_decref(sealing->evidence);
	json_decref(sealing->artifacts);
	*sealing = (struct sealing){.drive = sealing->drive};
}

/* A cancellation that came while streams and outputs were collected, which may take its time: it still counts (R8), and what was
 * collected does not. */
static int hear_late(struct drive *drive, struct err *err)
{
	struct life_event stop;
	struct life_actions none;
	struct err failure = ERR_INIT;
	if (drive_hear_ledger(drive, &stop, &failure) != CAME_EVENT)
		return err_set(err, failure.code < 0 ? failure.code : ERR_INTERNAL, "hear of the cancellation: %s", failure.text);
	if (drive->artifacts.count + drive->artifacts.rejected > 0)
		journal_drop_last(&drive->journal); /* it says so */
	artifact_list_done(&drive->artifacts);
	drive->artifact_failure[0] = '\0';
	int rc = life_step(&drive->life, &stop, &none, err);
	return rc < 0 ? rc : drive_record(drive, &stop, err);
}

static int fill_and_commit(struct drive *drive, struct sealing *sealing, struct err *err)
{
	struct err failure = ERR_INIT;
	int rc = fill(sealing, err);
	if (rc < 0)
		return rc;
	rc = commit(drive, sealing, &failure);
	if (rc == 0)
		return 0;
	if (rc != ERR_CONFLICT || drive->heard > 0)
		return err_set(err, rc, "%s", failure.text);
	sealing_done(sealing);
	rc = hear_late(drive, err);
	if (rc == 0)
		rc = fill(sealing, err);
	return rc < 0 ? rc : commit(drive, sealing, err);
}

int drive_seal(struct drive *drive, struct err *err)
{
	int rc = drive_keep_streams(drive, err);
	if (rc == 0)
		rc = drive_collect(drive, err);
	if (rc < 0)
		return rc;
	release_boundary(drive);
	struct sealing sealing = {.drive = drive};
	rc = FAULT_ERR("run.seal", err);
	if (rc == 0)
		rc = fill_and_commit(drive, &sealing, err);
	drive_release_store(drive);
	if (rc == 0) {
		drive->result.verdict = sealing.verdict;
		drive->result.provisional = false;
		drive->result.receipt = sealing.text;
		drive->result.usage = drive->usage;
		sealing.text = NULL;
		journal_done(&drive->journal);
	}
	sealing_done(&sealing);
	return rc;
}
