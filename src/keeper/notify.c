/* notify.c - datagrams for the service manager. */
#include "keeper/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"

int notify_open(const char *path, struct notify *ret, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	*ret = (struct notify){.fd = -1};
	if (!path || !*path)
		return 0;
	size_t length = strlen(path);
	if ((*path != '/' && *path != '@') || length < 2 || length >= sizeof(address.sun_path))
		return err_set(err, ERR_INVALID, "NOTIFY_SOCKET is no unix socket: %s", path);
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = '\0';
	FD_AUTO int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		return err_sys(err, errno, "NOTIFY_SOCKET %s", path);
	ret->fd = fd_take(&fd);
	return 0;
}

void notify_close(struct notify *notify)
{
	fd_close(&notify->fd);
}

void notify_send(const struct notify *notify, const char *lines)
{
	if (notify->fd >= 0)
		(void)!send(notify->fd, lines, strlen(lines), MSG_NOSIGNAL);
}

static int64_t read_number(const char *text)
{
	char *end;
	errno = 0;
	long long value = text && *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : -1;
	return value < 0 || errno || *end ? -1 : value;
}

int64_t notify_watchdog_ms(const char *watchdog_usec, const char *watchdog_pid)
{
	enum { US_PER_MS = 1000 };
	int64_t usec = read_number(watchdog_usec);
	if (usec <= 0 || (watchdog_pid && read_number(watchdog_pid) != getpid()))
		return -1;
	int64_t half_ms = usec / 2 / US_PER_MS;
	return half_ms > 0 ? half_ms : 1;
}
