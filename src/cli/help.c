/* help.c - `caisson help`, and the text of every --help. */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "print/output.h"

enum { HELP_MAX = 16 * 1024, NAME_COLUMN = 32 };

void help_overview(int fd)
{
	BUF_AUTO struct buf text = BUF_INIT(HELP_MAX);

	buf_puts(&text, "Caisson runs a program in a verified boundary and seals a signed receipt of what happened.\n\n", NULL);
	for (const struct command *const *command = command_table; *command; command++)
		buf_printf(&text, NULL, "  caisson %-9s %.*s\n", (*command)->name, (int)strcspn((*command)->summary, "\n"),
		           (*command)->summary);
	buf_puts(&text, "\ncaisson COMMAND --help says more. Exit status 125: Caisson itself could not do it.\n", NULL);
	print_text(fd, &text);
}

static void append_option(struct buf *text, const struct option_row *row)
{
	BUF_AUTO struct buf name = BUF_INIT(HELP_MAX);

	buf_printf(&name, NULL, "--%s%s%s", row->name, row->value ? " " : "", row->value ? row->value : "");
	buf_printf(text, NULL, "  %-*s %s\n", NAME_COLUMN, name.data ? name.data : "", row->help);
}

void help_command(int fd, const struct command *command)
{
	BUF_AUTO struct buf text = BUF_INIT(HELP_MAX);

	buf_printf(&text, NULL, "usage: caisson %s%s%s\n\n%s\n\noptions:\n", command->name, *command->usage ? " " : "",
	           command->usage, command->summary);
	for (const struct option_row *row = option_table; row->name; row++)
		if (row->commands & command->bit)
			append_option(&text, row);
	buf_printf(&text, NULL, "\nexamples:\n%s", command->examples);
	print_text(fd, &text);
}

static int run(struct options *options, struct err *err)
{
	if (options->operand_count == 0) {
		help_overview(STDOUT_FILENO);
		return STATUS_OK;
	}

	int result = require_operands(options, 1, "at most one command", err);

	if (result)
		return result;

	const struct command *command = command_find(options->operands[0]);

	if (!command)
		return err_set(err, ERR_INVALID, "there is no command \"%s\"", options->operands[0]);
	help_command(STDOUT_FILENO, command);
	return STATUS_OK;
}

const struct command command_help = {
	.name = "help",
	.bit = FOR_HELP,
	.usage = "[COMMAND]",
	.summary = "Shows what there is, or how to use one command.",
	.examples = "  caisson help run\n",
	.run = run,
};
