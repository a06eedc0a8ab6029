/* places.c - finds the ledger's directory and the installed programs. */
#include "cli/places.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_LEDGER "/var/lib/caisson"
#define INIT_NAME "caisson-init"

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

/* Appends the path of guest init relative to the directory of this program, if it is there. */
static int beside_program(const char *relative, struct buf *ret, struct err *err)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length < 0)
		return err_sys(err, errno, "/proc/self/exe");
	path[length] = '\0';

	char *slash = strrchr(path, '/');

	if (slash)
		slash[1] = '\0';

	BUF_AUTO struct buf candidate = BUF_INIT(2 * PATH_MAX);
	int result = buf_printf(&candidate, err, "%s%s", path, relative);

	if (result)
		return result;
	if (access(candidate.data, X_OK) < 0)
		return ERR_NOT_FOUND;
	return buf_append(ret, candidate.data, candidate.len, err);
}

int places_init(struct buf *ret, struct err *err)
{
	static const char *const built[] = {INIT_NAME, "../init/" INIT_NAME};
	int result = ERR_NOT_FOUND;

	if (access(CAISSON_LIBEXECDIR "/" INIT_NAME, X_OK) == 0)
		return buf_puts(ret, CAISSON_LIBEXECDIR "/" INIT_NAME, err);
	for (size_t i = 0; i < sizeof(built) / sizeof(built[0]) && result == ERR_NOT_FOUND; i++)
		result = beside_program(built[i], ret, err);
	if (result == ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "guest init is not installed: %s", CAISSON_LIBEXECDIR "/" INIT_NAME);
	return result;
}
