/* verify_record.c - the rows record that a seal binds, and the chain of records before it. */
#include <inttypes.h>
#include <string.h>

#include "evidence/record.h"
#include "evidence/verify_internal.h"

/* The columns that a record's digest covers, as they are or as they might have been. */
struct guess {
	const char *attempt, *kind, *body;
	int64_t seq, at;
	struct digest previous;
};

static bool guess_of(const struct image_row *row, struct guess *ret)
{
	const char *previous = image_text(row, "prev_digest");

	*ret = (struct guess){.attempt = image_text(row, "attempt_id"),
	                      .kind = image_text(row, "kind"),
	                      .body = image_text(row, "body"),
	                      .seq = image_number(row, "seq"),
	                      .at = image_number(row, "at")};
	return previous && digest_parse(previous, &ret->previous, NULL) == 0 && ret->attempt && ret->kind && ret->body;
}

static bool digest_of_guess(const struct guess *guess, struct digest *ret)
{
	return guess->attempt && guess->kind && guess->body &&
	       record_digest(guess->attempt, guess->seq, guess->at, guess->kind, guess->body, &guess->previous, ret, NULL) == 0;
}

static bool has_digest(const struct guess *guess, const struct digest *wanted)
{
	struct digest digest;

	return digest_of_guess(guess, &digest) && digest_equal(&digest, wanted);
}

static bool record_has_digest(const struct image_row *row, const struct digest *wanted)
{
	struct guess guess;

	return guess_of(row, &guess) && has_digest(&guess, wanted);
}

static bool is_rows_record(const struct image_row *row)
{
	const char *kind = image_text(row, "kind");

	return kind && strcmp(kind, "rows") == 0;
}

static json_t *body_of(const struct image_row *row)
{
	const char *text = image_text(row, "body");
	json_t *body = NULL;

	return text && json_parse(text, strlen(text), &body, NULL) == 0 ? body : NULL;
}

/* How many records the body says that the attempt had before it: so this one's seq is one more. */
static int64_t seq_by_body(const json_t *body, const char *attempt)
{
	const json_t *records = json_object_get(json_object_get(body, "rows"), "record");
	int64_t count = 0;

	for (size_t i = 0; i < json_array_size(records); i++) {
		const char *of = json_string_value(json_object_get(json_array_get(records, i), "attempt_id"));
		if (of && strcmp(of, attempt) == 0)
			count++;
	}
	return count + 1;
}

/* The digest of the record with this seq, for a guess at what the next one pointed to. */
static bool digest_at(const struct verifier *verifier, const char *attempt, int64_t seq, struct digest *ret)
{
	struct image_range records = image_find(&verifier->image, "record", attempt);
	struct guess guess;

	for (size_t i = 0; i < records.count; i++)
		if (image_number(&records.first[i], "seq") == seq && guess_of(&records.first[i], &guess))
			return digest_of_guess(&guess, ret);
	return false;
}

/* Which one column of this record was changed, if putting it right gives the digest? NULL: none. */
static const char *changed_column(const struct verifier *verifier, const struct sealed *sealed, const struct image_row *row,
                                  const struct digest *wanted)
{
	JSON_AUTO json_t *body = body_of(row);
	struct guess found, trial;

	(void)guess_of(row, &found); /* what is missing may be what was changed */
	trial = found;
	trial.attempt = sealed->attempt;
	if (has_digest(&trial, wanted))
		return "attempt_id";
	trial = found;
	trial.kind = "rows";
	if (has_digest(&trial, wanted))
		return "kind";
	trial = found;
	trial.at = json_integer_value(json_object_get(body, "at"));
	if (has_digest(&trial, wanted))
		return "at";
	trial = found;
	trial.seq = seq_by_body(body, sealed->attempt);
	if (has_digest(&trial, wanted))
		return "seq";
	trial = found;
	if (digest_at(verifier, sealed->attempt, found.seq - 1, &trial.previous) && has_digest(&trial, wanted))
		return "prev_digest";
	return NULL;
}

/* A record that could be the seal's, changed: of its attempt, or of none. */
static bool is_candidate(const struct verifier *verifier, const struct sealed *sealed, const struct image_row *row)
{
	const char *attempt = image_text(row, "attempt_id");

	if (attempt && strcmp(attempt, sealed->attempt) == 0)
		return true;
	return is_rows_record(row) && image_find(&verifier->image, "attempt", attempt ? attempt : "").count == 0;
}

/* Names what is wrong with the rows record; its body serves when another column was changed. */
static void explain(struct verifier *verifier, struct sealed *sealed, const struct digest *wanted)
{
	struct image_range all = image_find(&verifier->image, "record", NULL);
	struct image_row *damaged = NULL;

	for (size_t i = 0; i < all.count; i++) {
		struct image_row *row = &all.first[i];
		const char *column;

		if (row->covered || !is_candidate(verifier, sealed, row))
			continue;
		column = changed_column(verifier, sealed, row, wanted);
		if (column) {
			verify_problem(verifier, sealed->run, "record.%s: of the rows record, which is not the one that was sealed",
			               column);
			row->paired = true;
			sealed->records_differ = true;
			sealed->rows = body_of(row);
			return;
		}
		if (is_rows_record(row))
			damaged = row;
	}
	if (damaged)
		damaged->paired = true;
	verify_problem(verifier, sealed->run, damaged ? "record.body: of the rows record, which is not the one that was sealed"
	                                              : "record: the rows record is missing");
}

/* Without a receipt that holds there is nothing to compare with but what the rows record itself says. */
static struct image_row *last_rows_record(const struct verifier *verifier, const struct sealed *sealed)
{
	struct image_range records = image_find(&verifier->image, "record", sealed->attempt);

	for (size_t i = records.count; i > 0; i--)
		if (is_rows_record(&records.first[i - 1]))
			return &records.first[i - 1];
	return NULL;
}

void verify_find_rows(struct verifier *verifier, struct sealed *sealed)
{
	struct image_range records = image_find(&verifier->image, "record", sealed->attempt);
	const char *last = json_string_value(json_object_get(sealed->receipt, "last_record"));
	struct image_row *found = NULL;
	struct digest wanted;

	if (last && digest_parse(last, &wanted, NULL) == 0) {
		for (size_t i = records.count; !found && i > 0; i--)
			if (record_has_digest(&records.first[i - 1], &wanted))
				found = &records.first[i - 1];
		if (!found && sealed->holds) {
			explain(verifier, sealed, &wanted);
			return;
		}
	}
	if (!found)
		found = last_rows_record(verifier, sealed);
	if (found) {
		found->covered = true;
		sealed->rows = body_of(found);
	}
}

void verify_check_records(struct verifier *verifier, const struct sealed *sealed)
{
	struct image_range records = image_find(&verifier->image, "record", sealed->attempt);
	struct digest head;

	digest_of(sealed->attempt, strlen(sealed->attempt), &head);
	for (size_t i = 0; i < records.count; i++) {
		struct guess guess;
		bool whole = guess_of(&records.first[i], &guess);

		if (!whole || !digest_equal(&guess.previous, &head))
			verify_problem(verifier, sealed->run, "record.prev_digest: record %zu does not follow the one before it",
			               i + 1);
		if (guess.seq != (int64_t)i + 1)
			verify_problem(verifier, sealed->run, "record.seq: record %zu has seq %" PRId64, i + 1, guess.seq);
		if (!whole || !digest_of_guess(&guess, &head))
			return;
	}
}
