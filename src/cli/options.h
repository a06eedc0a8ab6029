/* options.h - the options of all subcommands: one table (option_table.c), one struct, one small parser.
 *
 * Names are matched whole: an abbreviation that works today may mean something else tomorrow. `--name VALUE` and `--name=VALUE`
 * are the same; the last of two wins; `--` ends the options. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/draft.h"

enum {
	FOR_RUN = 1 << 0,
	FOR_LIST = 1 << 1,
	FOR_SHOW = 1 << 2,
	FOR_LOGS = 1 << 3,
	FOR_VERIFY = 1 << 4,
	FOR_RECOVER = 1 << 5,
	FOR_DOCTOR = 1 << 6,
	FOR_MANIFEST = 1 << 7,
	FOR_VERSION = 1 << 8,
	FOR_HELP = 1 << 9,
	FOR_ARTIFACTS = 1 << 10,
	FOR_EXPORT = 1 << 11,
	FOR_CAT = 1 << 12,
	FOR_GC = 1 << 13,
	FOR_FSCK = 1 << 14,
	FOR_SUBMIT = 1 << 15,
	FOR_WAIT = 1 << 16,
	FOR_CANCEL = 1 << 17,
	FOR_EVENTS = 1 << 18,
	FOR_WORKERS = 1 << 19,
	FOR_PS = 1 << 20,
	FOR_BATCH = 1 << 21,
	FOR_SERVE = 1 << 22,
	FOR_SWEEP = 1 << 23,
	FOR_JOB = FOR_RUN | FOR_SUBMIT, /* those with a command of the guest's */
	FOR_OUTCOME = FOR_JOB | FOR_WAIT,
	FOR_CLIENT = FOR_SUBMIT | FOR_WAIT | FOR_CANCEL | FOR_EVENTS | FOR_WORKERS | FOR_PS | FOR_BATCH,
	FOR_OUTPUTS = FOR_ARTIFACTS | FOR_EXPORT | FOR_CAT,
	FOR_LEDGER = FOR_RUN | FOR_LIST | FOR_SHOW | FOR_LOGS | FOR_VERIFY | FOR_RECOVER | FOR_DOCTOR | FOR_OUTPUTS | FOR_GC | FOR_FSCK |
	             FOR_CLIENT | FOR_SERVE | FOR_SWEEP,
	FOR_ALL = (1 << 24) - 1,
};

enum { OPTIONS_PATIENCE_MS = 60 * 1000 };

struct options {
	bool help, json, quiet, summary, all, only_stdout, only_stderr, dry_run, follow, wait, unordered;
	const char *ledger;        /* NULL: not given */
	const char *manifest_file; /* "-": standard input */
	const char *profile;       /* doctor */
	const char *cgroup_parent; /* NULL: not given */
	const char *socket, *key;  /* of a keeper; of a submission */
	int64_t patience_ms, in_flight;
	const char *trust, *head, *save_head;
	int64_t limit;
	const char *config;        /* serve */
	int64_t workers, queue_max, lease_ttl_ms, drain_ms; /* 0: not given */
	bool has_drain;
	int64_t older_ms;         /* gc */
	int64_t max_bytes;
	bool has_max_bytes;
	struct draft draft;       /* run: what the options say of the manifest */
	const char *draft_option; /* the first option that went into it; NULL for none */
	char **operands;          /* borrowed from argv, NULL-terminated */
	size_t operand_count;
};

struct option_row {
	const char *name;
	unsigned commands;
	const char *value; /* placeholder in the help; NULL for a flag */
	const char *help;
	int (*set)(struct options *options, const struct option_row *row, const char *value, struct err *err);
	size_t offset;    /* of the member, for those that set one */
	const char *path; /* in the manifest, for those that go into the draft */
};

/* Ends with a row without a name. */
extern const struct option_row option_table[];

/* Reads argv (after the subcommand's name) by the rows of this command. With one of FOR_JOB the first operand ends the options,
 * elsewhere they mix. argv is reordered. Zero-initialised *ret; options_done in every case. ERR_INVALID names the option. */
int options_parse(unsigned command, char **argv, struct options *ret, struct err *err);
void options_done(struct options *options);

/* An error of the manifest or the plan names a JSON path; in a run that was described by options the reader wants the option's
 * name. */
void options_explain(struct err *err);
