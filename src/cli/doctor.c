/* doctor.c - `caisson doctor`: what this host can enforce. */
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/wiring.h"
#include "keeper/trial.h"
#include "print/output.h"
#include "print/page.h"

struct findings {
	struct page page;
	json_t *lines; /* NULL: text is wanted */
	bool impossible;
};

static const char *result_name(enum probe_result result)
{
	switch (result) {
	case PROBE_OK:
		return "ok";
	case PROBE_DEGRADED:
		return "degraded";
	case PROBE_MISSING:
		return "missing";
	}
	return "unknown";
}

static int add_line(void *context, const struct probe_line *line)
{
	struct findings *findings = context;
	const char *result = result_name(line->result);

	findings->impossible |= line->required && line->result == PROBE_MISSING;
	if (findings->lines) {
		json_t *object = json_pack("{s:s,s:s,s:b,s:s,s:s}", "name", line->name, "result", result, "required",
		                           line->required, "reason", line->reason, "remedy", line->remedy);

		return json_array_append_new(findings->lines, object) ? ERR_NO_MEMORY : 0;
	}
	page_add(&findings->page, "%-8s  %-24s %s\n", result, line->name, line->reason);
	if (*line->remedy)
		page_add(&findings->page, "%-8s  %-24s remedy: %s\n", "", "", line->remedy);
	return findings->page.result;
}

static int print_findings(struct findings *findings, const char *profile, struct err *err)
{
	if (!findings->lines) {
		page_add(&findings->page, "a run with profile %s is %s here\n", profile,
		         findings->impossible ? "NOT possible" : "possible");
		return page_print(&findings->page, STDOUT_FILENO, err);
	}

	JSON_AUTO json_t *report =
		json_pack("{s:s,s:b,s:O}", "profile", profile, "possible", !findings->impossible, "lines", findings->lines);

	return report ? print_json(STDOUT_FILENO, report, err) : err_set(err, ERR_NO_MEMORY, "out of memory");
}

/* A run needs a ledger that it can trust; one that is not there yet is made by the first run. */
static int probe_ledger(const char *option, struct findings *findings, struct err *err)
{
	WIRING_AUTO struct wiring wiring = WIRING_INIT;
	struct probe_line line = {.name = "ledger", .result = PROBE_OK, .required = true};
	struct err reason = ERR_INIT;
	int result = wiring_open(option, WIRING_READ, &wiring, &reason);

	if (result == ERR_NO_MEMORY)
		return err_set(err, result, "out of memory");
	if (result == 0) {
		snprintf(line.reason, sizeof(line.reason), "%s", wiring.ledger->ops->id(wiring.ledger));
	} else if (result == ERR_NOT_FOUND) {
		snprintf(line.reason, sizeof(line.reason), "not there yet, the first run makes it");
	} else {
		line.result = PROBE_MISSING;
		snprintf(line.reason, sizeof(line.reason), "%.*s", (int)sizeof(line.reason) - 1, reason.text);
		snprintf(line.remedy, sizeof(line.remedy), "mend it, or choose another directory with --ledger or CAISSON_LEDGER");
	}
	return add_line(findings, &line);
}

/* The boundary carries the identity of no ledger. */
static int try_run(const struct boundary_provider *provider, struct probe_line *ret, struct err *err)
{
	struct boundary *boundary = NULL;
	struct boundary_identity identity;
	int result = provider->ops->open(provider->context, &boundary, err);

	if (result)
		return result;
	id_new("led", identity.ledger_id);
	id_new("bnd", identity.boundary_id);
	result = trial_run(boundary, provider->ops->kind, &identity, NULL, ret, err);
	boundary->ops->free(boundary);
	return result;
}

/* A provider that cannot be made at all says why: that is the answer, not a failure of the question. */
static int probe(const char *profile, const char *cgroup_parent, struct findings *findings, struct err *err)
{
	const struct provider_factory *factory = wiring_factory(cgroup_parent);
	struct boundary_provider *provider = NULL;
	struct probe_line line = {.name = "provider", .result = PROBE_MISSING, .required = true};
	struct err reason = ERR_INIT;
	int result = factory->make(factory->context, profile, -1, &provider, &reason);

	if (result == 0) {
		struct probe_line trial;
		result = provider->ops->probe(provider->context, add_line, findings, &reason);
		if (result == 0 && !findings->impossible)
			result = try_run(provider, &trial, &reason);
		if (result == 0 && !findings->impossible)
			result = add_line(findings, &trial);
		factory->release(factory->context, provider);
	}
	if (result == 0)
		return 0;
	if (result == ERR_NO_MEMORY)
		return err_set(err, result, "out of memory");
	snprintf(line.reason, sizeof(line.reason), "%.*s", (int)sizeof(line.reason) - 1, reason.text);
	return add_line(findings, &line);
}

static int run(struct options *options, struct err *err)
{
	const char *profile = options->profile ? options->profile : "linux";
	struct findings findings = {.page = PAGE_INIT, .lines = options->json ? json_array() : NULL};
	int result = require_operands(options, 0, "no operand", err);

	if (result == 0)
		result = probe_ledger(options->ledger, &findings, err);
	if (result == 0)
		result = probe(profile, options->cgroup_parent, &findings, err);
	if (result == 0)
		result = print_findings(&findings, profile, err);
	page_done(&findings.page);
	json_decref(findings.lines);
	if (result)
		return result;
	return findings.impossible ? STATUS_NO : STATUS_OK;
}

const struct command command_doctor = {
	.name = "doctor",
	.bit = FOR_DOCTOR,
	.usage = "[options]",
	.summary = "Tries what this host can enforce: each line with its reason and remedy. Exit status 1: no run is possible.",
	.examples = "  caisson doctor\n"
		    "  caisson doctor --json\n",
	.run = run,
};
