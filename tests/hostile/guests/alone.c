/* alone.c - H100: leaves its own mark wherever a program can, and looks whether it is the only one there, `alone MARK`. */
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "probe.h"

enum { PORT = 5555, KEY = 0x5ca1ab1e };

static const char *const places[] = {"/box/mark", "/tmp/mark", "/dev/shm/mark", "/out/mark"};

static long count_processes(void)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	long count = 0;

	while (directory && (entry = readdir(directory)))
		count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
	if (directory)
		closedir(directory);
	return count;
}

static void leave_marks(const char *mark)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int fd = open(places[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

		PROBE(places[i], fd < 0 ? -1 : write(fd, mark, strlen(mark)));
	}
}

static void read_marks(const char *mark)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char text[64] = "";
		int fd = open(places[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
			die(places[i]);
		printf("%s.own=%s\n", places[i], strcmp(text, mark) == 0 ? "yes" : text);
	}
}

static void take_names(void)
{
	struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0mark"};
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	PROBE("port", bind(tcp, (struct sockaddr *)&port, sizeof(port)));
	PROBE("listen", listen(tcp, 1));
	PROBE("name", bind(local, (struct sockaddr *)&name, sizeof(sa_family_t) + 5));
	PROBE("shm", shmget(KEY, 4096, IPC_CREAT | IPC_EXCL | 0600));
}

int main(int argc, char **argv)
{
	const struct timespec together = {.tv_nsec = 500000000};
	const char *mark = argc > 1 ? argv[1] : "none";

	leave_marks(mark);
	take_names();
	nanosleep(&together, NULL); /* the others do the same meanwhile */
	read_marks(mark);
	report_number("processes", count_processes());
	report_number("pid", getpid());
	return 0;
}
