/* verify.c - does a ledger still say what was sealed? The order of the checks, and what is said of them. */
#include "evidence/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/verify_internal.h"

/* Rows may hold anything; a line goes to a terminal. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e)
			*text = '?';
}

__attribute__((format(printf, 4, 0)))
static void say(struct verifier *verifier, enum verify_line_kind kind, const char *run, const char *format, va_list list)
{
	char line[VERIFY_LINE_MAX];
	int length = run ? snprintf(line, sizeof line, "%.64s: ", run) : 0;

	vsnprintf(line + length, sizeof line - (size_t)length, format, list);
	make_printable(line);
	verifier->line(verifier->context, kind, line);
}

static bool is_asked_for(const struct verifier *verifier, const char *run)
{
	return !run || !verifier->options->run_id || strcmp(run, verifier->options->run_id) == 0;
}

void verify_problem(struct verifier *verifier, const char *run, const char *format, ...)
{
	va_list list;

	if (!is_asked_for(verifier, run))
		return;
	verifier->report.problems++;
	va_start(list, format);
	say(verifier, VERIFY_PROBLEM, run, format, list);
	va_end(list);
}

void verify_note(struct verifier *verifier, const char *run, const char *format, ...)
{
	va_list list;

	if (!is_asked_for(verifier, run))
		return;
	va_start(list, format);
	say(verifier, VERIFY_NOTE, run, format, list);
	va_end(list);
}

static const char *receipt_text(const struct sealed *sealed, const char *key)
{
	const char *text = json_string_value(json_object_get(sealed->receipt, key));

	return text ? text : "";
}

/* What the receipt says of a stream, and what its row says. */
static void compare_stream(struct verifier *verifier, const struct sealed *sealed, const struct image_row *row)
{
	static const char *const numbers[] = {"bytes", "kept_bytes", "dropped_bytes"};
	const char *name = image_text(row, "name"), *sha256 = image_text(row, "sha256");
	const json_t *said = json_object_get(sealed->receipt, name ? name : "");
	const char *said_sha256 = json_string_value(json_object_get(said, "sha256"));

	if (!said_sha256 || !sha256 || strcmp(said_sha256, sha256) != 0)
		verify_problem(verifier, sealed->run, "stream.sha256: %s: not the one in the receipt", name);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		if (json_integer_value(json_object_get(said, numbers[i])) != image_number(row, numbers[i]))
			verify_problem(verifier, sealed->run, "stream.%s: %s: not the one in the receipt", numbers[i], name);
	if (json_is_true(json_object_get(said, "drained")) != (image_number(row, "drained") != 0))
		verify_problem(verifier, sealed->run, "stream.drained: %s: not as in the receipt", name);
}

static void check_object(struct verifier *verifier, const char *run, const char *what, const char *digest_spelling)
{
	struct err err = ERR_INIT;
	struct digest digest;

	if (!digest_spelling || digest_parse(digest_spelling, &digest, &err) < 0)
		verify_problem(verifier, run, "%s: no digest", what);
	else if (!verifier->source->object)
		verify_problem(verifier, run, "%s: there is no store to look in for %s", what, digest_spelling);
	else if (verifier->source->object(verifier->source->context, &digest, &err) < 0)
		verify_problem(verifier, run, "%s: %s", what, err.text);
}

static void check_streams(struct verifier *verifier, const struct sealed *sealed)
{
	struct image_range streams = image_find(&verifier->image, "stream", sealed->attempt);

	for (size_t i = 0; i < streams.count; i++) {
		const struct image_row *row = &streams.first[i];
		const char *data = image_text(row, "data"), *sha256 = image_text(row, "sha256");

		if (!data)
			check_object(verifier, sealed->run, "stream.data", sha256);
		else if (!sha256 || strcmp(data, sha256) != 0)
			verify_problem(verifier, sealed->run, "stream.data: %s: does not have its digest", image_text(row, "name"));
		if (sealed->holds)
			compare_stream(verifier, sealed, row);
	}
}

static bool is_artifact_row(const struct image_range *rows, const json_t *said)
{
	for (size_t i = 0; i < rows->count; i++) {
		const json_t *row = rows->first[i].json;

		if (json_equal(json_object_get(said, "sha256"), json_object_get(row, "sha256")) &&
		    json_equal(json_object_get(said, "size_bytes"), json_object_get(row, "size_bytes")))
			return true;
	}
	return false;
}

/* Rows are under the seal by now; the receipt lists the same, and the store has the bytes. */
static void check_artifacts(struct verifier *verifier, const struct sealed *sealed)
{
	struct image_range rows = image_find(&verifier->image, "artifact", sealed->attempt);
	const json_t *said = json_object_get(sealed->receipt, "artifacts");

	for (size_t i = 0; i < rows.count; i++)
		check_object(verifier, sealed->run, "artifact.sha256", image_text(&rows.first[i], "sha256"));
	if (!sealed->holds)
		return;
	if (json_array_size(said) != rows.count)
		verify_problem(verifier, sealed->run, "artifact: %zu rows, but the receipt lists %zu", rows.count,
		               json_array_size(said));
	for (size_t i = 0; i < json_array_size(said); i++)
		if (!is_artifact_row(&rows, json_array_get(said, i)))
			verify_problem(verifier, sealed->run, "artifact: no row is the receipt's number %zu", i + 1);
}

/* The texts that the receipt binds by digest; in the dump a BLOB is its digest. */
static void check_texts(struct verifier *verifier, const struct sealed *sealed)
{
	struct image_range runs = image_find(&verifier->image, "run", sealed->run);
	static const char *const columns[] = {"manifest", "plan"};

	for (size_t i = 0; runs.count == 1 && i < sizeof columns / sizeof columns[0]; i++) {
		const char *text = image_text(runs.first, columns[i]);

		if (strcmp(text ? text : "", receipt_text(sealed, columns[i])) != 0)
			verify_problem(verifier, sealed->run, "run.%s: its digest is not the one in the receipt", columns[i]);
	}
}

/* What was reported column by column is not said again in other words. */
static void check_content(struct verifier *verifier, const struct sealed *sealed)
{
	if (!sealed->records_differ)
		verify_check_records(verifier, sealed);
	if (!sealed->streams_differ)
		check_streams(verifier, sealed);
	if (sealed->holds && !sealed->run_differs)
		check_texts(verifier, sealed);
	if (!sealed->artifacts_differ)
		check_artifacts(verifier, sealed);
}

static bool is_known(const struct verifier *verifier, const char *run)
{
	for (size_t i = 0; i < verifier->seal_count; i++)
		if (strcmp(verifier->seals[i].run, run) == 0)
			return true;
	return image_find(&verifier->image, "run", run).count > 0;
}

static int check_all(struct verifier *verifier, struct err *err)
{
	int r = verify_load_seals(verifier, err);

	if (r < 0)
		return r;
	if (verifier->options->run_id && !is_known(verifier, verifier->options->run_id))
		return err_set(err, ERR_NOT_FOUND, "no run %s in this ledger", verifier->options->run_id);
	r = verify_mark_unsealed(verifier, err);
	if (r < 0)
		return r;
	verify_check_seals(verifier);
	r = verify_cover_rows(verifier, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < verifier->seal_count; i++)
		if (is_asked_for(verifier, verifier->seals[i].run) && verifier->seals[i].rows)
			check_content(verifier, &verifier->seals[i]);
	verify_check_strays(verifier);
	r = verify_check_chains(verifier, err);
	return r < 0 ? r : verify_check_head(verifier, err);
}

void verify_done(struct verifier *verifier)
{
	for (size_t i = 0; i < verifier->seal_count; i++) {
		json_decref(verifier->seals[i].receipt);
		json_decref(verifier->seals[i].rows);
	}
	free(verifier->seals);
	free(verifier->absent);
	image_done(&verifier->image);
}

int verify(const struct verify_source *source, const struct verify_options *options, verify_line_fn line, void *context,
           struct verify_report *ret, struct err *err)
{
	struct verifier verifier = {.source = source, .options = options, .line = line, .context = context};
	int r = image_load(source, &verifier.image, err);

	if (r < 0)
		return r;
	verifier.report.rows = (int64_t)verifier.image.count;
	r = check_all(&verifier, err);
	if (r == 0)
		*ret = verifier.report;
	verify_done(&verifier);
	return r;
}
