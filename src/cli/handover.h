/* handover.h - the subcommands that speak to a keeper: the command line is read here, and caisson-client does the rest. */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"

/* Becomes caisson-client: does not return but with an error. subcommand: its name; what: members of the request (client/request.h)
 * besides the socket and the options that several subcommands have; NULL for none. */
int handover(const char *subcommand, const struct options *options, json_t *what, struct err *err);

/* As handover, for a subcommand whose one operand is a run. */
int handover_run(const char *subcommand, const struct options *options, struct err *err);
