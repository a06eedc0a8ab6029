/* batch_job.h - one line of a batch on its way: its inputs are sent, it is submitted, waited for, cancelled if need be.
 *
 * A job has at most one call under way. What is lost is sent again under the same key, so that the run is the same one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "client/batch_line.h"
#include "client/http.h"
#include "client/sources.h"
#include "client/upload_cache.h"

enum job_step { JOB_UPLOAD, JOB_SUBMIT, JOB_WAIT, JOB_CANCEL };

struct job {
	bool used;
	int64_t place; /* in batch_order */
	struct batch_line line;
	enum job_step step;
	struct http_call call;
	int64_t retry_at_ns; /* when the call is made again; 0: it is under way */
	unsigned losses;     /* one after the other, and when the first was */
	int64_t lost_since_ns;
	bool unsure;          /* JOB_SUBMIT: a keeper has heard it, and its answer was lost */
	struct source source; /* JOB_UPLOAD: what is sent, for which input */
	json_t *input;
	char input_path[JSON_PATH_MAX];
	json_t *original;     /* the manifest with its sources, while one of them was found in the cache; else NULL */
	bool distrusts_cache; /* what was found there is not in the store any more */
	struct buf text;      /* JOB_SUBMIT: the manifest */
	char run_id[ID_SIZE]; /* empty until it is submitted */
	bool cancel, cancel_sent;
	json_t *result; /* not NULL: it is over. What is said of the line */
	bool sealed;    /* and it has a receipt */
};

struct job_context {
	struct http *http;
	struct upload_cache *cache;
	int64_t patience_ms;
};

/* Takes the line over. */
void job_begin(struct job *job, const struct job_context *context, struct batch_line *line);

/* Its call is over. */
void job_hear(struct job *job, const struct job_context *context);

/* Makes a call again that is due. */
void job_tick(struct job *job, const struct job_context *context, int64_t now_ns);

/* Its run is to be cancelled, or, before it is submitted, not to be submitted. */
void job_cancel(struct job *job, const struct job_context *context);

/* Ends it with an error. */
void job_abandon(struct job *job, const struct job_context *context, const struct err *err);

/* Its result was taken: the job is free for another line. */
void job_clear(struct job *job);
