/* manifest.c - `caisson manifest`: validates one, shows an example, shows the plan that would be enforced. */
#include <string.h>
#include <unistd.h>

#include "admission/admission.h"
#include "cli/cli.h"
#include "cli/manifest_file.h"
#include "keeper/host.h"
#include "keeper/seal.h"
#include "print/output.h"
#include "print/page.h"

static int validate(const struct options *options, struct err *err)
{
	MANIFEST_AUTO struct manifest *manifest = NULL;
	PAGE_AUTO struct page page = PAGE_INIT;
	char digest[DIGEST_TEXT_SIZE];
	int result = manifest_file_load(options->operands[1], &manifest, err);

	if (result)
		return result;
	if (options->json)
		page_add(&page, "{\"digest\":\"%s\",\"valid\":true}\n", digest_text(&manifest->digest, digest));
	else
		page_add(&page, "valid, %s\n", digest_text(&manifest->digest, digest));
	return page_print(&page, STDOUT_FILENO, err);
}

static int print_template(const struct options *options, struct err *err)
{
	PAGE_AUTO struct page page = PAGE_INIT;

	(void)options;
	page_add(&page, "%s", manifest_template());
	return page_print(&page, STDOUT_FILENO, err);
}

static int print_plan(const struct options *options, struct err *err)
{
	MANIFEST_AUTO struct manifest *manifest = NULL;
	PLAN_AUTO struct plan *plan = NULL;
	SEAL_AUTO struct sealed sealed = {0};
	PAGE_AUTO struct page page = PAGE_INIT;
	struct plan_host host;
	int result = manifest_file_load(options->operands[1], &manifest, err);

	if (result == 0)
		result = seal_inputs(NULL, manifest, &sealed, err);
	if (result == 0)
		result = host_facts(&host, err);
	if (result == 0)
		result = plan_compile(manifest, &host, &sealed.plan, &admission_policy_default()->digest, &plan, err);
	if (result)
		return result;
	page_add(&page, "%s\n", plan->canonical);
	return page_print(&page, STDOUT_FILENO, err);
}

static int run(struct options *options, struct err *err)
{
	static const struct {
		const char *name, *operands;
		size_t count;
		int (*run)(const struct options *options, struct err *err);
	} actions[] = {
		{"validate", "a FILE, or - for standard input", 2, validate},
		{"template", "no operand", 1, print_template},
		{"plan", "a FILE, or - for standard input", 2, print_plan},
	};

	for (size_t i = 0; options->operand_count && i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(options->operands[0], actions[i].name) != 0)
			continue;

		int result = require_operands(options, actions[i].count, actions[i].operands, err);

		return result ? err_context(err, result, "%s", actions[i].name) : actions[i].run(options, err);
	}
	return err_set(err, ERR_INVALID, "needs one of: validate FILE, template, plan FILE");
}

const struct command command_manifest = {
	.name = "manifest",
	.bit = FOR_MANIFEST,
	.usage = "validate FILE | template | plan FILE",
	.summary = "Validates a manifest, shows one with every field, or shows the plan that this host would enforce for it.",
	.examples = "  caisson manifest template > job.json\n"
		    "  caisson manifest validate job.json\n"
		    "  caisson manifest plan job.json\n",
	.run = run,
};
