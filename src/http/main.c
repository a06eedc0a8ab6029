/* main.c - caisson-front: speaks HTTP on connections that the keeper hands over on descriptor 3. Started by the keeper alone.
 *
 * Usage: caisson-front UID GID (whom to become, when started as root) */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/loop.h"
#include "http/privilege.h"

#ifdef CAISSON_SANITIZED
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}
#endif

static int parse_id(const char *text, unsigned *ret)
{
	char *end;
	errno = 0;
	unsigned long number = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || number >= UINT32_MAX)
		return ERR_INVALID;
	*ret = (unsigned)number;
	return 0;
}

static int serve(unsigned uid, unsigned gid, struct err *err)
{
	struct stat status;
	if (fstat(FRONT_INTAKE_FD, &status) < 0 || !S_ISSOCK(status.st_mode))
		return err_set(err, ERR_STATE, "descriptor %d is no socket: this program is started by caisson serve",
		               FRONT_INTAKE_FD);
	signal(SIGPIPE, SIG_IGN); /* sendfile has no MSG_NOSIGNAL */
	signal(SIGXFSZ, SIG_IGN); /* an upload that a limit of the keeper's cuts short is an error like a full disk */
	int result = privilege_drop(uid, gid, err);
	return result ? result : loop_run(err);
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	unsigned uid, gid;
	if (argc != 3 || parse_id(argv[1], &uid) || parse_id(argv[2], &gid)) {
		fprintf(stderr, "usage: caisson-front UID GID (started by caisson serve)\n");
		return 2;
	}
	if (serve(uid, gid, &err) == 0)
		return 0;
	fprintf(stderr, "caisson-front: %s\n", err.text);
	return 1;
}
