/* plan_json.c - writes a plan as JSON: the text that travels to the worker and whose digest approvals and receipts bind to. */
#include <string.h>

#include "manifest/plan_internal.h"

#define FIELD(name) #name, offsetof(struct plan_limits, name)

const struct number_field plan_limit_fields[PLAN_LIMIT_FIELDS] = {
	{FIELD(wall_ms), 1, MANIFEST_MAX_WALL_MS},
	{FIELD(cpu_ms), 1, MANIFEST_MAX_WALL_MS * MANIFEST_MAX_CPUS},
	{FIELD(memory_bytes), MANIFEST_MIN_MEMORY_BYTES, INT64_MAX},
	{FIELD(pids), 1, MANIFEST_MAX_PIDS},
	{FIELD(open_files), MANIFEST_MIN_OPEN_FILES, INT64_MAX},
	{FIELD(stack_bytes), MANIFEST_MIN_STACK_BYTES, INT64_MAX},
	{FIELD(stdout_bytes), 0, MANIFEST_MAX_STREAM_BYTES},
	{FIELD(stderr_bytes), 0, MANIFEST_MAX_STREAM_BYTES},
	{FIELD(work_bytes), MANIFEST_MIN_WORK_BYTES, MANIFEST_MAX_SPACE_BYTES},
	{FIELD(work_inodes), MANIFEST_MIN_WORK_INODES, MANIFEST_MAX_INODES},
	{FIELD(out_bytes), MANIFEST_MIN_WORK_BYTES, MANIFEST_MAX_SPACE_BYTES},
	{FIELD(out_inodes), MANIFEST_MIN_WORK_INODES, MANIFEST_MAX_INODES},
	{FIELD(on_limit_grace_ms), 0, MANIFEST_MAX_GRACE_MS},
	{FIELD(cancel_grace_ms), 0, MANIFEST_MAX_GRACE_MS},
	{FIELD(drain_ms), 0, PLAN_MAX_DRAIN_MS},
	{FIELD(cleanup_ms), PLAN_MIN_CLEANUP_MS, PLAN_MAX_CLEANUP_MS},
	{FIELD(artifact_files), 0, MANIFEST_MAX_INODES},
	{FIELD(artifact_file_bytes), 0, MANIFEST_MAX_SPACE_BYTES},
	{FIELD(artifact_bytes), 0, MANIFEST_MAX_SPACE_BYTES},
};

const char *const plan_endpoint_names[] = {
	[ENDPOINT_CLOSED] = "closed", [ENDPOINT_INPUT] = "input", [ENDPOINT_CAPTURE] = "capture", [ENDPOINT_PIPE] = "pipe", NULL,
};

/* The builders below give a new value, or NULL when out of memory (a NULL member makes its parent NULL as well). */

static json_t *texts(char *const *items, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		if (json_array_append_new(array, json_string(items[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *digest(const struct digest *value)
{
	char text[DIGEST_TEXT_SIZE];

	return json_string(digest_text(value, text));
}

static json_t *endpoint(enum plan_endpoint kind, const struct plan_input *input)
{
	const char *name = plan_endpoint_names[kind];

	if (kind != ENDPOINT_INPUT)
		return json_pack("{s:s}", "endpoint", name);
	return json_pack("{s:s, s:o, s:I}", "endpoint", name, "digest", digest(&input->digest), "size_bytes", (json_int_t)input->size_bytes);
}

static const char *mode_name(uint32_t mode)
{
	size_t i = 0;

	while (manifest_mode_names[i + 1] && manifest_modes[i] != mode)
		i++;
	return manifest_mode_names[i];
}

const char *const plan_input_kind_names[] = {[PLAN_INPUT_FILE] = "file", [PLAN_INPUT_TREE] = "tree", NULL};

static json_t *input(const struct plan_input *item)
{
	json_t *object = json_pack("{s:s, s:s, s:o, s:I}", "target", item->target, "mode", mode_name(item->mode), "digest",
	                           digest(&item->digest), "size_bytes", (json_int_t)item->size_bytes);

	/* Plans of the time before there were trees have no kind. */
	if (item->kind != PLAN_INPUT_FILE && json_object_set_new(object, "kind", json_string(plan_input_kind_names[item->kind])) != 0) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *inputs(const struct plan_input *items, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		if (json_array_append_new(array, input(&items[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *unit(const struct plan_unit *unit)
{
	return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "argv", texts(unit->argv, unit->argc), "env", texts(unit->env, unit->env_count),
	                 "cwd", unit->cwd, "stdin", endpoint(unit->standard_input, &unit->stdin_input), "stdout",
	                 endpoint(unit->standard_output, NULL), "stderr", endpoint(unit->standard_error, NULL), "inputs",
	                 inputs(unit->inputs, unit->input_count));
}

static json_t *limits(const struct plan_limits *limits)
{
	char cpus[MANIFEST_CPUS_SIZE], pin[CPU_LIST_TEXT_SIZE];
	json_t *object = json_pack("{s:s?, s:s, s:s}", "cpus", limits->cpus_centi > 0 ? manifest_cpus_format(limits->cpus_centi, cpus) : NULL,
	                           "on_overflow", manifest_overflow_names[limits->on_overflow], "scratch",
	                           manifest_scratch_names[limits->scratch]);

	for (size_t i = 0; i < PLAN_LIMIT_FIELDS; i++) {
		const int64_t *number = (const int64_t *)(const void *)((const char *)limits + plan_limit_fields[i].offset);
		if (json_object_set_new(object, plan_limit_fields[i].name, json_integer(*number)) != 0) {
			json_decref(object);
			return NULL;
		}
	}
	/* Plans of the time before there were pins have none. */
	if (cpu_list_count(&limits->pin) > 0 && json_object_set_new(object, "pin", json_string(cpu_list_format(&limits->pin, pin))) != 0) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *document(const struct plan *plan)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:[o], s:o, s:s, s:{s:s}, s:o, s:{s:o}, s:o, s:o}", "version", PLAN_VERSION, "profile",
	                 plan->profile, "rootfs", plan->rootfs, "base", texts(plan->base, plan->base_count), "units", unit(&plan->unit), "limits",
	                 limits(&plan->limits), "retained_output", manifest_retained_names[plan->retained_output], "network", "mode",
	                 manifest_network_names[plan->network], "require", texts(plan->require, plan->require_count), "outputs", "required",
	                 texts(plan->required_outputs, plan->required_output_count), "manifest", digest(&plan->manifest), "policy",
	                 digest(&plan->policy));
}

int plan_render(struct plan *plan, struct err *err)
{
	JSON_AUTO json_t *value = document(plan);
	BUF_AUTO struct buf text = BUF_INIT(PLAN_MAX_BYTES);

	if (!value)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	int r = json_canonical(value, &text, err);
	if (r < 0)
		return err_context(err, r, "plan");
	digest_of(text.data, text.len, &plan->digest);
	plan->canonical_length = text.len;
	plan->canonical = buf_take(&text);
	return 0;
}
