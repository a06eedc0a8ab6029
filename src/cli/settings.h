/* settings.h - what a keeper of many runs goes by: its configuration file, the options, which win, and the defaults. */
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "keeper/config.h"

/* Every number is set. The texts may be "": not given. An error of the file names it, and the place in it. */
int settings_read(const struct options *options, struct config *ret, struct err *err);
