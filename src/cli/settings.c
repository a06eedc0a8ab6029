/* settings.c - file, then options, then defaults. */
#include "cli/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "keeper/attempt.h"

enum {
	WORKERS_DEFAULT_MAX = 8, /* one a CPU, and no more than these */
	QUEUE_MAX = 10 * 1000,
	PER_OWNER = 1024,
	DRAIN_MS = 30 * 1000,
};

static int read_file(const char *path, struct config *ret, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(CONFIG_MAX_BYTES);
	FD_AUTO int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_sys(err, errno, "%s", path);

	int result = fd_read_rest(fd, &text, err);

	if (result == 0)
		result = config_parse(text.data ? text.data : "", text.len, ret, err);
	return result ? err_context(err, result, "%s", path) : 0;
}

static void choose_text(const char *option, char *ret, size_t size)
{
	if (option)
		snprintf(ret, size, "%s", option);
}

/* option: 0 when it was not given. */
static void choose_number(int64_t option, int64_t otherwise, int64_t *ret)
{
	if (option > 0)
		*ret = option;
	else if (*ret < 0)
		*ret = otherwise;
}

int settings_read(const struct options *options, struct config *ret, struct err *err)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	config_init(ret);
	int result = options->config ? read_file(options->config, ret, err) : 0;
	if (result)
		return result;
	choose_text(options->socket, ret->socket, sizeof(ret->socket));
	choose_text(options->profile, ret->profile, sizeof(ret->profile));
	choose_text(options->cgroup_parent, ret->cgroup_parent, sizeof(ret->cgroup_parent));
	choose_number(options->workers, cpus < 1 ? 1 : cpus < WORKERS_DEFAULT_MAX ? cpus : WORKERS_DEFAULT_MAX, &ret->workers);
	choose_number(options->queue_max, QUEUE_MAX, &ret->queue_max);
	choose_number(0, PER_OWNER, &ret->per_owner);
	choose_number(options->lease_ttl_ms, ATTEMPT_LEASE_TTL_MS, &ret->lease_ttl_ms);
	choose_number(0, DRAIN_MS, &ret->drain_ms);
	if (options->has_drain) /* 0 is a choice too */
		ret->drain_ms = options->drain_ms;
	return 0;
}
