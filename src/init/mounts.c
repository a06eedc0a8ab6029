/* mounts.c - puts the guest's view together from the detached mounts that the worker made, adds /proc, and pivots into it. */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
#include "init/calls.h"

/* Where the work space and, on top of it, the new root hang until the pivot: any directory that every host has. What is below is not
 * needed any more, because all mounts were cloned by the worker. */
#define STAGING "/usr"

/* `subset=pid` hides everything but the processes, /proc/sys included; `hidepid=2` hides init from the guest. It must be mounted from
 * inside the pid namespace, so the worker cannot make it. */
static int make_proc(void)
{
	int context = call_fsopen("proc", FSOPEN_CLOEXEC);
	if (context < 0)
		return -1;
	if (!OMITTED("proc") && (call_fsconfig(context, FSCONFIG_SET_STRING, "hidepid", "2") != 0 ||
	                         call_fsconfig(context, FSCONFIG_SET_STRING, "subset", "pid") != 0))
		return -1;
	if (call_fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL) != 0)
		return -1;
	int mount = call_fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	close(context);
	return mount;
}

static void attach(int mount, int at, const char *target)
{
	if (call_move_mount(mount, at, target, MOVE_MOUNT_F_EMPTY_PATH) != 0)
		init_fail("mounts", errno);
}

/* The work space must be attached for that, or the kernel has no part of it to give (6.1). It goes away with the old root. */
static void attach_part(int work, int root, const char *target)
{
	int part = call_open_tree(work, target, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (part < 0)
		init_fail("work space", errno);
	attach(part, root, target);
	close(part);
}

void init_build_view(const struct init_setup *setup)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		init_fail("propagation", errno);
	const struct init_mount *mounts = (const struct init_mount *)(const void *)((const char *)setup + setup->mounts);
	int root = mounts[0].fd;
	attach(setup->work_fd, AT_FDCWD, STAGING);
	attach(root, AT_FDCWD, STAGING);
	for (uint32_t i = 1; i < setup->mount_count; i++) {
		const char *target = init_string(setup, mounts[i].target);
		if (mounts[i].fd < 0)
			attach_part(setup->work_fd, root, target);
		else
			attach(mounts[i].fd, root, target);
	}
	int proc = make_proc();
	if (proc < 0)
		init_fail("proc", errno);
	attach(proc, root, "proc");
	close(proc);

	/* The old root ends up on top of the new one. Paths from the root do not see it; init_leave_host takes it away. */
	if (!OMITTED("root") && (fchdir(root) != 0 || syscall(SYS_pivot_root, ".", ".") != 0))
		init_fail("pivot_root", errno);
	close(root);
}

void init_leave_host(void)
{
	if (!OMITTED("root") && (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0))
		init_fail("leave the host's root", errno);
}
