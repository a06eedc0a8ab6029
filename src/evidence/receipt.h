/* receipt.h - the terminal, immutable record of a run: its fields, its canonical JSON, its signature. Pure but for libcrypto. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "evidence/key.h"

#define RECEIPT_VERSION "caisson.receipt/v1"

struct receipt_stream {
	struct digest sha256;
	int64_t bytes, kept_bytes, dropped_bytes;
	bool drained, retained;
};

struct receipt_times { /* wall-clock ms since 1970; -1: did not happen. durations in ms; -1 unknown */
	int64_t admitted_at, launched_at, exited_at, sealed_at, drain_ms, cleanup_ms;
};

/* Everything borrowed. -1 in a number that could not be read becomes null, never 0. */
struct receipt {
	const char *run_id, *attempt_id, *owner; /* owner: the principal, "uid:0" */
	const char *verdict, *reason, *detail;
	int exit_code;       /* -1: null */
	const char *signal;  /* NULL: null; never both */
	const json_t *limits;/* as enforced: the plan's `limits` object */
	int64_t wall_ms, cpu_user_ms, cpu_system_ms, memory_peak_bytes, memory_peak_anon_sampled_bytes, pids_peak, oom_kills;
	struct receipt_stream standard_output, standard_error;
	const json_t *artifacts; /* array */
	const char *boundary_kind;
	const json_t *layers;    /* array of strings */
	const json_t *evidence;  /* array of {name, grade, detail} */
	int survivors_killed;    /* -1: null */
	bool verified_empty, space_full;
	struct digest plan, manifest, policy, admission;
	bool has_plan, has_admission;
	int64_t lease_generations;
	struct receipt_times times;
	struct digest last_record;
	const char *ledger_id;
	int64_t seal_seq;
	struct digest previous_seal;
};

/* Builds the canonical JSON without `signature`, signs its digest with the key, adds key fingerprint and signature, and gives the canonical
 * text (free) and the seal's digest: SHA-256 over the whole signed text. */
int receipt_seal(const struct receipt *receipt, const struct key *key, char **ret_text, struct digest *ret_digest,
                 uint8_t ret_signature[static 64], struct err *err);

/* Checks the signature inside a receipt's text with this public key. ERR_DAMAGED says what does not hold. */
int receipt_check(const char *text, const uint8_t public_key[static 32], struct err *err);
