/* job.h - the manifest that a command line describes: with options and a command, or with --manifest FILE. */
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "manifest/manifest.h"

/* command: the subcommand's name, for the advice in an error. ERR_INVALID names the option, or the JSON path in the file. */
int job_manifest(struct options *options, const char *command, struct manifest **ret, struct err *err);
