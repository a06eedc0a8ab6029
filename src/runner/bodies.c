/* bodies.c - what the records say, as JSON; restore.c reads the same members back. */
#include "runner/drive.h"

#include "base/json.h"

const char *body_main_end(enum main_end how)
{
	switch (how) {
	case MAIN_EXITED:
		return "exited";
	case MAIN_SIGNALED:
		return "signaled";
	case MAIN_NOT_EXECUTED:
		return "not_executed";
	case MAIN_UNKNOWN:
		break;
	}
	return "unknown";
}

json_t *body_evidence(const struct evidence_list *evidence)
{
	json_t *list = json_array();
	for (size_t i = 0; i < evidence->count; i++) {
		const struct evidence_line *line = &evidence->lines[i];
		char detail[EVIDENCE_DETAIL_MAX];
		say(detail, sizeof(detail), line->detail);
		json_t *item = json_pack("{s:s, s:s, s:s}", "name", line->name, "grade", evidence_grade_name(line->grade), "detail",
		                         detail);
		if (json_array_append_new(list, item) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *body_usage(const struct boundary_usage *usage)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:b}", "cpu_user_ns", (json_int_t)usage->cpu_user_ns,
	                 "cpu_system_ns", (json_int_t)usage->cpu_system_ns, "cpu_total_ns", (json_int_t)usage->cpu_total_ns,
	                 "memory_peak_bytes", (json_int_t)usage->memory_peak_bytes, "memory_peak_anon_sampled_bytes",
	                 (json_int_t)usage->memory_peak_anon_sampled_bytes, "pids_peak", (json_int_t)usage->pids_peak, "oom_kills",
	                 (json_int_t)usage->oom_kills, "survivors_killed", usage->survivors_killed, "space_full",
	                 (int)usage->space_full);
}

json_t *body_verdict(const struct verdict *verdict)
{
	return json_pack("{s:s, s:s, s:s}", "verdict", verdict_name(verdict->kind), "reason", verdict->reason, "detail",
	                 verdict->detail);
}

static json_t *body_exit(const struct life_event *event)
{
	return json_pack("{s:I, s:s, s:i, s:i, s:I, s:b, s:i}", "at_ns", (json_int_t)event->at_ns, "how",
	                 body_main_end(event->exit.how), "code", event->exit.code, "signal", event->exit.signal, "exit_at_ns",
	                 (json_int_t)event->exit.at_ns, "killed_by_us", (int)event->exit.killed_by_us, "descendants_alive",
	                 event->descendants_alive);
}

static json_t *body_failure(const struct life_event *event)
{
	return json_pack("{s:I, s:s, s:s}", "at_ns", (json_int_t)event->at_ns, "reason", event->reason, "detail", event->detail);
}

json_t *body_of_event(const struct drive *drive, const struct life_event *event)
{
	json_int_t at_ns = event->at_ns;
	switch (event->kind) {
	case LIFE_EV_PREPARED:
		return json_pack("{s:I, s:I}", "from_ns", (json_int_t)drive->began_ns, "at_ns", at_ns);
	case LIFE_EV_ENROLLED:
		return json_pack("{s:I, s:o}", "at_ns", at_ns, "evidence", body_evidence(&drive->evidence));
	case LIFE_EV_STEP_FAILED:
		return json_pack("{s:I, s:s, s:s, s:s}", "at_ns", at_ns, "step", life_step_name(event->step), "reason",
		                 event->reason, "detail", event->detail);
	case LIFE_EV_STOP:
		return json_pack("{s:I, s:s}", "at_ns", at_ns, "cause", stop_cause_name(event->cause));
	case LIFE_EV_MAIN_EXITED:
		return body_exit(event);
	case LIFE_EV_DRAINED:
		return json_pack("{s:I, s:b, s:b}", "at_ns", at_ns, "stdout_retained", (int)event->stdout_retained,
		                 "stderr_retained", (int)event->stderr_retained);
	case LIFE_EV_CLEANED:
		return json_pack("{s:I, s:o}", "at_ns", at_ns, "usage", body_usage(&drive->usage));
	case LIFE_EV_REFUSE:
	case LIFE_EV_BOUNDARY_LOST:
	case LIFE_EV_CLEANUP_FAILED:
	case LIFE_EV_VERIFY_FAILED:
	case LIFE_EV_RECOVERY_STARTED:
		return body_failure(event);
	case LIFE_EV_ADMIT:
	case LIFE_EV_SUSPENDED:
	case LIFE_EV_INTENT_DURABLE:
	case LIFE_EV_LAUNCHED:
	case LIFE_EV_GRACE_OVER:
	case LIFE_EV_VERIFIED_EMPTY:
	case LIFE_EV_SEALED:
	case LIFE_EV_ABANDONED:
	case LIFE_EVENT_COUNT:
		break;
	}
	return json_pack("{s:I}", "at_ns", at_ns);
}
