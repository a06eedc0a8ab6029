/* require.c - does this host have what a plan's `require` names? Asked before anything is made.
 *
 * A name is a property that a run may depend on; a level is compared where there is one. A name that this version does not know is not
 * there: a typo never means "nothing asked". */
#include "boundary/linux/linux_boundary.h"

#include <stdlib.h>
#include <string.h>

/* The level of a property: 0 absent, 1 present, or its own scale. -1: no such name. */
static long level_of(const struct linux_provider *provider, const char *name, size_t length)
{
	const struct host *host = &provider->host;
	const bool memory_v2 = host->controllers[CONTROLLER_MEMORY].v2;
	const struct {
		const char *name;
		long level;
	} properties[] = {
		{"cgroup.kill", host->unified},     {"cgroup.v2", memory_v2 && host->controllers[CONTROLLER_PIDS].v2},
		{"landlock", host->landlock_abi},   {"memory.oom_group", memory_v2},
		{"memory.peak", host->memory_peak}, {"pids.peak", host_has_pids_peak(host)},
		{"no_new_privs", 1},                {"seccomp", 1}, /* a run without one does not pass enroll */
		{"userns", 1},                      {"ids.separate", provider->ids.kind != IDS_CALLERS_OWN},
	};
	for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++)
		if (strlen(properties[i].name) == length && memcmp(properties[i].name, name, length) == 0)
			return properties[i].level;
	return -1;
}

int linux_check_require(const struct linux_provider *provider, const struct plan *plan, struct err *err)
{
	for (size_t i = 0; i < plan->require_count; i++) {
		const char *entry = plan->require[i], *level = strstr(entry, ">=");
		size_t length = level ? (size_t)(level - entry) : strlen(entry);
		long wanted = level ? strtol(level + 2, NULL, 10) : 1, has = level_of(provider, entry, length);
		if (has < 0)
			return err_set(err, ERR_UNENFORCEABLE, "require %s: no such property is known", entry);
		if (has < wanted)
			return err_set(err, ERR_UNENFORCEABLE, "require %s: this host has level %ld", entry, has);
	}
	return 0;
}
