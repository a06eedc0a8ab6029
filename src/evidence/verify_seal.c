/* verify_seal.c - keys, signatures, and the chains of the seals. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/key.h"
#include "evidence/receipt.h"
#include "evidence/record.h"
#include "evidence/verify_internal.h"

enum { PUBLIC_BYTES = 32 };

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static int by_key_and_seq(const void *a, const void *b)
{
	const struct sealed *x = a, *y = b;
	int order = strcmp(x->key, y->key);

	return order ? order : (x->seq > y->seq) - (x->seq < y->seq);
}

static bool parse_public_key(const struct image_row *row, uint8_t ret[static PUBLIC_BYTES])
{
	BUF_AUTO struct buf spelling = BUF_INIT(DIGEST_TEXT_SIZE);
	struct digest digest; /* a public key is as long as a digest, and spelled in hex as one */

	if (buf_printf(&spelling, NULL, "sha256:%s", or_empty(image_text(row, "public_key"))) < 0 ||
	    digest_parse(spelling.data, &digest, NULL) < 0)
		return false;
	memcpy(ret, digest.bytes, PUBLIC_BYTES);
	return true;
}

/* The public key with this fingerprint, whatever name its row gives it. */
static bool find_public_key(const struct verifier *verifier, const char *fingerprint, uint8_t ret[static PUBLIC_BYTES])
{
	struct image_range keys = image_find(&verifier->image, "key", NULL);

	for (size_t i = 0; i < keys.count; i++) {
		char of[DIGEST_HEX_SIZE];

		if (!parse_public_key(&keys.first[i], ret))
			continue;
		key_fingerprint_of(ret, of);
		if (strcmp(of, fingerprint) == 0)
			return true;
	}
	return false;
}

/* Position and names count as the receipt states them, once its signature holds. */
static void place_seal(struct sealed *sealed, bool by_receipt)
{
	const json_t *said = by_receipt ? sealed->receipt : sealed->row->json;

	sealed->key = or_empty(json_string_value(json_object_get(said, "key")));
	sealed->seq = json_integer_value(json_object_get(said, "seal_seq"));
	sealed->run = or_empty(json_string_value(json_object_get(said, by_receipt ? "run" : "run_id")));
	sealed->attempt = or_empty(json_string_value(json_object_get(said, by_receipt ? "attempt" : "attempt_id")));
}

static void load_seal(struct verifier *verifier, struct image_row *row, struct sealed *ret)
{
	const char *text = or_empty(image_text(row, "receipt"));
	uint8_t public_key[PUBLIC_BYTES];

	*ret = (struct sealed){.row = row};
	row->covered = true;
	digest_of(text, strlen(text), &ret->digest);
	if (json_parse(text, strlen(text), &ret->receipt, NULL) == 0) {
		const char *key = or_empty(json_string_value(json_object_get(ret->receipt, "key")));

		ret->holds = find_public_key(verifier, key, public_key) && receipt_check(text, public_key, NULL) == 0;
	}
	place_seal(ret, ret->holds);
}

int verify_load_seals(struct verifier *verifier, struct err *err)
{
	struct image_range seals = image_find(&verifier->image, "seal", NULL);

	verifier->seals = calloc(seals.count + 1, sizeof *verifier->seals);
	if (!verifier->seals)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	verifier->seal_count = seals.count;
	verifier->report.sealed = (int64_t)seals.count;
	for (size_t i = 0; i < seals.count; i++)
		load_seal(verifier, &seals.first[i], &verifier->seals[i]);
	qsort(verifier->seals, verifier->seal_count, sizeof *verifier->seals, by_key_and_seq);
	return 0;
}

static bool is_used(const struct verifier *verifier, const char *fingerprint)
{
	for (size_t i = 0; i < verifier->seal_count; i++) {
		const char *key = json_string_value(json_object_get(verifier->seals[i].receipt, "key"));

		if (key && strcmp(key, fingerprint) == 0)
			return true;
	}
	return false;
}

/* A key's row says the same thing twice, as key and as fingerprint; the receipts tell which of the two was changed. */
static void check_key(struct verifier *verifier, const struct image_row *row)
{
	const char *name = or_empty(image_text(row, "key"));
	char fingerprint[DIGEST_HEX_SIZE] = "";
	uint8_t public_key[PUBLIC_BYTES];

	if (parse_public_key(row, public_key))
		key_fingerprint_of(public_key, fingerprint);
	if (strcmp(fingerprint, name) == 0) {
		if (!is_used(verifier, name))
			verify_problem(verifier, NULL, "key: %s has sealed nothing", name);
	} else if (is_used(verifier, fingerprint)) {
		verify_problem(verifier, NULL, "key.key: %s is not the fingerprint of its public key, %s", name, fingerprint);
	} else {
		verify_problem(verifier, NULL, "key.public_key: does not have the fingerprint %s", name);
	}
}

static bool has_key_row(const struct verifier *verifier, const char *key)
{
	return image_find(&verifier->image, "key", key).count > 0;
}

/* Why a receipt does not hold, when it is not for the key's row, which is reported by itself. */
static void explain_receipt(struct verifier *verifier, const struct sealed *sealed)
{
	const char *text = or_empty(image_text(sealed->row, "receipt"));
	const char *key = or_empty(json_string_value(json_object_get(sealed->receipt, "key")));
	uint8_t public_key[PUBLIC_BYTES];
	struct err err = ERR_INIT;

	if (!sealed->receipt)
		verify_problem(verifier, sealed->run, "seal.receipt: is no JSON");
	else if (find_public_key(verifier, key, public_key) && receipt_check(text, public_key, &err) < 0)
		verify_problem(verifier, sealed->run, "seal.receipt: %s", err.text);
	else if (!has_key_row(verifier, key))
		verify_problem(verifier, sealed->run, "seal.receipt: signed with %s, of which the ledger has no public key", key);
}

/* The row's own columns repeat what the receipt says, for the constraints; so they are compared. */
static void compare_with_receipt(struct verifier *verifier, const struct sealed *sealed)
{
	static const char *const pairs[][2] = {
		{"run_id", "run"}, {"attempt_id", "attempt"}, {"key", "key"}, {"seal_seq", "seal_seq"}};

	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		const json_t *found = json_object_get(sealed->row->json, pairs[i][0]);

		if (!json_equal(found, json_object_get(sealed->receipt, pairs[i][1])))
			verify_problem(verifier, sealed->run, "seal.%s: is not what the receipt says", pairs[i][0]);
	}
}

void verify_check_seals(struct verifier *verifier)
{
	struct image_range keys = image_find(&verifier->image, "key", NULL);
	const char *trust = verifier->options->trust;

	for (size_t i = 0; i < keys.count; i++) {
		keys.first[i].covered = true;
		check_key(verifier, &keys.first[i]);
	}
	for (size_t i = 0; i < verifier->seal_count; i++) {
		const struct sealed *sealed = &verifier->seals[i];

		if (sealed->holds)
			compare_with_receipt(verifier, sealed);
		else
			explain_receipt(verifier, sealed);
		if (trust && strcmp(sealed->key, trust) != 0)
			verify_problem(verifier, sealed->run, "sealed with key %s, which is not the trusted one", sealed->key);
	}
}

static int genesis_digest(const struct verifier *verifier, struct digest *ret, struct err *err)
{
	struct image_range ledgers = image_find(&verifier->image, "ledger", NULL);
	const char *id = ledgers.count == 1 ? image_text(ledgers.first, "ledger_id") : NULL;
	struct digest start;

	if (!id)
		return err_set(err, ERR_DAMAGED, "the ledger has %zu genesis rows, not one", ledgers.count);
	digest_of(id, strlen(id), &start);
	return record_digest(id, 0, image_number(ledgers.first, "created_at"), "genesis", "{}", &start, ret, err);
}

static bool points_to(const struct sealed *sealed, const struct digest *previous)
{
	char text[DIGEST_TEXT_SIZE];
	const char *said = json_string_value(json_object_get(sealed->receipt, "previous_seal"));

	return said && strcmp(said, digest_text(previous, text)) == 0;
}

/* before: the seal before it in the list, of the same key; NULL for the first. */
static void check_link(struct verifier *verifier, const struct sealed *sealed, const struct sealed *before,
                       const struct digest *genesis)
{
	int64_t expected = before ? before->seq + 1 : 1;

	if (sealed->seq == expected - 1 && before)
		verify_problem(verifier, NULL, "seal.seal_seq: key %.16s... has seal %" PRId64 " twice (%s, %s)", sealed->key,
		               sealed->seq, before->run, sealed->run);
	else if (sealed->seq != expected)
		verify_problem(verifier, NULL, "seal: key %.16s... lacks the seals %" PRId64 " to %" PRId64 ": rows were removed",
		               sealed->key, expected, sealed->seq - 1);
	else if (!sealed->holds || (before && !before->holds))
		return; /* a receipt that does not hold is reported, and has another digest */
	else if (before && !points_to(sealed, &before->digest))
		verify_problem(verifier, sealed->run, "seal.receipt: previous_seal is not the digest of seal %" PRId64,
		               before->seq);
	else if (!before && !verifier->ledger_differs && !points_to(sealed, genesis))
		verify_problem(verifier, sealed->run, "seal.receipt: previous_seal is not the genesis of this ledger");
}

int verify_check_chains(struct verifier *verifier, struct err *err)
{
	struct digest genesis;
	struct err why = ERR_INIT;
	int r = genesis_digest(verifier, &genesis, &why);

	if (r == ERR_NO_MEMORY)
		return err_set(err, r, "%s", why.text);
	if (r < 0 && !verifier->ledger_differs) {
		verify_problem(verifier, NULL, "ledger: %s", why.text);
		verifier->ledger_differs = true;
	}
	for (size_t i = 0; i < verifier->seal_count; i++) {
		const struct sealed *sealed = &verifier->seals[i];
		bool first = i == 0 || strcmp(sealed[-1].key, sealed->key) != 0;

		check_link(verifier, sealed, first ? NULL : sealed - 1, &genesis);
	}
	return 0;
}
