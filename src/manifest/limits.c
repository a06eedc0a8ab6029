/* limits.c - reads the manifest's limits and output rules, each against its range in the contract. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "manifest/internal.h"

/* What depends on the host (CPUs, memory, hard limits) is bounded by the plan compiler. */
static const struct number_field limit_fields[] = {
	{"wall_ms", offsetof(struct manifest_limits, wall_ms), 1, MANIFEST_MAX_WALL_MS},
	{"cpu_ms", offsetof(struct manifest_limits, cpu_ms), 1, MANIFEST_MAX_WALL_MS * MANIFEST_MAX_CPUS},
	{"memory_bytes", offsetof(struct manifest_limits, memory_bytes), MANIFEST_MIN_MEMORY_BYTES, INT64_MAX},
	{"pids", offsetof(struct manifest_limits, pids), 1, MANIFEST_MAX_PIDS},
	{"open_files", offsetof(struct manifest_limits, open_files), MANIFEST_MIN_OPEN_FILES, INT64_MAX},
	{"stack_bytes", offsetof(struct manifest_limits, stack_bytes), MANIFEST_MIN_STACK_BYTES, INT64_MAX},
	{"stdout_bytes", offsetof(struct manifest_limits, stdout_bytes), 0, MANIFEST_MAX_STREAM_BYTES},
	{"stderr_bytes", offsetof(struct manifest_limits, stderr_bytes), 0, MANIFEST_MAX_STREAM_BYTES},
	{"work_bytes", offsetof(struct manifest_limits, work_bytes), MANIFEST_MIN_WORK_BYTES, MANIFEST_MAX_SPACE_BYTES},
	{"work_inodes", offsetof(struct manifest_limits, work_inodes), MANIFEST_MIN_WORK_INODES, MANIFEST_MAX_INODES},
	{"on_limit_grace_ms", offsetof(struct manifest_limits, on_limit_grace_ms), 0, MANIFEST_MAX_GRACE_MS},
};

static const struct number_field output_fields[] = {
	{"max_files", offsetof(struct manifest_outputs, max_files), 0, MANIFEST_MAX_INODES},
	{"max_file_bytes", offsetof(struct manifest_outputs, max_file_bytes), 0, MANIFEST_MAX_SPACE_BYTES},
	{"max_bytes", offsetof(struct manifest_outputs, max_bytes), 0, MANIFEST_MAX_SPACE_BYTES},
};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static int read_cpus(const struct json_at *limits, int64_t *ret, struct err *err)
{
	struct json_at at;
	const char *text = NULL;

	json_at_key(limits, "cpus", &at);
	int r = json_read_string(&at, MANIFEST_MAX_PATH, &text, err);
	if (r < 0 || !text)
		return r;
	if (!manifest_cpus_parse(text, ret))
		return err_set(err, ERR_INVALID, "%s: must be a string such as \"2\" or \"0.5\", from \"0.01\" to \"%d\"", at.path, MANIFEST_MAX_CPUS);
	return 0;
}

/* null says what absence says: the default has no other spelling. */
int manifest_read_pin(const struct json_at *limits, struct cpu_list *ret, struct err *err)
{
	struct json_at at;
	const char *text = NULL;

	json_at_key(limits, "pin", &at);
	if (json_is_null(at.value))
		return 0;
	int r = json_read_string(&at, CPU_LIST_TEXT_SIZE, &text, err);
	if (r < 0 || !text)
		return r;
	if (!cpu_list_parse(text, ret))
		return err_set(err, ERR_INVALID, "%s: must be a list of CPUs such as \"0\" or \"0,2-3\", none above %d", at.path, CPU_LIST_CPUS - 1);
	return 0;
}

static int read_words(const struct json_at *limits, struct manifest_limits *ret, struct err *err)
{
	struct json_at at;
	size_t overflow = OVERFLOW_KILL, scratch = SCRATCH_MEMORY;

	json_at_key(limits, "on_overflow", &at);
	int r = manifest_read_choice(&at, manifest_overflow_names, &overflow, err);
	if (r < 0)
		return r;
	json_at_key(limits, "scratch", &at);
	r = manifest_read_choice(&at, manifest_scratch_names, &scratch, err);
	if (r < 0)
		return r;
	ret->on_overflow = (enum overflow_mode)overflow;
	ret->scratch = (enum scratch_mode)scratch;
	return 0;
}

/* The ranges that depend on another field. */
static int check_together(const struct json_at *limits, const char *profile, const struct manifest_limits *read, struct err *err)
{
	int64_t least = strcmp(profile, "docker") == 0 ? MANIFEST_MIN_MEMORY_DOCKER_BYTES : MANIFEST_MIN_MEMORY_BYTES;
	int64_t memory = read->memory_bytes < 0 ? MANIFEST_DEFAULT_MEMORY_BYTES : read->memory_bytes;

	if (memory < least)
		return err_set(err, ERR_INVALID, "%s.memory_bytes: must be at least %" PRId64 " with profile \"%s\"", limits->path, least, profile);
	if (read->stack_bytes > memory)
		return err_set(err, ERR_INVALID, "%s.stack_bytes: must be at most the memory limit, %" PRId64, limits->path, memory);
	return 0;
}

int manifest_read_limits(const struct json_at *at, const char *profile, struct manifest_limits *ret, struct err *err)
{
	static const char *const keys[] = {"wall_ms", "cpu_ms", "cpus", "pin", "memory_bytes", "pids", "open_files", "stack_bytes", "stdout_bytes",
	                                   "stderr_bytes", "on_overflow", "work_bytes", "work_inodes", "scratch", "on_limit_grace_ms", NULL};
	struct manifest_limits limits = {
		.wall_ms = -1, .cpu_ms = -1, .cpus_centi = -1, .memory_bytes = -1, .pids = -1, .open_files = -1, .stack_bytes = -1,
		.stdout_bytes = -1, .stderr_bytes = -1, .work_bytes = -1, .work_inodes = -1, .on_limit_grace_ms = -1,
		.on_overflow = OVERFLOW_KILL, .scratch = SCRATCH_MEMORY,
	};

	if (at->value) {
		int r = json_only_keys(at, keys, err);
		if (r == 0)
			r = manifest_read_numbers(at, limit_fields, COUNT_OF(limit_fields), &limits, err);
		if (r == 0)
			r = read_cpus(at, &limits.cpus_centi, err);
		if (r == 0)
			r = manifest_read_pin(at, &limits.pin, err);
		if (r == 0)
			r = read_words(at, &limits, err);
		if (r == 0)
			r = check_together(at, profile, &limits, err);
		if (r < 0)
			return r;
	}
	*ret = limits;
	return 0;
}

int manifest_read_outputs(const struct json_at *at, struct manifest_outputs *ret, struct err *err)
{
	static const char *const keys[] = {"required", "max_files", "max_file_bytes", "max_bytes", NULL};
	static const struct list_rule names = {
		.max_count = MANIFEST_MAX_OUTPUTS,
		.text = {.max_bytes = MANIFEST_MAX_PATH, .complaint = manifest_complain_output},
	};
	struct manifest_outputs outputs = {.given = at->value != NULL, .max_files = -1, .max_file_bytes = -1, .max_bytes = -1};
	struct text_list required = {0};

	if (at->value) {
		int r = json_only_keys(at, keys, err);
		if (r == 0)
			r = manifest_read_numbers(at, output_fields, COUNT_OF(output_fields), &outputs, err);
		struct json_at member;
		json_at_key(at, "required", &member);
		if (r == 0)
			r = manifest_read_texts(&member, &names, &required, err);
		if (r < 0)
			return r;
	}
	outputs.required = required.items;
	outputs.required_count = required.count;
	*ret = outputs;
	return 0;
}
