/* config.c - reads the configuration, strictly: a misspelt key is an error, never a default. */
#include "keeper/config.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "keeper/server.h"

enum { LEASE_MIN_MS = 1000, LEASE_MAX_MS = 10 * 60 * 1000, DRAIN_MAX_MS = 24 * 60 * 60 * 1000 };

void config_init(struct config *ret)
{
	*ret = (struct config){.workers = -1, .queue_max = -1, .per_owner = -1, .lease_ttl_ms = -1, .drain_ms = -1};
}

static int read_text(const struct json_at *root, const char *key, char *ret, size_t size, struct err *err)
{
	struct json_at at;
	const char *text = "";
	json_at_key(root, key, &at);
	int result = json_read_string(&at, size - 1, &text, err);
	if (result == 0 && at.value && !*text)
		result = err_set(err, ERR_INVALID, "%s: must not be empty", at.path);
	if (result == 0)
		snprintf(ret, size, "%s", text);
	return result;
}

static int read_number(const struct json_at *root, const char *key, int64_t min, int64_t max, int64_t *ret, struct err *err)
{
	struct json_at at;
	json_at_key(root, key, &at);
	return json_read_int(&at, min, max, ret, err);
}

static int read_version(const struct json_at *root, struct err *err)
{
	struct json_at at;
	const char *version = NULL;
	json_at_key(root, "version", &at);
	int result = json_read_string(&at, CONFIG_PATH_SIZE, &version, err);
	if (result == 0 && (!version || strcmp(version, CONFIG_VERSION) != 0))
		result = err_set(err, ERR_INVALID, "$.version: must be \"%s\"", CONFIG_VERSION);
	return result;
}

static int read_numbers(const struct json_at *root, struct config *config, struct err *err)
{
	int result = read_number(root, "workers", 1, SERVER_WORKERS_MAX, &config->workers, err);
	if (result == 0)
		result = read_number(root, "queue_max", 1, SERVER_QUEUE_MAX, &config->queue_max, err);
	if (result == 0)
		result = read_number(root, "per_owner", 1, CONFIG_PER_OWNER_MAX, &config->per_owner, err);
	if (result == 0)
		result = read_number(root, "lease_ttl_ms", LEASE_MIN_MS, LEASE_MAX_MS, &config->lease_ttl_ms, err);
	if (result == 0)
		result = read_number(root, "drain_ms", 0, DRAIN_MAX_MS, &config->drain_ms, err);
	return result;
}

static int read_config(const json_t *document, struct config *ret, struct err *err)
{
	static const char *const keys[] = {"version", "socket", "profile", "cgroup_parent", "workers", "queue_max", "per_owner", "lease_ttl_ms",
	                                   "drain_ms", NULL};
	struct json_at root;
	json_at_root(document, &root);
	int result = json_only_keys(&root, keys, err);
	if (result == 0)
		result = read_version(&root, err);
	if (result == 0)
		result = read_text(&root, "socket", ret->socket, sizeof(ret->socket), err);
	if (result == 0)
		result = read_text(&root, "profile", ret->profile, sizeof(ret->profile), err);
	if (result == 0)
		result = read_text(&root, "cgroup_parent", ret->cgroup_parent, sizeof(ret->cgroup_parent), err);
	return result < 0 ? result : read_numbers(&root, ret, err);
}

int config_parse(const char *text, size_t length, struct config *ret, struct err *err)
{
	JSON_AUTO json_t *document = NULL;
	struct config config;
	if (length > CONFIG_MAX_BYTES)
		return err_set(err, ERR_INVALID, "must be at most %d bytes", CONFIG_MAX_BYTES);
	config_init(&config);
	int result = json_parse(text, length, &document, err);
	if (result == 0)
		result = read_config(document, &config, err);
	if (result == 0)
		*ret = config;
	return result;
}
