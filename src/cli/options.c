/* options.c - reads a command line by the rows of option_table. */
#include "cli/options.h"

#include <string.h>

void options_done(struct options *options)
{
	draft_done(&options->draft);
}

/* `name` ends at `length`: it may have "=VALUE" behind it. */
static const struct option_row *find_row(unsigned command, const char *name, size_t length)
{
	for (const struct option_row *row = option_table; row->name; row++)
		if ((row->commands & command) && strlen(row->name) == length && memcmp(row->name, name, length) == 0)
			return row;
	return NULL;
}

static int set_option(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	int result = row->set(options, row, value, err);

	if (result)
		return err_context(err, result, "--%s", row->name);
	if (row->path && !options->draft_option)
		options->draft_option = row->name;
	return 0;
}

/* Reads the option at *argv, and moves *argv to the last word that belongs to it. */
static int read_option(unsigned command, char ***argv, struct options *options, struct err *err)
{
	const char *word = **argv, *name = word + 2, *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	const struct option_row *row = word[1] == '-' ? find_row(command, name, length) : NULL;

	if (strcmp(word, "-h") == 0)
		row = find_row(command, "help", strlen("help"));
	if (strcmp(word, "-f") == 0)
		row = find_row(command, "follow", strlen("follow"));
	if (!row)
		return err_set(err, ERR_INVALID, "unknown option %s", word);
	if (!row->value)
		return equals ? err_set(err, ERR_INVALID, "--%s takes no value", row->name) : set_option(options, row, NULL, err);
	if (equals)
		return set_option(options, row, equals + 1, err);
	if (!(*argv)[1])
		return err_set(err, ERR_INVALID, "--%s needs a value: %s", row->name, row->value);
	(*argv)++;
	return set_option(options, row, **argv, err);
}

int options_parse(unsigned command, char **argv, struct options *ret, struct err *err)
{
	char **operand = argv;

	ret->operands = argv;
	ret->patience_ms = OPTIONS_PATIENCE_MS;
	for (; *argv; argv++) {
		bool is_option = (*argv)[0] == '-' && (*argv)[1];

		if (is_option && strcmp(*argv, "--") != 0) {
			int result = read_option(command, &argv, ret, err);

			if (result)
				return result;
			continue;
		}
		if (is_option || (command & FOR_JOB)) {
			/* Everything from here on is operands. */
			for (argv += is_option; *argv; argv++)
				*operand++ = *argv;
			break;
		}
		*operand++ = *argv;
	}
	*operand = NULL;
	ret->operand_count = (size_t)(operand - ret->operands);
	return 0;
}

/* The row whose path is the longest beginning of `text`. */
static const struct option_row *row_of_path(const char *text)
{
	const struct option_row *found = NULL;

	for (const struct option_row *row = option_table; row->name; row++) {
		if (!row->path)
			continue;

		size_t length = strlen(row->path);
		bool whole = strncmp(text, row->path, length) == 0 && strchr(".[: ", text[length]);

		if (whole && (!found || length > strlen(found->path)))
			found = row;
	}
	return found;
}

void options_explain(struct err *err)
{
	const char *text = err->text;

	if (strncmp(text, "$.", 2) == 0)
		text += 2;

	const struct option_row *row = row_of_path(text);

	if (row)
		err_set(err, err->code, "--%s%s", row->name, text + strlen(row->path));
	else if (strncmp(text, "command.", strlen("command.")) == 0)
		err_set(err, err->code, "the command: %s", text);
}
