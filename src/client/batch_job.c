/* batch_job.c - takes one line of a batch through its steps. */
#include "client/batch_job.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "client/backoff.h"
#include "client/client.h"
#include "client/outcome.h"
#include "client/reply.h"

enum { ROOM_MIN_MS = 100 };

static void take_step(struct job *job, const struct job_context *context);

static void release_call(struct job *job, const struct job_context *context)
{
	http_stop(context->http, &job->call);
	sources_close(&job->source);
}

/* With the members that every result has. */
static void finish(struct job *job, const struct job_context *context, json_t *result)
{
	release_call(job, context);
	json_object_set_new(result, "line", json_integer(job->line.number));
	json_object_set_new(result, "key", json_string(job->line.key));
	if (*job->run_id)
		json_object_set_new(result, "run", json_string(job->run_id));
	job->result = result;
}

static void finish_refused(struct job *job, const struct job_context *context, const struct refusal *refusal)
{
	json_t *error = json_pack("{s:s,s:s}", "code", refusal->code, "message", refusal->err.text);

	if (*refusal->path)
		json_object_set_new(error, "path", json_string(refusal->path));
	finish(job, context, json_pack("{s:o}", "error", error));
}

static void finish_failed(struct job *job, const struct job_context *context, const struct err *err)
{
	struct refusal refusal;

	refusal_of_error(err, &refusal);
	err_context(&refusal.err, err->code, "line %lld", (long long)job->line.number);
	finish_refused(job, context, &refusal);
}

/* The keeper said no, or nothing for too long. */
static void finish_answered(struct job *job, const struct job_context *context)
{
	struct refusal refusal;

	refusal_of_call(&job->call, &refusal);
	err_context(&refusal.err, refusal.err.code, "line %lld", (long long)job->line.number);
	finish_refused(job, context, &refusal);
}

/* Replaces the sources that the keeper has by what it calls them. *ret_more: job->input is one that it has not, and is open. */
static int open_next_source(struct job *job, const struct job_context *context, bool *ret_more, struct err *err)
{
	while ((job->input = sources_next(job->line.manifest, job->input_path))) {
		int result = sources_open(job->input, false, &job->source, err);
		const char *known = result || job->distrusts_cache || job->source.tree ? NULL : upload_cache_find(context->cache, &job->source.file);

		if (known) {
			if (!job->original)
				job->original = json_deep_copy(job->line.manifest);
			sources_close(&job->source);
			result = sources_replace(job->input, known, err);
		}
		if (result)
			return err_context(err, result, "%s.source", job->input_path);
		if (!known) {
			*ret_more = true;
			return 0;
		}
	}
	*ret_more = false;
	return 0;
}

static int prepare_upload(struct job *job, struct err *err)
{
	int result = sources_call(&job->source, &job->call, err);

	return result ? err_context(err, result, "%s.source", job->input_path) : 0;
}

static int prepare_submit(struct job *job, struct err *err)
{
	int result = job->text.len ? 0 : json_canonical(job->line.manifest, &job->text, err);

	http_call_set(&job->call, "POST", "/v1/runs");
	job->call.idempotency_key = job->line.key;
	job->call.body = job->text.data;
	job->call.body_length = job->text.len;
	return result;
}

static int prepare(struct job *job, struct err *err)
{
	switch (job->step) {
	case JOB_UPLOAD:
		return prepare_upload(job, err);
	case JOB_SUBMIT:
		return prepare_submit(job, err);
	case JOB_WAIT:
		http_call_set(&job->call, "GET", "/v1/runs/%s?wait_ms=%d", job->run_id, CLIENT_WAIT_MS);
		job->call.wait_ms = CLIENT_WAIT_MS;
		return 0;
	case JOB_CANCEL:
		http_call_set(&job->call, "POST", "/v1/runs/%s/cancel", job->run_id);
		return 0;
	}
	return err_set(err, ERR_INTERNAL, "unknown step");
}

static void make_call(struct job *job, const struct job_context *context)
{
	struct err err = ERR_INIT;
	int result = prepare(job, &err);

	job->retry_at_ns = 0;
	if (result == 0)
		result = http_start(context->http, &job->call, &err);
	if (result)
		finish_failed(job, context, &err);
}

static void take_step(struct job *job, const struct job_context *context)
{
	struct err err = ERR_INIT;
	bool more = false;

	if (*job->run_id) {
		job->step = job->cancel && !job->cancel_sent ? JOB_CANCEL : JOB_WAIT;
	} else if (open_next_source(job, context, &more, &err)) {
		finish_failed(job, context, &err);
		return;
	} else {
		job->step = more ? JOB_UPLOAD : JOB_SUBMIT;
	}
	make_call(job, context);
}

void job_begin(struct job *job, const struct job_context *context, struct batch_line *line)
{
	int64_t place = job->place;

	*job = (struct job){.used = true, .place = place, .line = *line, .call = HTTP_CALL_INIT, .source = SOURCE_NONE};
	job->text = BUF_INIT(MANIFEST_MAX_BYTES);
	*line = (struct batch_line){0};
	if (job->line.refusal.err.code)
		finish_refused(job, context, &job->line.refusal);
	else
		take_step(job, context);
}

static void retry_later(struct job *job, int64_t ms)
{
	job->retry_at_ns = clock_mono_ns() + ms * NS_PER_MS;
}

/* A submission that was lost may have been taken: only its answer tells which run is to be cancelled. */
static bool may_have_been_taken(const struct job *job)
{
	return *job->run_id || (job->step == JOB_SUBMIT && (!job->retry_at_ns || job->unsure));
}

static void finish_not_submitted(struct job *job, const struct job_context *context)
{
	struct err err = ERR_INIT;

	err_set(&err, ERR_STATE, "not submitted: the batch was interrupted");
	finish_failed(job, context, &err);
}

static void hear_loss(struct job *job, const struct job_context *context)
{
	int64_t now_ns = clock_mono_ns();

	if (job->losses++ == 0)
		job->lost_since_ns = now_ns;
	if (!job->call.refused && job->call.status != HTTP_UNAVAILABLE)
		job->unsure = true;
	if (now_ns - job->lost_since_ns > context->patience_ms * NS_PER_MS) {
		finish_answered(job, context);
		return;
	}
	retry_later(job, backoff_ms(job->losses));
	if (job->cancel && !may_have_been_taken(job))
		finish_not_submitted(job, context);
}

static void hear_upload(struct job *job, const struct job_context *context)
{
	struct err err = ERR_INIT;
	int result = sources_settle(&job->source, job->input, &job->call, &err);

	if (result > 0) {
		make_call(job, context);
		return;
	}
	if (result == 0 && !job->source.tree)
		upload_cache_add(context->cache, &job->source.file, json_string_value(json_object_get(job->input, "digest")),
		                 clock_wall_ms());
	sources_close(&job->source);
	if (result) {
		err_context(&err, result, "%s.source", job->input_path);
		finish_failed(job, context, &err);
		return;
	}
	take_step(job, context);
}

/* A submission was refused. What the cache knows may have been swept from the store since: only without it is the refusal the
 * line's. */
static void send_again(struct job *job, const struct job_context *context)
{
	json_decref(job->line.manifest);
	job->line.manifest = job->original;
	job->original = NULL;
	job->distrusts_cache = true;
	buf_done(&job->text);
	take_step(job, context);
}

static void hear_submission(struct job *job, const struct job_context *context)
{
	JSON_AUTO json_t *document = NULL;
	struct err err = ERR_INIT;

	if (!reply_good(&job->call) && job->original && !job->cancel) {
		send_again(job, context);
		return;
	}
	if (!reply_good(&job->call)) {
		finish_answered(job, context);
		return;
	}

	int result = reply_document(&job->call, &document, &err);
	const char *run = json_string_value(json_object_get(document, "run"));

	if (result == 0 && (!run || !id_valid("run", run)))
		result = err_set(&err, ERR_PROTOCOL, "the keeper's answer names no run");
	if (result) {
		finish_failed(job, context, &err);
		return;
	}
	memcpy(job->run_id, run, ID_SIZE);
	buf_done(&job->text);
	json_decref_p(&job->line.manifest);
	json_decref_p(&job->original);
	job->line.manifest = job->original = NULL;
	take_step(job, context);
}

static void hear_state(struct job *job, const struct job_context *context)
{
	JSON_AUTO json_t *state = NULL;
	struct err err = ERR_INIT;

	if (!reply_good(&job->call)) {
		finish_answered(job, context);
		return;
	}

	int result = reply_document(&job->call, &state, &err);

	if (result) {
		finish_failed(job, context, &err);
		return;
	}
	if (!outcome_known(state)) {
		retry_later(job, BACKOFF_FIRST_MS); /* also when it did not wait */
		return;
	}
	job->sealed = outcome_receipt(state) != NULL;
	if (job->sealed)
		finish(job, context, json_pack("{s:O}", "receipt", outcome_receipt(state)));
	else
		finish(job, context, json_pack("{s:o}", "provisional_result", outcome_provisional(state)));
}

/* When a full keeper may have room: as it says, within our own bounds. */
static int64_t room_ms(const struct http_call *call)
{
	int64_t ms = call->retry_after_ms < ROOM_MIN_MS ? ROOM_MIN_MS : call->retry_after_ms;

	return ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
}

void job_hear(struct job *job, const struct job_context *context)
{
	/* Full is not away: whoever waits for room waits as long as it takes. */
	if (job->call.result == 0 && job->call.status == HTTP_TOO_MANY && !job->cancel) {
		job->losses = 0;
		job->unsure = false;
		retry_later(job, room_ms(&job->call));
		return;
	}
	if (client_may_retry(&job->call)) {
		hear_loss(job, context);
		return;
	}
	job->losses = 0;
	switch (job->step) {
	case JOB_UPLOAD:
		hear_upload(job, context);
		break;
	case JOB_SUBMIT:
		hear_submission(job, context);
		break;
	case JOB_WAIT:
		hear_state(job, context);
		break;
	case JOB_CANCEL: /* whatever was said to it: the run's end is what counts */
		job->cancel_sent = true;
		take_step(job, context);
		break;
	}
}

void job_tick(struct job *job, const struct job_context *context, int64_t now_ns)
{
	if (job->used && !job->result && job->retry_at_ns && now_ns >= job->retry_at_ns)
		make_call(job, context);
}

void job_cancel(struct job *job, const struct job_context *context)
{
	if (!job->used || job->result || job->cancel)
		return;
	job->cancel = true;
	if (!may_have_been_taken(job)) {
		finish_not_submitted(job, context);
	} else if (job->step == JOB_WAIT) {
		http_stop(context->http, &job->call);
		take_step(job, context);
	}
}

void job_abandon(struct job *job, const struct job_context *context, const struct err *err)
{
	if (job->used && !job->result)
		finish_failed(job, context, err);
}

void job_clear(struct job *job)
{
	json_decref_p(&job->result);
	json_decref_p(&job->original);
	buf_done(&job->text);
	batch_line_done(&job->line);
	http_call_done(&job->call);
	*job = (struct job){0};
}
