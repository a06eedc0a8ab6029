/* plan_parse.c - reads a plan back from its canonical text.
 *
 * The worker acts on what it reads here, so ranges and paths are checked again. That nothing is missing, unknown or written in another
 * way need not be: the plan is written anew at the end, and must give the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "manifest/plan_internal.h"

enum {
	PLAN_MAX_ENV = MANIFEST_MAX_ENV + 8, /* the manifest's and the standard ones */
	PLAN_MAX_BASE = 64,
};

/* A text without which the plan could not even be written anew. */
static int need_text(const struct json_at *parent, const char *key, const struct text_rule *rule, char **ret, struct err *err)
{
	struct json_at at;

	json_at_key(parent, key, &at);
	int r = manifest_need(&at, err);
	return r < 0 ? r : manifest_read_text(&at, rule, ret, err);
}

static int read_list(const struct json_at *parent, const char *key, const struct list_rule *rule, struct text_list *ret, struct err *err)
{
	struct json_at at;

	json_at_key(parent, key, &at);
	return manifest_read_texts(&at, rule, ret, err);
}

static int read_word(const struct json_at *parent, const char *key, const char *const *names, size_t *ret, struct err *err)
{
	struct json_at at;

	json_at_key(parent, key, &at);
	return manifest_read_choice(&at, names, ret, err);
}

static int read_digest(const struct json_at *parent, const char *key, struct digest *ret, struct err *err)
{
	struct json_at at;

	json_at_key(parent, key, &at);
	return manifest_read_digest(&at, ret, err);
}

static int read_blob(const struct json_at *at, struct plan_input *ret, struct err *err)
{
	struct json_at size;
	int r = read_digest(at, "digest", &ret->digest, err);

	json_at_key(at, "size_bytes", &size);
	return r < 0 ? r : json_read_int(&size, 0, INT64_MAX, &ret->size_bytes, err);
}

static int read_endpoint(const struct json_at *unit, const char *key, enum plan_endpoint *ret, struct plan_input *input, struct err *err)
{
	struct json_at at;
	size_t endpoint = ENDPOINT_CLOSED;

	json_at_key(unit, key, &at);
	int r = read_word(&at, "endpoint", plan_endpoint_names, &endpoint, err);
	if (r < 0)
		return r;
	*ret = (enum plan_endpoint)endpoint;
	if (*ret != ENDPOINT_INPUT)
		return 0;
	return input ? read_blob(&at, input, err) : err_set(err, ERR_INVALID, "%s: must not be an input", at.path);
}

static int read_input(const struct json_at *at, struct plan_input *ret, struct err *err)
{
	static const struct text_rule target_rule = {.max_bytes = MANIFEST_MAX_PATH, .complaint = manifest_complain_target};
	size_t mode = 0, kind = PLAN_INPUT_FILE;
	int r = need_text(at, "target", &target_rule, &ret->target, err);

	if (r == 0)
		r = read_word(at, "mode", manifest_mode_names, &mode, err);
	ret->mode = manifest_modes[mode];
	if (r == 0)
		r = read_word(at, "kind", plan_input_kind_names, &kind, err);
	ret->kind = (enum plan_input_kind)kind;
	return r < 0 ? r : read_blob(at, ret, err);
}

static int read_inputs(const struct json_at *unit, struct plan_unit *ret, struct err *err)
{
	struct json_at at, element;
	int r = 0;

	json_at_key(unit, "inputs", &at);
	size_t count = json_array_size(at.value);
	if (count > MANIFEST_MAX_INPUTS)
		return err_set(err, ERR_INVALID, "%s: must be an array of at most %d inputs", at.path, MANIFEST_MAX_INPUTS);
	ret->inputs = calloc(count + 1, sizeof *ret->inputs);
	if (!ret->inputs)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	ret->input_count = count;
	for (size_t i = 0; r == 0 && i < count; i++) {
		json_at_index(&at, i, &element);
		r = read_input(&element, &ret->inputs[i], err);
	}
	return r;
}

static int read_command(const struct json_at *at, struct plan_unit *ret, struct err *err)
{
	static const struct list_rule argv_rule = {
		.min_count = 1, .max_count = MANIFEST_MAX_ARGS, .text = {.max_bytes = MANIFEST_MAX_COMMAND_BYTES},
	};
	static const struct list_rule env_rule = {
		.max_count = PLAN_MAX_ENV,
		.text = {.max_bytes = MANIFEST_MAX_COMMAND_BYTES, .complaint = manifest_complain_env_entry},
	};
	static const struct text_rule cwd_rule = {.max_bytes = MANIFEST_MAX_PATH, .complaint = manifest_complain_cwd};
	struct text_list argv = {0}, env = {0};
	int r = read_list(at, "argv", &argv_rule, &argv, err);

	ret->argv = argv.items;
	ret->argc = argv.count;
	if (r == 0)
		r = read_list(at, "env", &env_rule, &env, err);
	ret->env = env.items;
	ret->env_count = env.count;
	return r < 0 ? r : need_text(at, "cwd", &cwd_rule, &ret->cwd, err);
}

static int read_unit(const struct json_at *root, struct plan *plan, struct err *err)
{
	struct json_at units, at;
	struct plan_unit *unit = &plan->unit;

	json_at_key(root, "units", &units);
	if (json_array_size(units.value) != 1)
		return err_set(err, ERR_INVALID, "%s: must be an array of one unit", units.path);
	json_at_index(&units, 0, &at);
	int r = read_command(&at, unit, err);
	if (r == 0)
		r = read_inputs(&at, unit, err);
	if (r == 0)
		r = read_endpoint(&at, "stdin", &unit->standard_input, &unit->stdin_input, err);
	if (r == 0)
		r = read_endpoint(&at, "stdout", &unit->standard_output, NULL, err);
	if (r == 0)
		r = read_endpoint(&at, "stderr", &unit->standard_error, NULL, err);
	return r;
}

static int read_cpus(const struct json_at *limits, int64_t *ret, struct err *err)
{
	struct json_at at;
	const char *text = NULL;

	json_at_key(limits, "cpus", &at);
	if (json_is_null(at.value))
		return 0;
	int r = json_read_string(&at, MANIFEST_CPUS_SIZE, &text, err);
	if (r == 0 && text && !manifest_cpus_parse(text, ret))
		r = err_set(err, ERR_INVALID, "%s: must be null or a string such as \"2\" or \"0.5\"", at.path);
	return r;
}

static int read_limits(const struct json_at *root, struct plan *plan, struct err *err)
{
	struct json_at at;
	size_t overflow = OVERFLOW_KILL, scratch = SCRATCH_MEMORY;

	json_at_key(root, "limits", &at);
	int r = manifest_read_numbers(&at, plan_limit_fields, PLAN_LIMIT_FIELDS, &plan->limits, err);
	if (r == 0)
		r = read_cpus(&at, &plan->limits.cpus_centi, err);
	if (r == 0)
		r = manifest_read_pin(&at, &plan->limits.pin, err);
	if (r == 0)
		r = read_word(&at, "on_overflow", manifest_overflow_names, &overflow, err);
	if (r == 0)
		r = read_word(&at, "scratch", manifest_scratch_names, &scratch, err);
	plan->limits.on_overflow = (enum overflow_mode)overflow;
	plan->limits.scratch = (enum scratch_mode)scratch;
	return r;
}

static int read_head(const struct json_at *root, struct plan *plan, struct err *err)
{
	static const struct text_rule profile_rule = {.max_bytes = MANIFEST_MAX_NAME, .complaint = manifest_complain_empty};
	static const struct text_rule rootfs_rule = {.max_bytes = MANIFEST_MAX_PATH, .complaint = manifest_complain_rootfs};
	static const struct list_rule base_rule = {
		.max_count = PLAN_MAX_BASE,
		.text = {.max_bytes = MANIFEST_MAX_PATH, .complaint = manifest_complain_absolute},
	};
	struct text_list base = {0};
	int r = need_text(root, "profile", &profile_rule, &plan->profile, err);

	if (r == 0)
		r = need_text(root, "rootfs", &rootfs_rule, &plan->rootfs, err);
	if (r == 0)
		r = read_list(root, "base", &base_rule, &base, err);
	plan->base = base.items;
	plan->base_count = base.count;
	if (r == 0)
		r = read_digest(root, "manifest", &plan->manifest, err);
	if (r == 0)
		r = read_digest(root, "policy", &plan->policy, err);
	return r;
}

static int read_words(const struct json_at *root, struct plan *plan, struct err *err)
{
	struct json_at network;
	size_t retained = RETAINED_FAIL, mode = NETWORK_NONE;
	int r = read_word(root, "retained_output", manifest_retained_names, &retained, err);

	json_at_key(root, "network", &network);
	if (r == 0)
		r = read_word(&network, "mode", manifest_network_names, &mode, err);
	plan->retained_output = (enum retained_mode)retained;
	plan->network = (enum network_mode)mode;
	return r;
}

static int read_lists(const struct json_at *root, struct plan *plan, struct err *err)
{
	static const struct list_rule require_rule = {
		.max_count = MANIFEST_MAX_REQUIRE,
		.text = {.max_bytes = MANIFEST_MAX_REQUIRE_NAME, .complaint = manifest_complain_require},
	};
	static const struct list_rule output_rule = {
		.max_count = MANIFEST_MAX_OUTPUTS,
		.text = {.max_bytes = MANIFEST_MAX_PATH, .complaint = manifest_complain_output},
	};
	struct json_at outputs;
	struct text_list require = {0}, required = {0};
	int r = read_list(root, "require", &require_rule, &require, err);

	plan->require = require.items;
	plan->require_count = require.count;
	json_at_key(root, "outputs", &outputs);
	if (r == 0)
		r = read_list(&outputs, "required", &output_rule, &required, err);
	plan->required_outputs = required.items;
	plan->required_output_count = required.count;
	return r;
}

static int read_plan(const struct json_at *root, struct plan *plan, struct err *err)
{
	static int (*const readers[])(const struct json_at *, struct plan *, struct err *) = {
		read_head, read_unit, read_limits, read_words, read_lists,
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof readers / sizeof readers[0]; i++)
		r = readers[i](root, plan, err);
	return r;
}

int plan_parse(const char *text, size_t length, struct plan **ret, struct err *err)
{
	JSON_AUTO json_t *document = NULL;
	struct json_at root;

	if (length > PLAN_MAX_BYTES)
		return err_set(err, ERR_INVALID, "must be at most %d bytes", PLAN_MAX_BYTES);
	int r = json_parse(text, length, &document, err);
	if (r < 0)
		return r;
	PLAN_AUTO struct plan *plan = calloc(1, sizeof *plan);
	if (!plan)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	json_at_root(document, &root);
	r = read_plan(&root, plan, err);
	if (r == 0)
		r = plan_render(plan, err);
	if (r < 0)
		return r;
	if (plan->canonical_length != length || memcmp(plan->canonical, text, length) != 0)
		return err_set(err, ERR_DAMAGED, "not a plan in its canonical form");
	*ret = plan;
	plan = NULL;
	return 0;
}
