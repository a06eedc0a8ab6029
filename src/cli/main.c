/* main.c - finds the subcommand, reads its options, runs it, and says what went wrong. */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "print/output.h"

enum { HEAP_STEP_BYTES = 1 << 20 }; /* the heap grows in steps of this: a run needs about one, and asked the kernel for 18 small ones */

const struct command *const command_table[] = {
	&command_run, &command_submit, &command_batch, &command_serve, &command_wait, &command_cancel, &command_ps, &command_events,
	&command_workers, &command_list, &command_show, &command_logs, &command_artifacts, &command_export, &command_cat,
	&command_verify, &command_fsck, &command_gc, &command_recover, &command_sweep, &command_doctor, &command_manifest,
	&command_version, &command_help, NULL,
};

const struct command *command_find(const char *name)
{
	/* The two options that people try on any program. */
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return &command_help;
	if (strcmp(name, "--version") == 0)
		return &command_version;
	for (const struct command *const *command = command_table; *command; command++)
		if (strcmp((*command)->name, name) == 0)
			return *command;
	return NULL;
}

int require_operands(const struct options *options, size_t count, const char *what, struct err *err)
{
	if (options->operand_count < count)
		return err_set(err, ERR_INVALID, "needs %s", what);
	if (options->operand_count > count)
		return err_set(err, ERR_INVALID, "unexpected \"%s\": it takes %s", options->operands[count], what);
	return 0;
}

static int run_command(const struct command *command, char **argv)
{
	struct options options = {0};
	struct err err = ERR_INIT;
	int status = options_parse(command->bit, argv, &options, &err);

	if (status == 0 && options.help)
		help_command(STDOUT_FILENO, command);
	else if (status == 0)
		status = command->run(&options, &err);
	options_done(&options);
	if (status >= 0 && command != &command_run && output_lost()) /* over a run no reader decides */
		status = err_sys(&err, output_lost(), "standard output");
	if (status >= 0)
		return status;
	if (err.code == ERR_INVALID)
		complain("%s: %s (see caisson %s --help)", command->name, err.text, command->name);
	else
		complain("%s: %s", command->name, err.text);
	return STATUS_CAISSON;
}

/* Whoever starts us may have closed a standard descriptor. What we open next would get its number, and be written to as if it were the
 * standard output. A stand-in is open the wrong way round, so that using it fails as using a closed one does. */
static bool occupy_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int wrong_way = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", wrong_way | O_CLOEXEC) != fd)
			return false;
	}
	return true;
}

/* What we make is ours to read and write again, whatever the caller's umask takes from others; a limit on the size of files is an error of
 * the write that meets it, like a full disk. */
static void settle_inherited(void)
{
	mode_t umask_of_caller = umask(0);

	umask(umask_of_caller & (S_IRWXG | S_IRWXO));
	signal(SIGXFSZ, SIG_IGN);
}

int main(int argc, char **argv)
{
	if (!occupy_standard_descriptors())
		return STATUS_CAISSON;
	settle_inherited();
	mallopt(M_TOP_PAD, HEAP_STEP_BYTES);
	mallopt(M_MXFAST, 0); /* the chunks of its fast lists are all merged again whenever a large one is wanted: 0.05 ms of each run */
	if (argc < 2) {
		help_overview(STDERR_FILENO);
		return STATUS_CAISSON;
	}

	const struct command *command = command_find(argv[1]);

	if (!command) {
		complain("there is no command \"%s\" (see caisson help)", argv[1]);
		return STATUS_CAISSON;
	}
	return run_command(command, argv + 2);
}
