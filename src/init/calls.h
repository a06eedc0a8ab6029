/* calls.h - system calls that have no function in musl 1.2, and their constants; each is as its manual page says. */
#pragma once

#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int call_close_range(unsigned first, unsigned last)
{
	return (int)syscall(SYS_close_range, first, last, 0);
}

static inline int call_fsopen(const char *type, unsigned flags)
{
	return (int)syscall(SYS_fsopen, type, flags);
}

static inline int call_fsconfig(int context, unsigned command, const char *key, const char *value)
{
	return (int)syscall(SYS_fsconfig, context, command, key, value, 0);
}

static inline int call_fsmount(int context, unsigned flags, unsigned attributes)
{
	return (int)syscall(SYS_fsmount, context, flags, attributes);
}

static inline int call_open_tree(int at, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, at, path, flags);
}

static inline int call_move_mount(int mount, int at, const char *target, unsigned flags)
{
	return (int)syscall(SYS_move_mount, mount, "", at, target, flags);
}
