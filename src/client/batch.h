/* batch.h - what the parts of `caisson batch` share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "client/batch_input.h"
#include "client/batch_job.h"
#include "client/batch_order.h"
#include "client/client.h"
#include "client/own_keeper.h"

struct batch_progress {
	bool wanted; /* standard error is a terminal */
	bool shown;  /* there is a line to be cleared */
	int64_t begun_ns, next_ns;
};

struct batch {
	const struct request *request;
	struct job_context context;
	struct upload_cache cache;
	struct batch_input input;
	struct batch_order order;
	struct job *jobs; /* request->in_flight of them */
	size_t busy;
	char key[BATCH_KEY_MAX + 1];
	struct own_keeper *own; /* NULL: there was a keeper */
	int signals;            /* signalfd */
	int first_signal;       /* 0: none came. From then on nothing is begun */
	int64_t give_up_ns;     /* 0, or when what is not over by then is left to itself */
	bool reader_gone;
	int64_t over, sealed; /* lines with a result; with a receipt */
	struct batch_progress progress;
	struct err first_error; /* of a line; code 0: none */
};

void batch_progress_begin(struct batch_progress *progress);
/* A line on the terminal, at most every so often. */
void batch_progress_show(struct batch *batch, int64_t now_ns);
void batch_progress_clear(struct batch_progress *progress);
