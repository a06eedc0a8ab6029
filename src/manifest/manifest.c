/* manifest.c - parses and validates a manifest into one immutable struct. */
#include "manifest/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "manifest/internal.h"

static int read_argv(const struct json_at *command, struct manifest *manifest, struct err *err)
{
	static const struct list_rule rule = {.min_count = 1, .max_count = MANIFEST_MAX_ARGS, .text = {.max_bytes = MANIFEST_MAX_COMMAND_BYTES}};
	struct json_at at;
	struct text_list argv = {0};

	json_at_key(command, "argv", &at);
	int r = manifest_need(&at, err);
	if (r == 0)
		r = manifest_read_texts(&at, &rule, &argv, err);
	if (r < 0)
		return r;
	manifest->argv = argv.items;
	manifest->argc = argv.count;
	if (argv.items[0][0] == '\0')
		return err_set(err, ERR_INVALID, "%s[0]: must not be empty", at.path);
	return 0;
}

static int read_env(const struct json_at *command, struct manifest *manifest, struct err *err)
{
	static const struct pair_rule rule = {
		.max_count = MANIFEST_MAX_ENV,
		.key = {.max_bytes = MANIFEST_MAX_COMMAND_BYTES, .complaint = manifest_complain_env_key},
		.value = {.max_bytes = MANIFEST_MAX_COMMAND_BYTES},
	};
	struct json_at at;
	struct pair_list env = {0};

	json_at_key(command, "env", &at);
	int r = manifest_read_pairs(&at, &rule, &env, err);
	manifest->env = env.items;
	manifest->env_count = env.count;
	return r;
}

/* The kernel bounds argv and env together, with their NULs. */
static int check_command_size(const struct json_at *command, const struct manifest *manifest, struct err *err)
{
	size_t bytes = 0;

	for (size_t i = 0; i < manifest->argc; i++)
		bytes += strlen(manifest->argv[i]) + 1;
	for (size_t i = 0; i < manifest->env_count; i++)
		bytes += strlen(manifest->env[i].key) + 1 + strlen(manifest->env[i].value) + 1;
	if (bytes > MANIFEST_MAX_COMMAND_BYTES)
		return err_set(err, ERR_INVALID, "%s: argv and env must be at most %d bytes together", command->path, MANIFEST_MAX_COMMAND_BYTES);
	return 0;
}

static int read_command(const struct json_at *root, struct manifest *manifest, struct err *err)
{
	static const char *const keys[] = {"argv", "cwd", "env", NULL};
	static const struct text_rule cwd_rule = {.max_bytes = MANIFEST_MAX_PATH, .complaint = manifest_complain_cwd};
	struct json_at command, at;

	json_at_key(root, "command", &command);
	int r = manifest_need(&command, err);
	if (r == 0)
		r = json_only_keys(&command, keys, err);
	if (r == 0)
		r = read_argv(&command, manifest, err);
	json_at_key(&command, "cwd", &at);
	if (r == 0)
		r = at.value ? manifest_read_text(&at, &cwd_rule, &manifest->cwd, err) : manifest_copy_text("/box", &manifest->cwd, err);
	if (r == 0)
		r = read_env(&command, manifest, err);
	if (r == 0)
		r = check_command_size(&command, manifest, err);
	return r;
}

static int read_version(const struct json_at *root, struct err *err)
{
	static const char *const versions[] = {MANIFEST_VERSION, NULL};
	struct json_at at;
	size_t version;

	json_at_key(root, "version", &at);
	int r = manifest_need(&at, err);
	return r < 0 ? r : manifest_read_choice(&at, versions, &version, err);
}

static int read_profile(const struct json_at *root, struct manifest *manifest, struct err *err)
{
	struct json_at at;
	size_t profile = 0;

	json_at_key(root, "profile", &at);
	int r = manifest_read_choice(&at, manifest_profile_names, &profile, err);
	return r < 0 ? r : manifest_copy_text(manifest_profile_names[profile], &manifest->profile, err);
}

/* The base of the guest's view: rootfs and image. */
static int read_base(const struct json_at *root, struct manifest *manifest, struct err *err)
{
	static const struct text_rule rootfs_rule = {.max_bytes = MANIFEST_MAX_PATH, .complaint = manifest_complain_rootfs};
	static const struct text_rule image_rule = {.max_bytes = MANIFEST_MAX_PATH, .complaint = manifest_complain_empty};
	struct json_at at;

	json_at_key(root, "rootfs", &at);
	int r = at.value ? manifest_read_text(&at, &rootfs_rule, &manifest->rootfs, err) : manifest_copy_text("host", &manifest->rootfs, err);
	if (r < 0)
		return r;
	json_at_key(root, "image", &at);
	if (!at.value || json_is_null(at.value))
		return 0;
	if (strcmp(manifest->profile, "docker") != 0)
		return err_set(err, ERR_INVALID, "%s: must be null unless the profile is \"docker\"", at.path);
	return manifest_read_text(&at, &image_rule, &manifest->image, err);
}

static int read_words(const struct json_at *root, struct manifest *manifest, struct err *err)
{
	static const char *const network_keys[] = {"mode", NULL};
	struct json_at network, at;
	size_t retained = RETAINED_FAIL, mode = NETWORK_NONE;

	json_at_key(root, "retained_output", &at);
	int r = manifest_read_choice(&at, manifest_retained_names, &retained, err);
	json_at_key(root, "network", &network);
	if (r == 0 && network.value)
		r = json_only_keys(&network, network_keys, err);
	json_at_key(&network, "mode", &at);
	if (r == 0)
		r = manifest_read_choice(&at, manifest_network_names, &mode, err);
	manifest->retained_output = (enum retained_mode)retained;
	manifest->network = (enum network_mode)mode;
	return r;
}

static int read_require(const struct json_at *root, struct manifest *manifest, struct err *err)
{
	static const struct list_rule rule = {
		.max_count = MANIFEST_MAX_REQUIRE,
		.text = {.max_bytes = MANIFEST_MAX_REQUIRE_NAME, .complaint = manifest_complain_require},
	};
	struct json_at at;
	struct text_list require = {0};

	json_at_key(root, "require", &at);
	int r = manifest_read_texts(&at, &rule, &require, err);
	manifest->require = require.items;
	manifest->require_count = require.count;
	return r;
}

static int read_cancel(const struct json_at *root, struct manifest *manifest, struct err *err)
{
	static const char *const keys[] = {"grace_ms", NULL};
	struct json_at cancel, at;
	int r = 0;

	manifest->cancel_grace_ms = -1;
	json_at_key(root, "cancel", &cancel);
	if (cancel.value)
		r = json_only_keys(&cancel, keys, err);
	json_at_key(&cancel, "grace_ms", &at);
	return r < 0 ? r : json_read_int(&at, 0, MANIFEST_MAX_GRACE_MS, &manifest->cancel_grace_ms, err);
}

static int read_labels(const struct json_at *root, struct manifest *manifest, struct err *err)
{
	static const struct pair_rule rule = {
		.max_count = MANIFEST_MAX_LABELS,
		.key = {.max_bytes = MANIFEST_MAX_LABEL_KEY, .complaint = manifest_complain_empty},
		.value = {.max_bytes = MANIFEST_MAX_LABEL_VALUE},
	};
	struct json_at at;
	struct pair_list labels = {0};

	json_at_key(root, "labels", &at);
	int r = manifest_read_pairs(&at, &rule, &labels, err);
	manifest->labels = labels.items;
	manifest->label_count = labels.count;
	return r;
}

/* limits, inputs, stdin, outputs: the sections with a file of their own. */
static int read_sections(const struct json_at *root, struct manifest *manifest, struct err *err)
{
	struct json_at at;

	json_at_key(root, "limits", &at);
	int r = manifest_read_limits(&at, manifest->profile, &manifest->limits, err);
	json_at_key(root, "inputs", &at);
	if (r == 0)
		r = manifest_read_inputs(&at, manifest, err);
	json_at_key(root, "stdin", &at);
	if (r == 0)
		r = manifest_read_stdin(&at, &manifest->standard_input, err);
	json_at_key(root, "outputs", &at);
	if (r == 0)
		r = manifest_read_outputs(&at, &manifest->outputs, err);
	return r;
}

static int read_manifest(const struct json_at *root, struct manifest *manifest, struct err *err)
{
	static const char *const keys[] = {"version", "profile", "command", "rootfs", "image", "inputs", "stdin", "outputs", "limits",
	                                   "retained_output", "network", "require", "cancel", "labels", NULL};
	static int (*const readers[])(const struct json_at *, struct manifest *, struct err *) = {
		read_profile, read_command, read_base, read_sections, read_words, read_require, read_cancel, read_labels,
	};
	int r = json_only_keys(root, keys, err);

	if (r == 0)
		r = read_version(root, err);
	for (size_t i = 0; r == 0 && i < sizeof readers / sizeof readers[0]; i++)
		r = readers[i](root, manifest, err);
	return r;
}

static int set_canonical(const json_t *document, struct manifest *manifest, struct err *err)
{
	/* Never longer than the document, which spells nothing shorter than the canonical form does. */
	BUF_AUTO struct buf canonical = BUF_INIT(MANIFEST_MAX_BYTES);
	int r = json_canonical(document, &canonical, err);

	if (r < 0)
		return r;
	digest_of(canonical.data, canonical.len, &manifest->digest);
	manifest->canonical_length = canonical.len;
	manifest->canonical = buf_take(&canonical);
	return 0;
}

int manifest_parse(const char *text, size_t length, struct manifest **ret, struct err *err)
{
	JSON_AUTO json_t *document = NULL;
	struct json_at root;

	if (length > MANIFEST_MAX_BYTES)
		return err_set(err, ERR_INVALID, "must be at most %d bytes", MANIFEST_MAX_BYTES);
	int r = json_parse(text, length, &document, err);
	if (r < 0)
		return r;
	MANIFEST_AUTO struct manifest *manifest = calloc(1, sizeof *manifest);
	if (!manifest)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	json_at_root(document, &root);
	r = read_manifest(&root, manifest, err);
	if (r == 0)
		r = set_canonical(document, manifest, err);
	if (r < 0)
		return r;
	*ret = manifest;
	manifest = NULL;
	return 0;
}

int manifest_labels(const struct manifest *manifest, struct buf *ret, struct err *err)
{
	JSON_AUTO json_t *labels = json_object();
	for (size_t i = 0; i < manifest->label_count; i++)
		if (json_object_set_new(labels, manifest->labels[i].key, json_string(manifest->labels[i].value)) < 0)
			return err_set(err, ERR_NO_MEMORY, "out of memory for labels");
	return json_canonical(labels, ret, err);
}

static void free_input(struct manifest_input *input)
{
	free(input->source);
	free(input->text);
	free(input->target);
}

void manifest_free(struct manifest *manifest)
{
	if (!manifest)
		return;
	free(manifest->profile);
	manifest_free_texts(manifest->argv);
	free(manifest->cwd);
	manifest_free_pairs(manifest->env, manifest->env_count);
	free(manifest->rootfs);
	free(manifest->image);
	for (size_t i = 0; i < manifest->input_count; i++)
		free_input(&manifest->inputs[i]);
	free(manifest->inputs);
	free_input(&manifest->standard_input);
	manifest_free_texts(manifest->outputs.required);
	manifest_free_texts(manifest->require);
	manifest_free_pairs(manifest->labels, manifest->label_count);
	free(manifest->canonical);
	free(manifest);
}
