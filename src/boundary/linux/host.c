/* host.c - facts of this host: kernel, cgroup hierarchies, namespaces, Landlock. */
#include "boundary/linux/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/fd.h"

enum { MOUNTINFO_MAX = 4 * 1024 * 1024 };

const char *controller_name(enum controller controller)
{
	static const char *const names[CONTROLLER_COUNT] = {"memory", "pids", "cpu", "cpuacct", "cpuset"};
	return names[controller];
}

const char *namespace_name(int index)
{
	static const char *const names[NS_COUNT] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
	return names[index];
}

static int read_kernel(int *ret, struct err *err)
{
	struct utsname name;
	if (uname(&name) != 0)
		return err_sys(err, errno, "uname");
	char *end;
	long major = strtol(name.release, &end, 10);
	long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
	*ret = (int)(major * 1000 + minor);
	if (*ret < HOST_KERNEL_FLOOR)
		return err_set(err, ERR_UNSUPPORTED, "kernel %s is older than 6.1, the oldest that the linux profile knows", name.release);
	return 0;
}

static void set_mount(char target[static HOST_MOUNT_MAX], const char *mount)
{
	if (strlen(mount) < HOST_MOUNT_MAX && !strchr(mount, '\\')) /* an escaped path would be a strange place for cgroups */
		memcpy(target, mount, strlen(mount) + 1);
}

/* As a whole word: "cpu" is the beginning of others. */
bool controller_in_list(const char *list, enum controller controller)
{
	const char *word = controller_name(controller);
	size_t length = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += length)
		if ((at == list || strchr(", ", at[-1])) && strchr(", \n", at[length]))
			return true;
	return false;
}

/* The others only when a plan has their limit. */
bool controller_always_used(enum controller controller)
{
	return controller != CONTROLLER_CPU && controller != CONTROLLER_CPUSET;
}

struct mount {
	const char *root, *point, *type, *options;
};

static void note_mount(struct host *host, const struct mount *mount)
{
	if (strcmp(mount->type, "cgroup2") == 0 && !host->unified) {
		set_mount(host->unified_mount, mount->point);
		set_mount(host->unified_root, mount->root);
		host->unified = host->unified_mount[0] != '\0';
	}
	if (strcmp(mount->type, "cgroup") != 0)
		return;
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		struct host_controller *controller = &host->controllers[i];
		if (controller->present || !controller_in_list(mount->options, (enum controller)i))
			continue;
		set_mount(controller->mount, mount->point);
		set_mount(controller->root, mount->root);
		controller->present = controller->mount[0] != '\0';
	}
}

/* proc_pid_mountinfo(5): "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue". */
static void read_mount_line(struct host *host, char *line)
{
	char *dash = strstr(line, " - ");
	if (!dash)
		return;
	char *fields[5] = {0}, *save = NULL;
	*dash = '\0';
	char *word = strtok_r(line, " ", &save);
	for (int i = 0; i < 5 && word; i++, word = strtok_r(NULL, " ", &save))
		fields[i] = word;
	char *type = strtok_r(dash + 3, " ", &save);
	char *source = strtok_r(NULL, " ", &save);
	char *options = strtok_r(NULL, " ", &save);
	if (fields[4] && type && source && options)
		note_mount(host, &(struct mount){fields[3], fields[4], type, options});
}

/* A controller that no v1 hierarchy has is v2's, if v2 lists it. cpuacct is part of v2's cpu.stat, always. */
static void read_unified_controllers(struct host *host)
{
	char path[HOST_MOUNT_MAX + 32], text[512];
	if (!host->unified)
		return;
	snprintf(path, sizeof(path), "%s/cgroup.controllers", host->unified_mount);
	if (fd_read_text(AT_FDCWD, path, text, sizeof(text)) < 0)
		return;
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		struct host_controller *controller = &host->controllers[i];
		if (controller->present || (i != CONTROLLER_CPUACCT && !controller_in_list(text, (enum controller)i)))
			continue;
		controller->present = controller->v2 = true;
		memcpy(controller->mount, host->unified_mount, sizeof(controller->mount));
		memcpy(controller->root, host->unified_root, sizeof(controller->root));
	}
}

static int read_hierarchies(struct host *host, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(MOUNTINFO_MAX);
	FD_AUTO int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "/proc/self/mountinfo");
	int rc = fd_read_rest(fd, &text, err);
	if (rc < 0)
		return err_context(err, rc, "/proc/self/mountinfo");
	char *save = NULL;
	for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		read_mount_line(host, line);
	read_unified_controllers(host);
	return 0;
}

int host_read_namespaces(ino_t ret[static NS_COUNT], struct err *err)
{
	for (int i = 0; i < NS_COUNT; i++) {
		char path[64];
		struct stat status;
		snprintf(path, sizeof(path), "/proc/self/ns/%s", namespace_name(i));
		if (stat(path, &status) != 0)
			return err_sys(err, errno, "%s", path);
		ret[i] = status.st_ino;
	}
	return 0;
}

/* The controller's files are in every group but the top one: the first group tells. Kernel versions do not: what came late is in older
 * stable kernels too (Debian's 6.1). */
bool host_has_pids_peak(const struct host *host)
{
	const struct host_controller *pids = &host->controllers[CONTROLLER_PIDS];
	char file[NAME_MAX + 16];
	DIR *dir = pids->present ? opendir(pids->mount) : NULL;
	bool found = false, group = false;
	for (struct dirent *entry; dir && !group && (entry = readdir(dir));) {
		group = entry->d_type == DT_DIR && entry->d_name[0] != '.';
		snprintf(file, sizeof(file), "%s/pids.peak", entry->d_name);
		found = group && faccessat(dirfd(dir), file, F_OK, 0) == 0;
	}
	if (dir)
		closedir(dir);
	return found;
}

int host_read(struct host *ret, struct err *err)
{
	struct host host = {.page_bytes = sysconf(_SC_PAGESIZE)};
	int rc = read_kernel(&host.kernel, err);
	if (rc < 0)
		return rc;
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	host.landlock_abi = abi > 0 ? (int)abi : 0;
	if ((rc = read_hierarchies(&host, err)) < 0 || (rc = host_read_namespaces(host.namespaces, err)) < 0)
		return rc;
	host.memory_peak = host.controllers[CONTROLLER_MEMORY].present; /* since 5.19; v1 has max_usage_in_bytes */
	*ret = host;
	return 0;
}
