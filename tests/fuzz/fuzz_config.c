/* fuzz_config.c - a configuration that is accepted lies within its bounds, and one that is not changes nothing and says why. */
#include "fuzz.h"

#include <string.h>

#include "keeper/config.h"
#include "keeper/server.h"

static bool within(int64_t value, int64_t low, int64_t high)
{
	return value == -1 || (value >= low && value <= high);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config config, before;
	struct err err = ERR_INIT;

	config_init(&config);
	memcpy(&before, &config, sizeof(config));
	if (config_parse((const char *)data, size, &config, &err) != 0) {
		HOLDS(err.code == ERR_INVALID && err.text[0] != '\0' && memcmp(&config, &before, sizeof(config)) == 0);
		return 0;
	}
	HOLDS(within(config.workers, 1, SERVER_WORKERS_MAX) && within(config.queue_max, 1, SERVER_QUEUE_MAX));
	HOLDS(within(config.per_owner, 1, CONFIG_PER_OWNER_MAX) && within(config.lease_ttl_ms, 1000, 600 * 1000));
	HOLDS(config.drain_ms >= -1);
	HOLDS(memchr(config.socket, '\0', sizeof(config.socket)) && memchr(config.cgroup_parent, '\0', sizeof(config.cgroup_parent)) &&
	      memchr(config.profile, '\0', sizeof(config.profile)));
	return 0;
}
