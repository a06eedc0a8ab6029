/* floor.c - the least that a run with a boundary and a durable ledger can cost here: the bare system calls of both, and nothing else.
 *
 * Usage: floor DIR PROGRAM [once|steps]
 * DIR is on the file system of a ledger. For each line on standard input, or once, it does a round and prints nanoseconds: groups made in
 * the hierarchies that are mounted, limits written; a child in new namespaces and those groups, with a root of its own (tmpfs, /usr read-only,
 * /proc), which waits at a gate; one durable write; the gate opened; the program executed and reaped; groups removed; another durable write. What
 * Caisson does besides (verify, judge, record, sign) is what the comparison with this shows.
 *
 * With `steps` it does one round in the order that a verified boundary has to keep, where nothing is written before the child is at the
 * gate, and prints what each of these took: groups, child at the gate, the program until it is reaped, groups removed. The child shares
 * the network namespace there, since one can be made ahead, beside other work. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { UNIFIED = 3, GROUPS, PATH_SIZE = 128, PAGES = 16, PAGE_BYTES = 4096, GUEST_ID = 200000 };

/* The moments between the steps of a round. */
enum { BEGUN, GROUPED, AT_GATE, WRITTEN, REAPED, REMOVED, MOMENTS };

static const struct group {
	const char *hierarchy, *members, *limit, *value;
} groups[GROUPS] = {
	{"/sys/fs/cgroup/memory", "tasks", "memory.limit_in_bytes", "268435456"},
	{"/sys/fs/cgroup/pids", "tasks", "pids.max", "64"},
	{"/sys/fs/cgroup/cpuacct", "tasks", NULL, NULL},
	{"/sys/fs/cgroup/unified", ".", NULL, NULL},
};

/* Of version 1 open for writing, by the one who may: the child joins itself. It is born into that of version 2. To move another process
 * can take the kernel 8 ms. -1: none. */
static int members[GROUPS];

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
	_exit(EXIT_FAILURE);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void group_path(char path[static PATH_SIZE], const struct group *group, const char *file)
{
	snprintf(path, PATH_SIZE, "%s/caisson-floor-%d%s%s", group->hierarchy, getpid(), file ? "/" : "", file ? file : "");
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd) < 0)
		die(path);
}

/* A hierarchy that is not mounted is none. */
static bool present(const struct group *group)
{
	return access(group->hierarchy, F_OK) == 0;
}

static void make_groups(void)
{
	char path[PATH_SIZE];

	for (int i = 0; i < GROUPS; i++) {
		members[i] = -1;
		if (!present(&groups[i]))
			continue;
		group_path(path, &groups[i], NULL);
		if (mkdir(path, 0755) < 0)
			die(path);
		group_path(path, &groups[i], groups[i].members);
		members[i] = open(path, (i == UNIFIED ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
		if (members[i] < 0)
			die(path);
		if (groups[i].limit) {
			group_path(path, &groups[i], groups[i].limit);
			put(path, groups[i].value);
		}
	}
}

static void join_groups(void)
{
	for (int i = 0; i < UNIFIED; i++)
		if (members[i] >= 0 && write(members[i], "0", 1) != 1)
			die(groups[i].hierarchy);
}

static void remove_groups(void)
{
	char path[PATH_SIZE];

	for (int i = 0; i < GROUPS; i++) {
		group_path(path, &groups[i], NULL);
		while (present(&groups[i]) && rmdir(path) < 0)
			if (errno != EBUSY)
				die(path);
		if (members[i] >= 0)
			close(members[i]);
	}
}

static void make_root(void)
{
	static const char *const dirs[] = {"/tmp/usr", "/tmp/proc"};
	static const char *const links[][2] = {{"usr/bin", "/tmp/bin"}, {"usr/lib", "/tmp/lib"}, {"usr/lib64", "/tmp/lib64"}};

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m") < 0)
		die("mount a root");
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (mkdir(dirs[i], 0755) < 0)
			die(dirs[i]);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (symlink(links[i][0], links[i][1]) < 0)
			die(links[i][1]);
	if (mount("/usr", "/tmp/usr", NULL, MS_BIND | MS_REC, NULL) < 0 ||
	    mount(NULL, "/tmp/usr", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0 ||
	    mount("proc", "/tmp/proc", "proc", 0, NULL) < 0)
		die("mount into the root");
	if (chdir("/tmp") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
		die("pivot");
}

static _Noreturn void guest(int gate, int arrived, char *program)
{
	char byte;

	join_groups();
	if (read(gate, &byte, 1) != 1) /* the maps are written */
		die("gate");
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		die("ids");
	make_root();
	if (arrived >= 0 && write(arrived, "a", 1) != 1)
		die("arrive");
	if (read(gate, &byte, 1) != 1) /* the intent is durable */
		die("gate");
	execv(program, (char *const[]){program, NULL});
	die(program);
}

static void write_maps(pid_t pid)
{
	char path[PATH_SIZE], text[32];

	snprintf(text, sizeof(text), "0 %d 65536", GUEST_ID);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	put(path, text);
	snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
	put(path, text);
}

static void commit(int log)
{
	static const char pages[PAGES * PAGE_BYTES];

	if (write(log, pages, sizeof(pages)) != sizeof(pages) || fdatasync(log) < 0)
		die("a durable write");
}

/* moments: NULL for a round that takes as little as it can. */
static void go_round(int log, char *program, int64_t moments[MOMENTS])
{
	int gate[2], arrived[2] = {-1, -1}, status;
	int64_t ignored[MOMENTS];
	int64_t *at = moments ? moments : ignored;
	struct clone_args arguments = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | (moments ? 0 : CLONE_NEWNET),
		.exit_signal = SIGCHLD,
	};
	char byte;

	at[BEGUN] = now_ns();
	make_groups();
	at[GROUPED] = now_ns();
	if (members[UNIFIED] >= 0) {
		arguments.flags |= CLONE_INTO_CGROUP;
		arguments.cgroup = (uint64_t)members[UNIFIED];
	}
	if (pipe2(gate, O_CLOEXEC) < 0 || (moments && pipe2(arrived, O_CLOEXEC) < 0))
		die("pipe");
	pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));
	if (pid < 0)
		die("clone3");
	if (pid == 0)
		guest(gate[0], arrived[1], program);
	write_maps(pid);
	if (write(gate[1], "m", 1) != 1)
		die("gate");
	if (moments && read(arrived[0], &byte, 1) != 1)
		die("the child has not arrived");
	at[AT_GATE] = now_ns();
	commit(log);
	at[WRITTEN] = now_ns();
	if (write(gate[1], "g", 1) != 1)
		die("gate");
	close(gate[0]);
	close(gate[1]);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		die("the program");
	at[REAPED] = now_ns();
	remove_groups();
	at[REMOVED] = now_ns();
	commit(log);
}

static int go_steps(int log, char *program)
{
	int64_t at[MOMENTS];

	go_round(log, program, at);
	return printf("%lld %lld %lld %lld\n", (long long)(at[GROUPED] - at[BEGUN]), (long long)(at[AT_GATE] - at[GROUPED]),
	              (long long)(at[REAPED] - at[WRITTEN]), (long long)(at[REMOVED] - at[REAPED]));
}

int main(int argc, char **argv)
{
	char line[16];

	bool once = argc == 4 && strcmp(argv[3], "once") == 0;
	bool steps = argc == 4 && strcmp(argv[3], "steps") == 0;

	if (argc != 3 && !once && !steps)
		die("usage: floor DIR PROGRAM [once|steps]");
	int dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int log = openat(dir, "floor.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log < 0)
		die(argv[1]);
	if (steps)
		return go_steps(log, argv[2]) < 0 || unlinkat(dir, "floor.log", 0) < 0;
	for (bool more = true; more && (once || fgets(line, sizeof(line), stdin)); more = !once) {
		int64_t started_ns = now_ns();
		go_round(log, argv[2], NULL);
		printf("%lld\n", (long long)(now_ns() - started_ns));
		fflush(stdout);
	}
	return unlinkat(dir, "floor.log", 0);
}
