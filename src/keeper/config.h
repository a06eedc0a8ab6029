/* config.h - the configuration of a keeper of many runs: caisson.config/v1, one JSON document. Pure: no file is opened.
 *
 *     {"version": "caisson.config/v1", "workers": 4, "queue_max": 10000, "per_owner": 64, "lease_ttl_ms": 30000, "drain_ms": 30000,
 *      "socket": "/run/caisson/api.sock", "profile": "linux", "cgroup_parent": "/caisson"}
 *
 * Only the version is required. Syntax errors name line and column, all others the JSON path. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define CONFIG_VERSION "caisson.config/v1"

enum {
	CONFIG_MAX_BYTES = 64 * 1024,
	CONFIG_PATH_SIZE = 4096,
	CONFIG_PROFILE_SIZE = 16,
	CONFIG_PER_OWNER_MAX = 1024 * 1024,
};

struct config {
	char socket[CONFIG_PATH_SIZE];        /* "" : not given, likewise below; of numbers -1 */
	char profile[CONFIG_PROFILE_SIZE];
	char cgroup_parent[CONFIG_PATH_SIZE];
	int64_t workers;                      /* 1 .. SERVER_WORKERS_MAX */
	int64_t queue_max;                    /* 1 .. SERVER_QUEUE_MAX */
	int64_t per_owner;                    /* runs of one owner under way, 1 .. CONFIG_PER_OWNER_MAX */
	int64_t lease_ttl_ms;                 /* 1 s .. 10 min (contract, "Defaults and bounds") */
	int64_t drain_ms;                     /* 0 .. 24 h */
};

/* What no document says. */
void config_init(struct config *ret);

/* ERR_INVALID; *ret is then as it was. */
int config_parse(const char *text, size_t length, struct config *ret, struct err *err);
