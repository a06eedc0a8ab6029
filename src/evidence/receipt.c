/* receipt.c - a receipt's fields as canonical JSON, signed. Pure but for libcrypto. */
#include "evidence/receipt.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"

enum {
	RECEIPT_BYTES_MAX = 4 * 1024 * 1024, /* canonical text; evidence and artifacts are bounded far below */
	SIGNATURE_BYTES = 64,
	SIGNATURE_HEX_LENGTH = 2 * SIGNATURE_BYTES,
};

static int out_of_memory(struct err *err)
{
	return err_set(err, ERR_NO_MEMORY, "out of memory");
}

/* The json_* makers below give a new reference, or NULL when out of memory; json_pack's "o" takes it, and fails on NULL. */

static json_t *known(int64_t number)
{
	return number < 0 ? json_null() : json_integer(number);
}

static json_t *moment(int64_t wall_ms)
{
	char text[CLOCK_TEXT_SIZE];

	return wall_ms < 0 ? json_null() : json_string(clock_format(wall_ms, text));
}

static json_t *digest_or_null(bool present, const struct digest *digest)
{
	char text[DIGEST_TEXT_SIZE];

	return present ? json_string(digest_text(digest, text)) : json_null();
}

static json_t *copy_or(const json_t *value, json_t *otherwise)
{
	if (!value)
		return otherwise;
	json_decref(otherwise);
	return json_deep_copy(value);
}

static json_t *stream_json(const struct receipt_stream *stream)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:b, s:b}", "sha256", digest_or_null(stream->bytes >= 0, &stream->sha256),
	                 "bytes", known(stream->bytes), "kept_bytes", known(stream->kept_bytes),
	                 "dropped_bytes", known(stream->dropped_bytes), "drained", stream->drained,
	                 "retained", stream->retained);
}

static json_t *usage_json(const struct receipt *receipt)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "wall_ms", known(receipt->wall_ms),
	                 "cpu_user_ms", known(receipt->cpu_user_ms), "cpu_system_ms", known(receipt->cpu_system_ms),
	                 "memory_peak_bytes", known(receipt->memory_peak_bytes),
	                 "memory_peak_anon_sampled_bytes", known(receipt->memory_peak_anon_sampled_bytes),
	                 "pids_peak", known(receipt->pids_peak), "oom_kills", known(receipt->oom_kills));
}

static json_t *boundary_json(const struct receipt *receipt)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:b}", "kind", receipt->boundary_kind,
	                 "layers", copy_or(receipt->layers, json_array()),
	                 "evidence", copy_or(receipt->evidence, json_array()),
	                 "survivors_killed", known(receipt->survivors_killed), "verified_empty", receipt->verified_empty);
}

static json_t *times_json(const struct receipt_times *times)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "admitted_at", moment(times->admitted_at),
	                 "launched_at", moment(times->launched_at), "exited_at", moment(times->exited_at),
	                 "sealed_at", moment(times->sealed_at), "drain_ms", known(times->drain_ms),
	                 "cleanup_ms", known(times->cleanup_ms));
}

static json_t *outcome_json(const struct receipt *receipt)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:s?, s:b}", "version", RECEIPT_VERSION,
	                 "run", receipt->run_id, "attempt", receipt->attempt_id, "owner", receipt->owner,
	                 "verdict", receipt->verdict, "reason", receipt->reason, "detail", receipt->detail,
	                 "exit_code", known(receipt->exit_code), "signal", receipt->signal, "space_full", receipt->space_full);
}

static json_t *measured_json(const struct receipt *receipt)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "limits", copy_or(receipt->limits, json_null()),
	                 "usage", usage_json(receipt), "stdout", stream_json(&receipt->standard_output),
	                 "stderr", stream_json(&receipt->standard_error), "artifacts", copy_or(receipt->artifacts, json_array()),
	                 "boundary", boundary_json(receipt), "times", times_json(&receipt->times));
}

static json_t *bound_json(const struct receipt *receipt, const struct key *key)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:n, s:I, s:s, s:I, s:o, s:o, s:s}",
	                 "plan", digest_or_null(receipt->has_plan, &receipt->plan),
	                 "manifest", digest_or_null(true, &receipt->manifest), "policy", digest_or_null(true, &receipt->policy),
	                 "admission", digest_or_null(receipt->has_admission, &receipt->admission), "approval",
	                 "lease_generations", (json_int_t)receipt->lease_generations, "ledger", receipt->ledger_id,
	                 "seal_seq", (json_int_t)receipt->seal_seq, "previous_seal", digest_or_null(true, &receipt->previous_seal),
	                 "last_record", digest_or_null(true, &receipt->last_record), "key", key_fingerprint(key));
}

static int unsigned_json(const struct receipt *receipt, const struct key *key, json_t **ret, struct err *err)
{
	JSON_AUTO json_t *outcome = outcome_json(receipt);
	JSON_AUTO json_t *measured = measured_json(receipt);
	JSON_AUTO json_t *bound = bound_json(receipt, key);

	if (!outcome || !measured || !bound)
		return err_set(err, ERR_INVALID, "a text of the receipt is missing or no UTF-8, or memory is out");
	if (json_object_update(outcome, measured) < 0 || json_object_update(outcome, bound) < 0)
		return out_of_memory(err);
	*ret = json_incref(outcome);
	return 0;
}

/* What is signed: the SHA-256 of the canonical text without `signature`. */
static int signed_digest(const json_t *without_signature, struct digest *ret, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(RECEIPT_BYTES_MAX);
	int r = json_canonical(without_signature, &text, err);

	if (r == 0)
		digest_of(text.data, text.len, ret);
	return r;
}

static void signature_hex(const uint8_t signature[static SIGNATURE_BYTES], char ret[static SIGNATURE_HEX_LENGTH + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < SIGNATURE_BYTES; i++) {
		ret[2 * i] = digits[signature[i] >> 4];
		ret[2 * i + 1] = digits[signature[i] & 15];
	}
	ret[SIGNATURE_HEX_LENGTH] = '\0';
}

static int check_arguments(const struct receipt *receipt, struct err *err)
{
	if (receipt->exit_code >= 0 && receipt->signal)
		return err_set(err, ERR_INTERNAL, "a receipt with both exit code and signal");
	return 0;
}

int receipt_seal(const struct receipt *receipt, const struct key *key, char **ret_text, struct digest *ret_digest,
                 uint8_t ret_signature[static 64], struct err *err)
{
	JSON_AUTO json_t *json = NULL;
	BUF_AUTO struct buf text = BUF_INIT(RECEIPT_BYTES_MAX);
	char hex[SIGNATURE_HEX_LENGTH + 1];
	uint8_t signature[SIGNATURE_BYTES];
	struct digest digest;
	int r = check_arguments(receipt, err);

	if (r == 0)
		r = unsigned_json(receipt, key, &json, err);
	if (r == 0)
		r = signed_digest(json, &digest, err);
	if (r == 0)
		r = key_sign(key, digest.bytes, sizeof digest.bytes, signature, err);
	if (r < 0)
		return r;
	signature_hex(signature, hex);
	if (json_object_set_new(json, "signature", json_string(hex)) < 0)
		return out_of_memory(err);
	r = json_canonical(json, &text, err);
	if (r < 0)
		return r;
	memcpy(ret_signature, signature, sizeof signature);
	digest_of(text.data, text.len, ret_digest);
	*ret_text = buf_take(&text);
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse_signature(const json_t *value, uint8_t ret[static SIGNATURE_BYTES], struct err *err)
{
	const char *hex = json_string_value(value);

	if (!hex || strlen(hex) != SIGNATURE_HEX_LENGTH)
		return err_set(err, ERR_DAMAGED, "signature: not %d hex digits", SIGNATURE_HEX_LENGTH);
	for (size_t i = 0; i < SIGNATURE_BYTES; i++) {
		int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return err_set(err, ERR_DAMAGED, "signature: not %d hex digits", SIGNATURE_HEX_LENGTH);
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

/* Another spelling of the same JSON would have another digest in the seal chain. */
static int check_canonical(const json_t *json, const char *text, struct err *err)
{
	BUF_AUTO struct buf canonical = BUF_INIT(RECEIPT_BYTES_MAX);
	int r = json_canonical(json, &canonical, err);

	if (r < 0)
		return r;
	return strcmp(canonical.data, text) == 0 ? 0 : err_set(err, ERR_DAMAGED, "the receipt is not canonical");
}

int receipt_check(const char *text, const uint8_t public_key[static 32], struct err *err)
{
	JSON_AUTO json_t *json = NULL;
	uint8_t signature[SIGNATURE_BYTES];
	char fingerprint[DIGEST_HEX_SIZE];
	const char *key;
	struct digest digest;
	int r = json_parse(text, strlen(text), &json, err);

	if (r == ERR_INVALID)
		return err_set(err, ERR_DAMAGED, "the receipt is no JSON");
	if (r == 0)
		r = check_canonical(json, text, err);
	if (r == 0)
		r = parse_signature(json_object_get(json, "signature"), signature, err);
	if (r < 0)
		return r;
	key_fingerprint_of(public_key, fingerprint);
	key = json_string_value(json_object_get(json, "key"));
	if (!key || strcmp(key, fingerprint) != 0)
		return err_set(err, ERR_DAMAGED, "key: the receipt names another key");
	json_object_del(json, "signature");
	r = signed_digest(json, &digest, err);
	return r < 0 ? r : key_verify(public_key, digest.bytes, sizeof digest.bytes, signature, err);
}
