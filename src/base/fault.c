/* fault.c - numbered places where a test may make the program die, stop or fail. Empty unless built with -Dfault_points=true. */
#include "base/fault.h"

#include "base/error.h"

#ifdef CAISSON_FAULT_POINTS

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FAULTS_MAX = 32 };

/* One armed fault of CAISSON_FAULT, borrowed from the environment. */
struct fault {
	const char *name, *action;
	size_t name_length, action_length;
	unsigned long passage;
};

/* A test that arms something else than it means would pass for the wrong reason. */
static _Noreturn void refuse(const char *what)
{
	fprintf(stderr, "CAISSON_FAULT: %s\n", what);
	abort();
}

/* Reads "NAME[@N]:ACTION" of `length` bytes. */
static struct fault parse(const char *entry, size_t length)
{
	const char *colon = memchr(entry, ':', length);
	if (!colon)
		refuse("expected NAME[@N]:ACTION");
	struct fault fault = {.name = entry, .name_length = (size_t)(colon - entry), .action = colon + 1, .passage = 1};
	fault.action_length = length - fault.name_length - 1;
	const char *at = memchr(entry, '@', fault.name_length);
	if (at) {
		char *end;
		fault.passage = strtoul(at + 1, &end, 10);
		if (end != colon || fault.passage == 0)
			refuse("expected a passage from 1 behind @");
		fault.name_length = (size_t)(at - entry);
	}
	return fault;
}

static bool action_is(const struct fault *fault, const char *action)
{
	return fault->action_length == strlen(action) && memcmp(fault->action, action, fault->action_length) == 0;
}

static void delay(const struct fault *fault)
{
	static const char prefix[] = "delay_";
	size_t prefix_length = sizeof prefix - 1;
	char *end;

	if (fault->action_length <= prefix_length || memcmp(fault->action, prefix, prefix_length) != 0)
		refuse("the action must be kill, stop, eio, enospc or delay_MS");
	unsigned long ms = strtoul(fault->action + prefix_length, &end, 10);
	if (end != fault->action + fault->action_length)
		refuse("expected milliseconds behind delay_");
	struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
	while (nanosleep(&left, &left) != 0)
		continue;
}

/* Makes the file CAISSON_FAULT_MARK, if one is named, and says who met it; false when another process was before. */
static bool mark(const struct fault *fault)
{
	const char *path = getenv("CAISSON_FAULT_MARK");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;

	if (path && fd < 0)
		return false;
	if (path) {
		dprintf(fd, "%d %.*s\n", getpid(), (int)fault->name_length, fault->name);
		close(fd);
	}
	return true;
}

/* Not before the file CAISSON_FAULT_GATE is there: what a program does to get ready shall not count. */
static bool gate_open(void)
{
	const char *path = getenv("CAISSON_FAULT_GATE");

	return !path || access(path, F_OK) == 0;
}

static int act(const struct fault *fault)
{
	if (!mark(fault))
		return 0;
	if (action_is(fault, "kill"))
		kill(getpid(), SIGKILL);
	else if (action_is(fault, "stop"))
		raise(SIGSTOP);
	else if (action_is(fault, "eio"))
		return ERR_IO;
	else if (action_is(fault, "enospc"))
		return ERR_NO_SPACE;
	else
		delay(fault);
	return 0;
}

int fault_hit(const char *name)
{
	/* How often each entry's name was passed: the process's own history, so it cannot live anywhere else. Test builds only. */
	static atomic_ulong passages[FAULTS_MAX];
	const char *entry = getenv("CAISSON_FAULT");
	int result = 0;

	if (!entry || !gate_open())
		return 0;
	for (size_t i = 0; *entry != '\0'; i++) {
		size_t length = strcspn(entry, ",");
		struct fault fault = parse(entry, length);
		if (i == FAULTS_MAX)
			refuse("too many faults");
		if (fault.name_length == strlen(name) && memcmp(fault.name, name, fault.name_length) == 0 &&
		    atomic_fetch_add(&passages[i], 1) + 1 == fault.passage) {
			int r = act(&fault);
			result = result ? result : r;
		}
		entry += length + (entry[length] == ',');
	}
	return result;
}

int fault_omits(const char *name)
{
	const char *entry = getenv("CAISSON_OMIT");

	while (entry && *entry != '\0') {
		size_t length = strcspn(entry, ",");
		if (length == strlen(name) && memcmp(entry, name, length) == 0)
			return 1;
		entry += length + (entry[length] == ',');
	}
	return 0;
}

#endif
