/* report.c - makes text for people out of verdicts and receipts. A field that is not there (in a receipt of an older version) is
 * shown as unknown. */
#include "print/report.h"

#include <inttypes.h>

#include "print/units.h"

enum { LABEL_COLUMN = 10 };

/* -1 for null and for what is not there. */
static int64_t number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

static const char *text(const json_t *object, const char *key, const char *otherwise)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value && *value ? value : otherwise;
}

void report_line(struct page *page, const char *run_id, const char *verdict, const char *reason, const char *detail)
{
	page_add(page, "%s%s%s%s%s (%s)", verdict, *reason ? ": " : "", reason, *detail ? ": " : "", detail, run_id);
}

void report_boundary(struct page *page, const json_t *receipt)
{
	const json_t *boundary = json_object_get(receipt, "boundary");
	int64_t survivors = number(boundary, "survivors_killed");

	page_add(page, "boundary %s",
	         json_is_true(json_object_get(boundary, "verified_empty")) ? "verified empty" : "NOT verified empty");
	if (survivors > 0)
		page_add(page, ", survivors killed: %" PRId64, survivors);
}

void report_usage(struct page *page, const json_t *receipt)
{
	const json_t *usage = json_object_get(receipt, "usage");
	char wall[UNITS_TEXT_SIZE], user[UNITS_TEXT_SIZE], system[UNITS_TEXT_SIZE], memory[UNITS_TEXT_SIZE];
	int64_t pids = number(usage, "pids_peak"), ooms = number(usage, "oom_kills");

	page_add(page, "wall %s, CPU user %s, CPU system %s, memory peak %s", units_format_time_ms(number(usage, "wall_ms"), wall),
	         units_format_time_ms(number(usage, "cpu_user_ms"), user),
	         units_format_time_ms(number(usage, "cpu_system_ms"), system),
	         units_format_size(number(usage, "memory_peak_bytes"), memory));
	if (pids >= 0)
		page_add(page, ", processes peak %" PRId64, pids);
	if (ooms > 0)
		page_add(page, ", OOM kills %" PRId64, ooms);
}

static void add_fact(struct page *page, const char *label, const char *value)
{
	page_add(page, "%-*s %s\n", LABEL_COLUMN, label, value);
}

static void add_result(struct page *page, const json_t *receipt)
{
	int64_t code = number(receipt, "exit_code");
	const char *signal_name = text(receipt, "signal", NULL);

	page_add(page, "%-*s ", LABEL_COLUMN, "result");
	report_line(page, text(receipt, "run", "unknown run"), text(receipt, "verdict", "unknown"), text(receipt, "reason", ""),
	            text(receipt, "detail", ""));
	if (code >= 0)
		page_add(page, ", exit code %" PRId64, code);
	if (signal_name)
		page_add(page, ", %s", signal_name);
	page_add(page, "\n");
}

static void add_stream(struct page *page, const json_t *receipt, const char *name)
{
	const json_t *stream = json_object_get(receipt, name);
	char size[UNITS_TEXT_SIZE];
	int64_t dropped = number(stream, "dropped_bytes");

	page_add(page, "%-*s %s", LABEL_COLUMN, name, units_format_size(number(stream, "bytes"), size));
	if (dropped > 0)
		page_add(page, ", of which not kept %s", units_format_size(dropped, size));
	if (json_is_false(json_object_get(stream, "drained")))
		page_add(page, ", not drained");
	page_add(page, ", %s\n", text(stream, "sha256", "digest unknown"));
}

static void add_artifacts(struct page *page, const json_t *artifacts)
{
	for (size_t i = 0; i < json_array_size(artifacts); i++) {
		const json_t *artifact = json_array_get(artifacts, i);
		char size[UNITS_TEXT_SIZE];

		page_add(page, "%-*s %s, %s, %s, %s\n", LABEL_COLUMN, "artifact", text(artifact, "path", "?"),
		         units_format_size(number(artifact, "size_bytes"), size), text(artifact, "mode", "?"),
		         text(artifact, "sha256", "digest unknown"));
	}
}

static void add_evidence(struct page *page, const json_t *lines)
{
	for (size_t i = 0; i < json_array_size(lines); i++) {
		const json_t *line = json_array_get(lines, i);

		page_add(page, "  %-24s %-9s %s\n", text(line, "name", "?"), text(line, "grade", "?"), text(line, "detail", ""));
	}
}

void report_receipt(struct page *page, const json_t *receipt)
{
	const json_t *times = json_object_get(receipt, "times"), *boundary = json_object_get(receipt, "boundary");

	add_result(page, receipt);
	page_add(page, "%-*s ", LABEL_COLUMN, "usage");
	report_usage(page, receipt);
	page_add(page, "\n");
	add_stream(page, receipt, "stdout");
	add_stream(page, receipt, "stderr");
	add_artifacts(page, json_object_get(receipt, "artifacts"));
	add_fact(page, "admitted", text(times, "admitted_at", "never"));
	add_fact(page, "launched", text(times, "launched_at", "never"));
	add_fact(page, "exited", text(times, "exited_at", "unknown"));
	add_fact(page, "sealed", text(times, "sealed_at", "unknown"));
	add_fact(page, "owner", text(receipt, "owner", "unknown"));
	add_fact(page, "manifest", text(receipt, "manifest", "none"));
	add_fact(page, "plan", text(receipt, "plan", "none"));
	add_fact(page, "policy", text(receipt, "policy", "none"));
	page_add(page, "%-*s number %" PRId64 " of key %s\n", LABEL_COLUMN, "seal", number(receipt, "seal_seq"),
	         text(receipt, "key", "unknown"));
	page_add(page, "%-*s %s, ", LABEL_COLUMN, "boundary", text(boundary, "kind", "unknown"));
	report_boundary(page, receipt);
	page_add(page, "\n");
	add_evidence(page, json_object_get(boundary, "evidence"));
}
