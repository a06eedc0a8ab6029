/* cli.h - a subcommand, and what its result becomes. */
#pragma once

#include "base/error.h"
#include "cli/options.h"

enum {
	STATUS_OK = 0,
	STATUS_NO = 1,       /* the command worked, and its answer is no: verify found something, a run is not possible here */
	STATUS_CAISSON = 125 /* Caisson itself could not do it (contract, "Verdicts") */
};

struct command {
	const char *name;
	unsigned bit;         /* FOR_… */
	const char *usage;    /* what follows "caisson NAME" */
	const char *summary;  /* a sentence */
	const char *examples; /* lines, each ended */
	/* An exit status, or a negative err_code: then main prints the error and exits with 125. */
	int (*run)(struct options *options, struct err *err);
};

/* All of them, ending with NULL. */
extern const struct command *const command_table[];

extern const struct command command_run, command_list, command_show, command_logs, command_verify, command_recover, command_doctor,
	command_manifest, command_version, command_help, command_artifacts, command_export, command_cat, command_gc, command_fsck,
	command_submit, command_wait, command_cancel, command_events, command_workers, command_ps, command_batch, command_serve,
	command_sweep;

/* NULL when there is none of this name. */
const struct command *command_find(const char *name);

/* The texts of --help, on fd. */
void help_overview(int fd);
void help_command(int fd, const struct command *command);

/* ERR_INVALID unless there are exactly `count` operands; `what` names them. */
int require_operands(const struct options *options, size_t count, const char *what, struct err *err);
