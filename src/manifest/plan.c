/* plan.c - compiles a manifest to the exact configuration that a boundary enforces. */
#include "manifest/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/plan_internal.h"

/* The contract's "Defaults and bounds". */
enum {
	DEFAULT_WALL_MS = 10 * 1000,
	DEFAULT_PIDS = 64,
	DEFAULT_OPEN_FILES = 256,
	DEFAULT_STACK_BYTES = 8 * 1024 * 1024,
	DEFAULT_STREAM_BYTES = 1024 * 1024,
	DEFAULT_WORK_BYTES = 64 * 1024 * 1024,
	DEFAULT_WORK_INODES = 4096,
	/* Of ext4 with blocks of 4 KiB: what one group describes, and the inodes in a block of a group's table. */
	DISK_GROUP_BYTES = 128 * 1024 * 1024,
	DISK_INODES_STEP = 16,
	DISK_BYTES_PER_INODE = 2048, /* when the number is ours to choose: no more than an eighth is tables */
	DEFAULT_ON_LIMIT_GRACE_MS = 0,
	DEFAULT_CANCEL_GRACE_MS = 2000,
	DEFAULT_DRAIN_MS = 100,
	DEFAULT_CLEANUP_MS = 15 * 1000,
	DEFAULT_ARTIFACT_FILES = 64,
	DEFAULT_ARTIFACT_FILE_BYTES = 16 * 1024 * 1024,
};

/* Sorted by key, as the manifest's own are. */
static const struct {
	const char *key, *value;
} default_env[] = {
	{"HOME", "/box"},
	{"LANG", "C.UTF-8"},
	{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
};

enum { DEFAULT_ENV_COUNT = sizeof default_env / sizeof default_env[0] };

/* Besides /usr and what guest init makes itself: what gcc through `cc`, python, node, java and TLS clients look up in /etc. */
static const char *const linux_base[] = {
	"/etc/alternatives", "/etc/java-*-openjdk", "/etc/ld.so.cache", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", NULL,
};

enum { LINUX_BASE_COUNT = sizeof linux_base / sizeof linux_base[0] - 1 };

const char *const *plan_host_base(void)
{
	return linux_base;
}

static int64_t given_or(int64_t given, int64_t otherwise)
{
	return given >= 0 ? given : otherwise;
}

/* Down, so that never more is given than was asked for; but never to 0, which means "no limit" to a tmpfs. */
static int64_t whole_pages(int64_t bytes, int64_t page_bytes)
{
	return bytes < page_bytes ? page_bytes : bytes - bytes % page_bytes;
}

/* A pin that nothing was said about leaves all that the host has. */
static int64_t usable_cpus(const struct plan_limits *limits, int64_t cpus)
{
	int pinned = cpu_list_count(&limits->pin);

	return pinned > 0 ? pinned : cpus;
}

static int64_t default_cpu_ms(const struct plan_limits *limits, int64_t cpus)
{
	if (limits->cpus_centi == 0)
		return limits->wall_ms * usable_cpus(limits, cpus);
	return (limits->wall_ms * limits->cpus_centi + 99) / 100;
}

/* Each group of the image has as many inodes as the others, and whole blocks of them. */
static int64_t disk_inodes_step(int64_t bytes)
{
	int64_t groups = (bytes + DISK_GROUP_BYTES - 1) / DISK_GROUP_BYTES;

	return groups > 0 ? groups * DISK_INODES_STEP : DISK_INODES_STEP;
}

static int64_t disk_inodes(int64_t given, int64_t bytes)
{
	int64_t step = disk_inodes_step(bytes), most = bytes / DISK_BYTES_PER_INODE;

	if (given >= 0)
		return given - given % step;
	int64_t inodes = most < DEFAULT_WORK_INODES ? most : DEFAULT_WORK_INODES;
	return inodes < step ? step : inodes - inodes % step;
}

static void set_work(const struct manifest_limits *asked, const struct plan_host *host, struct plan_limits *ret)
{
	int64_t bytes = given_or(asked->work_bytes, DEFAULT_WORK_BYTES);

	ret->scratch = asked->scratch;
	switch (ret->scratch) {
	case SCRATCH_MEMORY:
		ret->work_bytes = whole_pages(bytes, host->page_bytes);
		ret->work_inodes = given_or(asked->work_inodes, DEFAULT_WORK_INODES);
		return;
	case SCRATCH_DISK:
		ret->work_bytes = bytes - bytes % PLAN_DISK_MIN_BYTES;
		ret->work_inodes = disk_inodes(asked->work_inodes, ret->work_bytes);
		return;
	}
}

static void set_limits(const struct manifest *manifest, const struct plan_host *host, struct plan_limits *ret)
{
	const struct manifest_limits *asked = &manifest->limits;
	const struct manifest_outputs *outputs = &manifest->outputs;

	ret->wall_ms = given_or(asked->wall_ms, DEFAULT_WALL_MS);
	ret->cpus_centi = given_or(asked->cpus_centi, 0);
	ret->pin = asked->pin;
	ret->cpu_ms = given_or(asked->cpu_ms, default_cpu_ms(ret, host->cpus));
	ret->memory_bytes = whole_pages(given_or(asked->memory_bytes, MANIFEST_DEFAULT_MEMORY_BYTES), host->page_bytes);
	ret->pids = given_or(asked->pids, DEFAULT_PIDS);
	ret->open_files = given_or(asked->open_files, DEFAULT_OPEN_FILES);
	ret->stack_bytes = given_or(asked->stack_bytes, DEFAULT_STACK_BYTES);
	if (ret->stack_bytes > ret->memory_bytes)
		ret->stack_bytes = ret->memory_bytes;
	ret->stdout_bytes = given_or(asked->stdout_bytes, DEFAULT_STREAM_BYTES);
	ret->stderr_bytes = given_or(asked->stderr_bytes, DEFAULT_STREAM_BYTES);
	ret->on_overflow = asked->on_overflow;
	set_work(asked, host, ret);
	/* More output space than may be collected would be of no use. */
	ret->out_bytes = whole_pages(given_or(outputs->max_bytes, PLAN_OUT_BYTES), host->page_bytes);
	ret->out_inodes = PLAN_OUT_INODES;
	ret->on_limit_grace_ms = given_or(asked->on_limit_grace_ms, DEFAULT_ON_LIMIT_GRACE_MS);
	ret->cancel_grace_ms = given_or(manifest->cancel_grace_ms, DEFAULT_CANCEL_GRACE_MS);
	ret->drain_ms = DEFAULT_DRAIN_MS;
	ret->cleanup_ms = DEFAULT_CLEANUP_MS;
	ret->artifact_files = given_or(outputs->max_files, DEFAULT_ARTIFACT_FILES);
	ret->artifact_file_bytes = given_or(outputs->max_file_bytes, DEFAULT_ARTIFACT_FILE_BYTES);
	ret->artifact_bytes = given_or(outputs->max_bytes, PLAN_OUT_BYTES);
}

/* The CPUs that the host lacks, and more bandwidth than the pin's have. */
static int check_cpus(const struct plan_limits *limits, const struct plan_host *host, struct err *err)
{
	char asked[MANIFEST_CPUS_SIZE], list[CPU_LIST_TEXT_SIZE];
	int missing = cpu_list_first_beyond(&limits->pin, &host->cpu_list);
	int64_t usable = usable_cpus(limits, host->cpus);

	if (missing >= 0)
		return err_set(err, ERR_UNENFORCEABLE, "limits.pin: CPU %d asked for, but this host can give %s", missing,
		               cpu_list_format(&host->cpu_list, list));
	if (limits->cpus_centi > usable * 100)
		return err_set(err, ERR_UNENFORCEABLE, "limits.cpus: %s asked for, but %s can give %" PRId64 " at most",
		               manifest_cpus_format(limits->cpus_centi, asked), cpu_list_count(&limits->pin) > 0 ? "the pin" : "this host", usable);
	return 0;
}

/* Rounding down to nothing: less than that there is not. */
static int check_disk(const struct plan_limits *limits, struct err *err)
{
	if (limits->scratch != SCRATCH_DISK)
		return 0;
	if (limits->work_bytes == 0)
		return err_set(err, ERR_UNENFORCEABLE, "limits.work_bytes: scratch disk has %d at least", PLAN_DISK_MIN_BYTES);
	if (limits->work_inodes == 0)
		return err_set(err, ERR_UNENFORCEABLE, "limits.work_inodes: scratch disk of %" PRId64 " bytes has %" PRId64 " at least",
		               limits->work_bytes, disk_inodes_step(limits->work_bytes));
	return 0;
}

static int check_host(const struct plan_limits *limits, const struct plan_host *host, struct err *err)
{
	const struct {
		const char *name;
		int64_t value, most;
	} bounds[] = {
		{"memory_bytes", limits->memory_bytes, host->memory_bytes},
		{"open_files", limits->open_files, host->open_files_hard},
		{"stack_bytes", limits->stack_bytes, host->stack_hard},
		{"pids", limits->pids, host->processes_hard},
		{"cpu_ms", limits->cpu_ms, host->cpu_hard_ms},
		{"memory_bytes", limits->memory_bytes, host->memory_hard},
		{"work_bytes", limits->work_bytes, host->file_hard},
		{"out_bytes", limits->out_bytes, host->file_hard},
		{"cpu_ms", limits->cpu_ms, MANIFEST_MAX_WALL_MS * usable_cpus(limits, host->cpus)},
	};

	for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
		if (bounds[i].value > bounds[i].most)
			return err_set(err, ERR_UNENFORCEABLE, "limits.%s: %" PRId64 " asked for, but this host can give %" PRId64 " at most",
			               bounds[i].name, bounds[i].value, bounds[i].most);
	int r = check_cpus(limits, host, err);
	return r < 0 ? r : check_disk(limits, err);
}

static int format_env(const char *key, const char *value, char **ret, struct err *err)
{
	if (asprintf(ret, "%s=%s", key, value) >= 0)
		return 0;
	*ret = NULL; /* asprintf leaves it undefined */
	return err_set(err, ERR_NO_MEMORY, "out of memory");
}

/* Merges two sorted lists; where both have a key, the manifest's value wins. */
static int set_env(const struct manifest *manifest, struct plan_unit *unit, struct err *err)
{
	size_t own = 0, standard = 0;

	unit->env = calloc(manifest->env_count + DEFAULT_ENV_COUNT + 1, sizeof *unit->env);
	if (!unit->env)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	while (own < manifest->env_count || standard < DEFAULT_ENV_COUNT) {
		int order = own == manifest->env_count      ? 1
		            : standard == DEFAULT_ENV_COUNT ? -1
		                                            : strcmp(manifest->env[own].key, default_env[standard].key);
		char **slot = &unit->env[unit->env_count];
		int r = order <= 0 ? format_env(manifest->env[own].key, manifest->env[own].value, slot, err)
		                   : format_env(default_env[standard].key, default_env[standard].value, slot, err);
		if (r < 0)
			return r;
		unit->env_count++;
		own += order <= 0;
		standard += order >= 0;
	}
	return 0;
}

static int set_inputs(const struct manifest *manifest, const struct plan_sealed *sealed, struct plan_unit *unit, struct err *err)
{
	if (sealed->input_count != manifest->input_count)
		return err_set(err, ERR_INTERNAL, "%zu inputs sealed, but the manifest has %zu", sealed->input_count, manifest->input_count);
	unit->inputs = calloc(manifest->input_count + 1, sizeof *unit->inputs);
	if (!unit->inputs)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	unit->input_count = manifest->input_count;
	for (size_t i = 0; i < manifest->input_count; i++) {
		unit->inputs[i].kind = sealed->inputs[i].kind;
		unit->inputs[i].digest = sealed->inputs[i].digest;
		unit->inputs[i].size_bytes = sealed->inputs[i].size_bytes;
		unit->inputs[i].mode = manifest->inputs[i].mode;
		int r = manifest_copy_text(manifest->inputs[i].target, &unit->inputs[i].target, err);
		if (r < 0)
			return r;
	}
	unit->standard_input = ENDPOINT_CLOSED;
	if (manifest->standard_input.kind != INPUT_NONE) {
		unit->standard_input = ENDPOINT_INPUT;
		unit->stdin_input.digest = sealed->stdin_input.digest;
		unit->stdin_input.size_bytes = sealed->stdin_input.size_bytes;
	}
	return 0;
}

static int set_unit(const struct manifest *manifest, const struct plan_sealed *sealed, struct plan_unit *unit, struct err *err)
{
	struct text_list argv = {0};
	int r = manifest_copy_texts((const char *const *)manifest->argv, manifest->argc, &argv, err);

	unit->argv = argv.items;
	unit->argc = argv.count;
	unit->standard_output = ENDPOINT_CAPTURE;
	unit->standard_error = ENDPOINT_CAPTURE;
	if (r == 0)
		r = set_env(manifest, unit, err);
	if (r == 0)
		r = manifest_copy_text(manifest->cwd, &unit->cwd, err);
	if (r == 0)
		r = set_inputs(manifest, sealed, unit, err);
	return r;
}

/* The curated part of the host's root. A rootfs of one's own shows nothing of the host. */
static int set_base(const struct manifest *manifest, struct plan *plan, struct err *err)
{
	bool curated = strcmp(manifest->profile, "linux") == 0 && strcmp(manifest->rootfs, "host") == 0;
	struct text_list base = {0};
	int r = manifest_copy_texts(linux_base, curated ? LINUX_BASE_COUNT : 0, &base, err);

	plan->base = base.items;
	plan->base_count = base.count;
	return r;
}

static int set_lists(const struct manifest *manifest, struct plan *plan, struct err *err)
{
	struct text_list require = {0}, outputs = {0};
	int r = manifest_copy_texts((const char *const *)manifest->require, manifest->require_count, &require, err);

	plan->require = require.items;
	plan->require_count = require.count;
	if (r == 0)
		r = manifest_copy_texts((const char *const *)manifest->outputs.required, manifest->outputs.required_count, &outputs, err);
	plan->required_outputs = outputs.items;
	plan->required_output_count = outputs.count;
	return r;
}

static int fill(const struct manifest *manifest, const struct plan_sealed *sealed, struct plan *plan, struct err *err)
{
	int r = manifest_copy_text(manifest->profile, &plan->profile, err);

	if (r == 0)
		r = manifest_copy_text(manifest->rootfs, &plan->rootfs, err);
	if (r == 0)
		r = set_base(manifest, plan, err);
	if (r == 0)
		r = set_unit(manifest, sealed, &plan->unit, err);
	if (r == 0)
		r = set_lists(manifest, plan, err);
	plan->retained_output = manifest->retained_output;
	plan->network = manifest->network;
	plan->manifest = manifest->digest;
	return r;
}

int plan_compile(const struct manifest *manifest, const struct plan_host *host, const struct plan_sealed *sealed,
                 const struct digest *policy, struct plan **ret, struct err *err)
{
	PLAN_AUTO struct plan *plan = calloc(1, sizeof *plan);

	if (!plan)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	set_limits(manifest, host, &plan->limits);
	int r = check_host(&plan->limits, host, err);
	if (r == 0)
		r = fill(manifest, sealed, plan, err);
	plan->policy = *policy;
	if (r == 0)
		r = plan_render(plan, err);
	if (r < 0)
		return r;
	*ret = plan;
	plan = NULL;
	return 0;
}

void plan_free(struct plan *plan)
{
	if (!plan)
		return;
	free(plan->profile);
	free(plan->rootfs);
	manifest_free_texts(plan->base);
	manifest_free_texts(plan->unit.argv);
	manifest_free_texts(plan->unit.env);
	free(plan->unit.cwd);
	for (size_t i = 0; i < plan->unit.input_count; i++)
		free(plan->unit.inputs[i].target);
	free(plan->unit.inputs);
	manifest_free_texts(plan->require);
	manifest_free_texts(plan->required_outputs);
	free(plan->canonical);
	free(plan);
}
