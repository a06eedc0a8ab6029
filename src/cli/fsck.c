/* fsck.c - `caisson fsck`: what of the store is damaged, missing or no part of it, and whose it is. */
#include <inttypes.h>
#include <unistd.h>

#include "artifact/name.h"
#include "cli/cli.h"
#include "cli/wiring.h"
#include "keeper/storage.h"
#include "print/output.h"
#include "print/page.h"
#include "print/units.h"

struct findings {
	struct page page;
	json_t *lines; /* NULL: text is wanted */
};

/* One object a reference; one without a run for what nobody names. */
static json_t *line_of(const struct storage_finding *finding, const struct reference *reference)
{
	json_t *line = json_pack("{s:s,s:s}", "kind", storage_finding_name(finding->kind), "object", finding->object);

	if (line && reference &&
	    (json_object_set_new(line, "run", json_string(reference->run_id)) ||
	     json_object_set_new(line, "as", json_string(reference->kind)) ||
	     artifact_set_path(line, "name", reference->name, NULL))) {
		json_decref(line);
		return NULL;
	}
	return line;
}

static const char *text_of(const json_t *line, const char *key)
{
	const char *text = json_string_value(json_object_get(line, key));

	return text ? text : "";
}

static void add_line(struct findings *findings, const struct storage_finding *finding, const struct reference *reference)
{
	JSON_AUTO json_t *line = line_of(finding, reference);

	if (!line)
		findings->page.result = ERR_NO_MEMORY;
	else if (!findings->lines && reference)
		page_add(&findings->page, "%s: %s, %s %s of %s\n", text_of(line, "kind"), text_of(line, "object"),
		         text_of(line, "as"), text_of(line, "name"), text_of(line, "run"));
	else if (!findings->lines)
		page_add(&findings->page, "%s: %s\n", text_of(line, "kind"), text_of(line, "object"));
	else if (json_array_append(findings->lines, line))
		findings->page.result = ERR_NO_MEMORY;
}

static void add_finding(void *context, const struct storage_finding *finding)
{
	if (finding->reference_count == 0)
		add_line(context, finding, NULL);
	for (size_t i = 0; i < finding->reference_count; i++)
		add_line(context, finding, &finding->references[i]);
}

static int print_findings(struct findings *findings, const struct storage_report *report, struct err *err)
{
	char bytes[UNITS_TEXT_SIZE], unnamed[UNITS_TEXT_SIZE];

	if (!findings->lines || findings->page.result) {
		page_add(&findings->page, "%" PRId64 " objects of %s, ", report->objects, units_format_size(report->bytes, bytes));
		page_add(&findings->page, "of which %" PRId64 " of %s are named by nothing; %" PRId64 " problems\n", report->unnamed,
		         units_format_size(report->unnamed_bytes, unnamed), report->findings);
		return page_print(&findings->page, STDOUT_FILENO, err);
	}

	JSON_AUTO json_t *document = json_pack("{s:I,s:I,s:I,s:I,s:I,s:O}", "objects", (json_int_t)report->objects, "bytes",
	                                       (json_int_t)report->bytes, "unnamed", (json_int_t)report->unnamed, "unnamed_bytes",
	                                       (json_int_t)report->unnamed_bytes, "problems", (json_int_t)report->findings, "lines",
	                                       findings->lines);

	return document ? print_json(STDOUT_FILENO, document, err) : err_set(err, ERR_NO_MEMORY, "out of memory");
}

static int check(struct wiring *wiring, struct findings *findings, struct err *err)
{
	struct storage_report report = {0};
	int result = 0;

	if (!wiring->store)
		return err_set(err, ERR_NOT_FOUND, "the ledger's store is not there");
	result = storage_check(wiring->ledger, wiring->store, add_finding, findings, &report, err);
	if (result == 0)
		result = print_findings(findings, &report, err);
	if (result)
		return result;
	return report.findings ? STATUS_NO : STATUS_OK;
}

static int run(struct options *options, struct err *err)
{
	WIRING_AUTO struct wiring wiring = WIRING_INIT;
	struct findings findings = {.page = PAGE_INIT, .lines = options->json ? json_array() : NULL};
	int result = require_operands(options, 0, "no operand", err);

	if (result == 0)
		result = wiring_open(options->ledger, WIRING_READ, &wiring, err);
	if (result == 0)
		result = check(&wiring, &findings, err);
	page_done(&findings.page);
	json_decref(findings.lines);
	return result;
}

const struct command command_fsck = {
	.name = "fsck",
	.bit = FOR_FSCK,
	.usage = "[options]",
	.summary = "Reads every object of the store: which is damaged, missing or no part of it, and which runs it belongs to.",
	.examples = "  caisson fsck\n"
		    "  caisson fsck --ledger /backup/caisson --json\n",
	.run = run,
};
