/* fuzz_manifest.c - a manifest that is accepted reads back the same, and so does the plan made of it. */
#include "fuzz.h"

#include <string.h>

#include "manifest/manifest.h"
#include "manifest/plan.h"

static const struct plan_host host = {
	.page_bytes = 4096, .cpus = 2, .memory_bytes = 8LL * 1024 * 1024 * 1024, .open_files_hard = 4096, .stack_hard = INT64_MAX,
	.processes_hard = INT64_MAX, .cpu_hard_ms = INT64_MAX, .memory_hard = INT64_MAX, .file_hard = INT64_MAX};

/* Stands for the sealed inputs: what they contain does not matter to a plan. */
static int compile(const struct manifest *manifest, struct plan **ret)
{
	struct plan_sealed sealed = {.input_count = manifest->input_count};
	struct plan_input *inputs = calloc(manifest->input_count + 1, sizeof(*inputs));
	struct digest policy = {0};

	HOLDS(inputs);
	sealed.inputs = inputs;
	int result = plan_compile(manifest, &host, &sealed, &policy, ret, NULL);
	free(inputs);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	MANIFEST_AUTO struct manifest *manifest = NULL, *again = NULL;
	PLAN_AUTO struct plan *plan = NULL, *plan_again = NULL;
	struct err err = ERR_INIT;

	if (manifest_parse((const char *)data, size, &manifest, &err) != 0) {
		HOLDS(err.code < 0 && err.text[0] != '\0' && !manifest);
		return 0;
	}
	HOLDS(manifest_parse(manifest->canonical, manifest->canonical_length, &again, NULL) == 0);
	HOLDS(strcmp(manifest->canonical, again->canonical) == 0 && digest_equal(&manifest->digest, &again->digest));

	if (compile(manifest, &plan) != 0)
		return 0;
	HOLDS(plan_parse(plan->canonical, plan->canonical_length, &plan_again, NULL) == 0);
	HOLDS(strcmp(plan->canonical, plan_again->canonical) == 0 && digest_equal(&plan->digest, &plan_again->digest));
	return 0;
}
