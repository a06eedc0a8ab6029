/* request.h - what `caisson` asks its client to do: one JSON document on a descriptor, made by cli/client.c and by nothing else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"

enum { REQUEST_MAX_BYTES = 5 * 1024 * 1024 }; /* a manifest, and little else */

/* Texts are borrowed from the document. What is absent is NULL, false or 0. */
struct request {
	json_t *document;
	const char *socket;
	const char *program, *ledger; /* batch: how to start a keeper where none answers; else NULL */
	const char *run;
	const char *file; /* batch: "-" for standard input */
	const char *key;
	json_t *manifest;
	bool json, quiet, summary, wait, follow, only_stdout, only_stderr, unordered;
	int64_t in_flight;
	int64_t slot;        /* recover */
	int64_t patience_ms; /* how long a keeper may be away */
};

/* Reads it to its end. ERR_INVALID names the JSON path. request_done in every case. */
int request_read(int fd, struct request *ret, struct err *err);
void request_done(struct request *request);
#define REQUEST_AUTO __attribute__((cleanup(request_done)))
