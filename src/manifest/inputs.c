/* inputs.c - reads the manifest's inputs and standard input, and refuses targets that are in each other's way. */
#include <stdlib.h>
#include <string.h>

#include "manifest/internal.h"

/* One of these says where the bytes come from; the order is that of enum input_kind. */
static const char *const content_keys[] = {"source", "digest", "text"};

enum { CONTENT_KINDS = 3 };

static int content_kind(const struct json_at *at, enum input_kind *ret, struct err *err)
{
	enum input_kind kind = INPUT_NONE;
	int given = 0;

	for (int i = 0; i < CONTENT_KINDS; i++) {
		if (json_object_get(at->value, content_keys[i])) {
			kind = (enum input_kind)(INPUT_SOURCE + i);
			given++;
		}
	}
	if (given != 1)
		return err_set(err, ERR_INVALID, "%s: must have exactly one of \"source\", \"digest\" and \"text\"", at->path);
	*ret = kind;
	return 0;
}

static int read_content(const struct json_at *at, struct manifest_input *input, struct err *err)
{
	static const struct text_rule source_rule = {.max_bytes = MANIFEST_MAX_PATH, .complaint = manifest_complain_empty};
	static const struct text_rule text_rule = {.max_bytes = MANIFEST_MAX_BYTES};
	struct json_at member;
	int r = content_kind(at, &input->kind, err);

	if (r < 0)
		return r;
	json_at_key(at, content_keys[input->kind - INPUT_SOURCE], &member);
	switch (input->kind) {
	case INPUT_NONE:
		break;
	case INPUT_SOURCE:
		return manifest_read_text(&member, &source_rule, &input->source, err);
	case INPUT_DIGEST:
		return manifest_read_digest(&member, &input->digest, err);
	case INPUT_TEXT:
		r = manifest_read_text(&member, &text_rule, &input->text, err);
		input->text_length = r == 0 ? strlen(input->text) : 0;
		return r;
	}
	return 0;
}

static int read_input(const struct json_at *at, struct manifest_input *input, struct err *err)
{
	static const char *const keys[] = {"source", "digest", "text", "target", "mode", NULL};
	static const struct text_rule target_rule = {.max_bytes = MANIFEST_MAX_PATH, .complaint = manifest_complain_target};
	struct json_at member;
	size_t mode = 0;
	int r = json_only_keys(at, keys, err);

	if (r == 0)
		r = read_content(at, input, err);
	json_at_key(at, "target", &member);
	if (r == 0)
		r = manifest_need(&member, err);
	if (r == 0)
		r = manifest_read_text(&member, &target_rule, &input->target, err);
	json_at_key(at, "mode", &member);
	if (r == 0)
		r = manifest_read_choice(&member, manifest_mode_names, &mode, err);
	input->mode = manifest_modes[mode];
	return r;
}

struct target {
	const char *path;
	size_t index;
};

/* By bytes, but with '/' before every other byte: what is below a path then follows it at once. */
static int compare_targets(const void *a, const void *b)
{
	const unsigned char *left = (const unsigned char *)((const struct target *)a)->path;
	const unsigned char *right = (const unsigned char *)((const struct target *)b)->path;

	while (*left != '\0' && *left == *right) {
		left++;
		right++;
	}
	int left_rank = *left == '/' ? 1 : *left == '\0' ? 0 : *left + 2;
	int right_rank = *right == '/' ? 1 : *right == '\0' ? 0 : *right + 2;
	return left_rank - right_rank;
}

static int check_targets(const struct json_at *at, const struct manifest *manifest, struct err *err)
{
	struct target *targets = calloc(manifest->input_count + 1, sizeof *targets);
	int r = 0;

	if (!targets)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < manifest->input_count; i++)
		targets[i] = (struct target){.path = manifest->inputs[i].target, .index = i};
	qsort(targets, manifest->input_count, sizeof *targets, compare_targets);
	for (size_t i = 1; i < manifest->input_count && r == 0; i++) {
		const struct target *upper = &targets[i - 1], *lower = &targets[i];
		size_t length = strlen(upper->path);
		if (strncmp(upper->path, lower->path, length) == 0 && (lower->path[length] == '\0' || lower->path[length] == '/'))
			r = err_set(err, ERR_INVALID, "%s[%zu].target: is the target of %s[%zu], or below it", at->path, lower->index, at->path,
			            upper->index);
	}
	free(targets);
	return r;
}

int manifest_read_inputs(const struct json_at *at, struct manifest *manifest, struct err *err)
{
	if (!at->value)
		return 0;
	size_t count = json_array_size(at->value);
	if (!json_is_array(at->value) || count > MANIFEST_MAX_INPUTS)
		return err_set(err, ERR_INVALID, "%s: must be an array of at most %d inputs", at->path, MANIFEST_MAX_INPUTS);
	manifest->inputs = calloc(count + 1, sizeof *manifest->inputs);
	if (!manifest->inputs)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	manifest->input_count = count;
	for (size_t i = 0; i < count; i++) {
		struct json_at element;
		json_at_index(at, i, &element);
		int r = read_input(&element, &manifest->inputs[i], err);
		if (r < 0)
			return r;
	}
	return check_targets(at, manifest, err);
}

int manifest_read_stdin(const struct json_at *at, struct manifest_input *ret, struct err *err)
{
	static const char *const keys[] = {"source", "digest", "text", NULL};

	if (!at->value)
		return 0;
	int r = json_only_keys(at, keys, err);
	return r < 0 ? r : read_content(at, ret, err);
}
