/* job.c - makes a manifest out of a command line. */
#include "cli/job.h"

#include <string.h>

#include "cli/manifest_file.h"

static int of_file(const struct options *options, struct manifest **ret, struct err *err)
{
	if (options->draft_option)
		return err_set(err, ERR_INVALID, "--%s cannot go with --manifest, which says all of it", options->draft_option);
	if (options->operand_count)
		return err_set(err, ERR_INVALID, "a command cannot go with --manifest, which has its own");

	int result = manifest_file_load(options->manifest_file, ret, err);

	if (result)
		return result;

	const struct manifest_input *input = &(*ret)->standard_input;
	bool from_stdin = input->kind == INPUT_SOURCE && strcmp(input->source, "-") == 0;

	if (from_stdin && strcmp(options->manifest_file, "-") == 0)
		return err_set(err, ERR_INVALID, "standard input cannot be both the manifest and the program's stdin");
	return 0;
}

static int of_options(struct options *options, const char *command, struct manifest **ret, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(MANIFEST_MAX_BYTES);

	if (!options->operand_count)
		return err_set(err, ERR_INVALID, "needs a command, such as: caisson %s -- /bin/true", command);

	int result = draft_set_command(&options->draft, options->operands, err);

	if (result == 0)
		result = draft_text(&options->draft, &text, err);
	if (result)
		return result;
	result = manifest_parse(text.data, text.len, ret, err);
	if (result)
		options_explain(err);
	return result;
}

int job_manifest(struct options *options, const char *command, struct manifest **ret, struct err *err)
{
	return options->manifest_file ? of_file(options, ret, err) : of_options(options, command, ret, err);
}
