/* places.c - finds the ledger's directory, the installed programs, and where boundaries go. */
#include "cli/places.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"

#define SOCKET_NAME "api.sock"
#define SYSTEM_LEDGER "/var/lib/caisson"

int places_ledger(const char *option, struct buf *ret, struct err *err)
{
	const char *environment = getenv("CAISSON_LEDGER"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (option)
		return buf_puts(ret, option, err);
	if (environment && *environment)
		return buf_puts(ret, environment, err);
	if (geteuid() == 0)
		return buf_puts(ret, SYSTEM_LEDGER, err);
	/* The base directory specification: a relative path is to be ignored. */
	if (state && *state == '/')
		return buf_printf(ret, err, "%s/caisson", state);
	if (home && *home == '/')
		return buf_printf(ret, err, "%s/.local/state/caisson", home);
	return err_set(err, ERR_NOT_FOUND, "no place for the ledger: give --ledger, or set CAISSON_LEDGER, XDG_STATE_HOME or HOME");
}

int places_socket(const char *option, const char *ledger_option, struct buf *ret, struct err *err)
{
	int result = option ? buf_puts(ret, option, err) : places_ledger(ledger_option, ret, err);

	if (result == 0 && !option)
		result = buf_puts(ret, "/" SOCKET_NAME, err);
	if (result == 0 && ret->len >= sizeof((struct sockaddr_un){0}.sun_path))
		result = err_set(err, ERR_LIMIT, "the path of the keeper's socket is too long: %s", ret->data);
	return result;
}

int places_self(struct buf *ret, struct err *err)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path));

	if (length < 0)
		return err_sys(err, errno, "/proc/self/exe");
	if (length == sizeof(path))
		return err_set(err, ERR_LIMIT, "/proc/self/exe: the path is too long");
	return buf_append(ret, path, (size_t)length, err);
}

/* Appends a path relative to the directory of this program, if a program is there. */
static int beside_program(const char *relative, struct buf *ret, struct err *err)
{
	BUF_AUTO struct buf candidate = BUF_INIT(2 * PATH_MAX);
	int result = places_self(&candidate, err);

	if (result)
		return result;
	candidate.len = (size_t)(strrchr(candidate.data, '/') + 1 - candidate.data);
	result = buf_puts(&candidate, relative, err);
	if (result)
		return result;
	if (access(candidate.data, X_OK) < 0)
		return ERR_NOT_FOUND;
	return buf_append(ret, candidate.data, candidate.len, err);
}

/* The installed one; or, for a program that runs from its build tree, the one built with it. */
static int find_program(const char *installed, const char *const built[static 2], struct buf *ret, struct err *err)
{
	int result = ERR_NOT_FOUND;

	if (access(installed, X_OK) == 0)
		return buf_puts(ret, installed, err);
	for (size_t i = 0; i < 2 && result == ERR_NOT_FOUND; i++)
		result = beside_program(built[i], ret, err);
	return result == ERR_NOT_FOUND ? err_set(err, ERR_NOT_FOUND, "not installed: %s", installed) : result;
}

int places_init(struct buf *ret, struct err *err)
{
	static const char *const built[] = {"caisson-init", "../init/caisson-init"};

	return find_program(CAISSON_LIBEXECDIR "/caisson-init", built, ret, err);
}

int places_front(struct buf *ret, struct err *err)
{
	static const char *const built[] = {"caisson-front", "../http/caisson-front"};

	return find_program(CAISSON_LIBEXECDIR "/caisson-front", built, ret, err);
}

int places_client(struct buf *ret, struct err *err)
{
	static const char *const built[] = {"caisson-client", "../client/caisson-client"};

	return find_program(CAISSON_LIBEXECDIR "/caisson-client", built, ret, err);
}

const char *places_cgroup_parent(const char *option)
{
	const char *environment = getenv("CAISSON_CGROUP_PARENT");

	return option ? option : environment && *environment ? environment : NULL;
}

int places_runtime(struct buf *ret, struct err *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (geteuid() == 0)
		return buf_puts(ret, "/run/caisson", err);
	if (runtime && *runtime == '/')
		return buf_printf(ret, err, "%s/caisson", runtime);
	return buf_printf(ret, err, "/tmp/caisson-%u", (unsigned)geteuid());
}

int places_open_runtime(struct err *err)
{
	BUF_AUTO struct buf path = BUF_INIT(PATH_MAX);
	int result = places_runtime(&path, err);

	return result ? result : fd_open_private_dir(path.data, err);
}
