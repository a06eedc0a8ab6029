/* option_table.c - the one table of options: name, the subcommands that know it, what it sets, what the help says. */
#include "cli/options.h"
#include "print/units.h"

static int set_flag(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	(void)value;
	(void)err;
	*(bool *)((char *)options + row->offset) = true;
	return 0;
}

static int set_text(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	if (!*value)
		return err_set(err, ERR_INVALID, "the value is empty");
	*(const char **)((char *)options + row->offset) = value;
	return 0;
}

static int set_limit(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	(void)row;
	return units_parse_count(value, &options->limit, err);
}

static int set_in_flight(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	(void)row;
	return units_parse_count(value, &options->in_flight, err);
}

static int set_older(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	(void)row;
	return units_parse_time_ms(value, &options->older_ms, err);
}

static int set_patience(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	(void)row;
	return units_parse_time_ms(value, &options->patience_ms, err);
}

static int set_max_bytes(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	(void)row;
	options->has_max_bytes = true;
	return units_parse_size(value, &options->max_bytes, err);
}

static int set_count(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	return units_parse_count(value, (int64_t *)((char *)options + row->offset), err);
}

static int set_time(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	return units_parse_time_ms(value, (int64_t *)((char *)options + row->offset), err);
}

static int set_drain(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	(void)row;
	options->has_drain = true;
	return units_parse_time_ms(value, &options->drain_ms, err);
}

static int draft_size(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	int64_t bytes = 0;
	int result = units_parse_size(value, &bytes, err);

	return result ? result : draft_set(&options->draft, row->path, json_integer(bytes), err);
}

static int draft_time(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	int64_t ms = 0;
	int result = units_parse_time_ms(value, &ms, err);

	return result ? result : draft_set(&options->draft, row->path, json_integer(ms), err);
}

static int draft_count(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	int64_t count = 0;
	int result = units_parse_count(value, &count, err);

	return result ? result : draft_set(&options->draft, row->path, json_integer(count), err);
}

static int draft_word(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	return draft_set_text(&options->draft, row->path, value, err);
}

static int draft_pair(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	return draft_set_pair(&options->draft, row->path, value, err);
}

static int draft_input(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	(void)row;
	return draft_add_input(&options->draft, value, err);
}

static int draft_requirement(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	json_t *text = json_string(value);

	if (!text)
		return err_set(err, ERR_INVALID, "the text is not valid UTF-8");
	return draft_append(&options->draft, row->path, text, err);
}

/* The manifest bounds each stream; on the command line one figure for both is what people mean. */
static int draft_output(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	int64_t bytes = 0;
	int result = units_parse_size(value, &bytes, err);

	if (result == 0)
		result = draft_set(&options->draft, row->path, json_integer(bytes), err);
	if (result == 0)
		result = draft_set(&options->draft, "limits.stderr_bytes", json_integer(bytes), err);
	return result;
}

static int draft_stdin(struct options *options, const struct option_row *row, const char *value, struct err *err)
{
	int result = draft_set(&options->draft, row->path, json_object(), err);

	return result ? result : draft_set_text(&options->draft, "stdin.source", value, err);
}

#define MEMBER(member) .offset = offsetof(struct options, member)

const struct option_row option_table[] = {
	{"memory", FOR_JOB, "SIZE", "memory, tmpfs included; 256M", draft_size, .path = "limits.memory_bytes"},
	{"wall", FOR_JOB, "TIME", "wall-clock time; 10s", draft_time, .path = "limits.wall_ms"},
	{"cpu", FOR_JOB, "TIME", "CPU time; wall x CPUs", draft_time, .path = "limits.cpu_ms"},
	{"cpus", FOR_JOB, "N", "CPU bandwidth, such as 0.5; all", draft_word, .path = "limits.cpus"},
	{"pin", FOR_JOB, "LIST", "the only CPUs to run on, such as 0,2-3; all", draft_word, .path = "limits.pin"},
	{"pids", FOR_JOB, "N", "processes and threads; 64", draft_count, .path = "limits.pids"},
	{"output", FOR_JOB, "SIZE", "each of stdout and stderr; 1M", draft_output, .path = "limits.stdout_bytes"},
	{"on-overflow", FOR_JOB, "kill|truncate", "what more output does; kill", draft_word, .path = "limits.on_overflow"},
	{"work", FOR_JOB, "SIZE", "space of /box and /tmp; 64M", draft_size, .path = "limits.work_bytes"},
	{"scratch", FOR_JOB, "memory|disk", "where that space is; memory", draft_word, .path = "limits.scratch"},
	{"stack", FOR_JOB, "SIZE", "stack, soft limit; 8M", draft_size, .path = "limits.stack_bytes"},
	{"open-files", FOR_JOB, "N", "open files; 256", draft_count, .path = "limits.open_files"},
	{"grace", FOR_JOB, "TIME", "between TERM and KILL of a cancellation; 2s", draft_time, .path = "cancel.grace_ms"},
	{"stdin", FOR_JOB, "FILE|-", "copied in first; closed", draft_stdin, .path = "stdin"},
	{"input", FOR_JOB, "SRC:DEST", "a file or directory copied in, or a sha256:... of the store; read-only, below /box", draft_input,
         .path = "inputs"},
	{"require-output", FOR_JOB, "NAME", "a file that must be in /out at the end, and not empty", draft_requirement,
         .path = "outputs.required"},
	{"env", FOR_JOB, "NAME=VALUE", "environment; nothing is inherited", draft_pair, .path = "command.env"},
	{"cwd", FOR_JOB, "DIR", "working directory; /box", draft_word, .path = "command.cwd"},
	{"rootfs", FOR_JOB, "DIR", "root directory; a read-only view of the host's", draft_word, .path = "rootfs"},
	{"retained-output", FOR_JOB, "fail|ignore", "a stream still held after main's exit; fail", draft_word,
         .path = "retained_output"},
	{"require", FOR_JOB, "NAME", "refuse without this protection, such as landlock>=3", draft_requirement, .path = "require"},
	{"label", FOR_JOB, "NAME=VALUE", "kept with the run", draft_pair, .path = "labels"},
	{"profile", FOR_JOB, "NAME", "kind of boundary; linux", draft_word, .path = "profile"},
	{"manifest", FOR_JOB, "FILE|-", "take all of the above, and the command, from a manifest", set_text, MEMBER(manifest_file)},
	{"profile", FOR_DOCTOR, "NAME", "kind of boundary; linux", set_text, MEMBER(profile)},
	{"cgroup-parent", FOR_RUN | FOR_RECOVER | FOR_SWEEP | FOR_DOCTOR | FOR_SERVE, "PATH", "below which group runs get theirs; $CAISSON_CGROUP_PARENT", set_text,
         MEMBER(cgroup_parent)},
	{"limit", FOR_LIST, "N", "newest runs to show; 50", set_limit},
	{"stdout", FOR_LOGS, NULL, "standard output alone", set_flag, MEMBER(only_stdout)},
	{"stderr", FOR_LOGS, NULL, "standard error alone, written to standard output", set_flag, MEMBER(only_stderr)},
	{"all", FOR_VERIFY, NULL, "every run, and the chain of seals", set_flag, MEMBER(all)},
	{"trust", FOR_VERIFY, "FINGERPRINT", "the only key whose signatures count", set_text, MEMBER(trust)},
	{"head", FOR_VERIFY, "FILE", "the chain must still contain the head saved there", set_text, MEMBER(head)},
	{"save-head", FOR_VERIFY, "FILE", "save the chain's head when all holds", set_text, MEMBER(save_head)},
	{"max-bytes", FOR_GC, "SIZE", "oldest first, until the store is no larger", set_max_bytes},
	{"older", FOR_GC, "AGE", "only what was stored so long ago", set_older},
	{"dry-run", FOR_RECOVER | FOR_SWEEP | FOR_GC, NULL, "only say what would be done", set_flag, MEMBER(dry_run)},
	{"key", FOR_SUBMIT, "KEY", "the same key and manifest again are the same run", set_text, MEMBER(key)},
	{"key", FOR_BATCH, "KEY", "what the lines' keys are made of: with the same one, the same runs", set_text, MEMBER(key)},
	{"unordered", FOR_BATCH, NULL, "print each result as soon as it is there", set_flag, MEMBER(unordered)},
	{"in-flight", FOR_BATCH, "N", "runs at a time; 32", set_in_flight},
	{"wait", FOR_SUBMIT, NULL, "wait for its end, as caisson wait does", set_flag, MEMBER(wait)},
	{"follow", FOR_LOGS | FOR_EVENTS, NULL, "go on until the run's end; also -f", set_flag, MEMBER(follow)},
	{"socket", FOR_CLIENT | FOR_LOGS | FOR_SERVE | FOR_RECOVER, "PATH", "the keeper's; api.sock in the ledger's directory", set_text, MEMBER(socket)},
	{"patience", FOR_CLIENT | FOR_LOGS, "TIME", "how long a keeper that restarts may be away; 60s", set_patience},
	{"config", FOR_SERVE, "FILE", "its configuration, which other options override; read again at SIGHUP", set_text, MEMBER(config)},
	{"workers", FOR_SERVE, "N", "runs at a time; one a CPU, at most 8", set_count, MEMBER(workers)},
	{"queue", FOR_SERVE, "N", "runs that may wait; 10000", set_count, MEMBER(queue_max)},
	{"lease", FOR_SERVE, "TIME", "how long a silent keeper's runs are its own; 30s", set_time, MEMBER(lease_ttl_ms)},
	{"drain", FOR_SERVE, "TIME", "what runs may take so long to end when it is told to stop; 30s", set_drain},
	{"profile", FOR_SERVE, "NAME", "kind of boundary of its workers; linux", set_text, MEMBER(profile)},
	{"ledger", FOR_LEDGER, "DIR", "the ledger's directory; $CAISSON_LEDGER", set_text, MEMBER(ledger)},
	{"quiet", FOR_OUTCOME, NULL, "no line about a run that did not succeed", set_flag, MEMBER(quiet)},
	{"summary", FOR_OUTCOME, NULL, "always a line about the run; on a terminal its usage", set_flag, MEMBER(summary)},
	{"json", FOR_ALL & ~FOR_LOGS & ~FOR_HELP & ~FOR_CAT & ~FOR_EXPORT & ~FOR_BATCH, NULL, "one JSON document instead of text", set_flag, MEMBER(json)},
	{"help", FOR_ALL, NULL, "this text", set_flag, MEMBER(help)},
	{0},
};
