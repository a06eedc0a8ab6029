/* mounts.c - puts the guest's view together from the detached mounts that the worker made, adds /proc, and pivots into it. */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"

/* Where the new root hangs until the pivot: any directory that every host has. What is below it is not needed any more, because all
 * mounts were cloned by the worker. */
#define STAGING "/usr"

/* `subset=pid` hides everything but the processes, /proc/sys included; `hidepid=2` hides init from the guest. It must be mounted from
 * inside the pid namespace, so the worker cannot make it. */
static int make_proc(void)
{
	int context = fsopen("proc", FSOPEN_CLOEXEC);
	if (context < 0)
		return -1;
	if (!OMITTED("proc") && (fsconfig(context, FSCONFIG_SET_STRING, "hidepid", "2", 0) != 0 ||
	                         fsconfig(context, FSCONFIG_SET_STRING, "subset", "pid", 0) != 0))
		return -1;
	if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
		return -1;
	int mount = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	close(context);
	return mount;
}

static void attach(int mount, int root, const char *target)
{
	int result = root < 0 ? move_mount(mount, "", AT_FDCWD, STAGING, MOVE_MOUNT_F_EMPTY_PATH)
	                      : move_mount(mount, "", root, target, MOVE_MOUNT_F_EMPTY_PATH);
	if (result != 0)
		init_fail("mounts", errno);
}

void init_build_view(const struct init_setup *setup)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		init_fail("propagation", errno);
	const struct init_mount *mounts = (const struct init_mount *)(const void *)((const char *)setup + setup->mounts);
	int root = mounts[0].fd;
	attach(root, -1, "");
	for (uint32_t i = 1; i < setup->mount_count; i++)
		attach(mounts[i].fd, root, init_string(setup, mounts[i].target));
	int proc = make_proc();
	if (proc < 0)
		init_fail("proc", errno);
	attach(proc, root, "proc");
	close(proc);

	if (OMITTED("root")) {
		close(root);
		return;
	}
	/* The old root ends up on top of the new one and is detached: nothing of the host is reachable then. */
	if (fchdir(root) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
		init_fail("pivot_root", errno);
}
