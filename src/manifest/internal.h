/* internal.h - what the parts of the manifest's and the plan's readers share; private to this folder. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "manifest/manifest.h"

#define MANIFEST_MAX_WALL_MS INT64_C(86400000)
#define MANIFEST_MAX_STREAM_BYTES (INT64_C(1) << 30)
#define MANIFEST_MAX_SPACE_BYTES (INT64_C(1) << 40) /* of a work or output space; the real bound is the policy's */
#define MANIFEST_MAX_INODES (INT64_C(1) << 24)
#define MANIFEST_MIN_MEMORY_BYTES INT64_C(4194304)
#define MANIFEST_MIN_MEMORY_DOCKER_BYTES INT64_C(6291456)
#define MANIFEST_MIN_STACK_BYTES INT64_C(65536)
#define MANIFEST_DEFAULT_MEMORY_BYTES INT64_C(268435456)

enum {
	MANIFEST_MAX_CPUS = 9999, /* what the spelling of `cpus` can say */
	MANIFEST_MAX_PIDS = 32768,
	MANIFEST_MIN_OPEN_FILES = 8,
	MANIFEST_MIN_WORK_BYTES = 4096, /* a tmpfs of size 0 would be one without a limit, and so with inodes */
	MANIFEST_MIN_WORK_INODES = 16,  /* the places that make up the work space need a few themselves */
	MANIFEST_MAX_GRACE_MS = 60000,
	MANIFEST_MAX_NAME = 255, /* bytes of one component of a path */
	MANIFEST_MAX_LABEL_KEY = 64,
	MANIFEST_MAX_LABEL_VALUE = 1024,
	MANIFEST_MAX_REQUIRE_NAME = 64,
	MANIFEST_CPUS_SIZE = 24, /* two numbers, a dot and NUL */
};

/* The fixed words of the document, in the order of their enums; NULL-terminated. */
extern const char *const manifest_profile_names[];
extern const char *const manifest_overflow_names[];
extern const char *const manifest_scratch_names[];
extern const char *const manifest_network_names[];
extern const char *const manifest_retained_names[];
extern const char *const manifest_mode_names[];
extern const uint32_t manifest_modes[]; /* of manifest_mode_names */

/* What a text must look like. complaint: NULL when it may hold anything; gives NULL, or why the text is not allowed. */
struct text_rule {
	size_t max_bytes;
	const char *(*complaint)(const char *text);
};

/* The rules (rules.c). */
const char *manifest_complain_empty(const char *text);
const char *manifest_complain_absolute(const char *text); /* absolute, without "", "." and ".." */
const char *manifest_complain_cwd(const char *text);
const char *manifest_complain_target(const char *text);
const char *manifest_complain_output(const char *text);
const char *manifest_complain_rootfs(const char *text);
const char *manifest_complain_env_key(const char *text);
const char *manifest_complain_env_entry(const char *text); /* NAME=VALUE */
const char *manifest_complain_require(const char *text);
/* "2", "0.5", "0.25" to and from hundredths of a CPU. False when it is no such number, or 0. */
bool manifest_cpus_parse(const char *text, int64_t *ret_centi);
const char *manifest_cpus_format(int64_t centi, char text[static MANIFEST_CPUS_SIZE]);

/* The readers (read.c): as those of base/json.h, an absent value leaves *ret alone and gives 0. Results are the caller's. */
struct text_list {
	char **items; /* NULL-terminated; NULL when the value is absent */
	size_t count;
};

struct pair_list {
	struct manifest_pair *items; /* sorted by key */
	size_t count;
};

struct list_rule {
	size_t min_count, max_count;
	struct text_rule text;
};

struct pair_rule {
	size_t max_count;
	struct text_rule key, value;
};

struct number_field {
	const char *name;
	size_t offset; /* of the int64_t in the struct that is filled */
	int64_t min, max;
};

/* ERR_INVALID when the value is absent. */
int manifest_need(const struct json_at *at, struct err *err);
int manifest_read_text(const struct json_at *at, const struct text_rule *rule, char **ret, struct err *err);
int manifest_read_texts(const struct json_at *at, const struct list_rule *rule, struct text_list *ret, struct err *err);
int manifest_read_pairs(const struct json_at *at, const struct pair_rule *rule, struct pair_list *ret, struct err *err);
/* *ret becomes the index of the value in `names`. */
int manifest_read_choice(const struct json_at *at, const char *const *names, size_t *ret, struct err *err);
int manifest_read_digest(const struct json_at *at, struct digest *ret, struct err *err);
/* Reads the members of `at` that the table names (count rows) into the struct at `base`. */
int manifest_read_numbers(const struct json_at *at, const struct number_field *fields, size_t count, void *base, struct err *err);

int manifest_copy_text(const char *text, char **ret, struct err *err);
int manifest_copy_texts(const char *const *texts, size_t count, struct text_list *ret, struct err *err);
void manifest_free_texts(char **texts);
void manifest_free_pairs(struct manifest_pair *pairs, size_t count);

/* The sections (one file each); `at` may be absent. */
int manifest_read_limits(const struct json_at *at, const char *profile, struct manifest_limits *ret, struct err *err);
/* The pin of limits; a plan says it in the same words. */
int manifest_read_pin(const struct json_at *limits, struct cpu_list *ret, struct err *err);
int manifest_read_outputs(const struct json_at *at, struct manifest_outputs *ret, struct err *err);
/* On failure the manifest may hold a part; manifest_free releases it. */
int manifest_read_inputs(const struct json_at *at, struct manifest *manifest, struct err *err);
int manifest_read_stdin(const struct json_at *at, struct manifest_input *ret, struct err *err);
