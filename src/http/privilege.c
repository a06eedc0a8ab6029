/* privilege.c - what the front gives up before it reads a byte of a client. */
#include "http/privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper/api/wire.h"

enum {
	FILES_MAX = 3 * WIRE_CONNECTIONS_MAX + 64, /* socket, channel, and what it sends or keeps */
	DATA_MAX_MB = 1024,
	CAPABILITIES_WORDS = 2,
};

static int drop_bounding_set(struct err *err)
{
	for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
			return err_sys(err, errno, "drop capability %lu", capability);
	return 0;
}

static int become(unsigned uid, unsigned gid, struct err *err)
{
	int result = drop_bounding_set(err);
	if (result)
		return result;
	if (uid == 0 || gid == 0)
		return err_set(err, ERR_INVALID, "the front cannot serve as root");
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_sys(err, errno, "become uid %u, gid %u", uid, gid);
	if (setuid(0) == 0 || setgid(0) == 0)
		return err_set(err, ERR_UNVERIFIED, "the front could become root again");
	return 0;
}

static int drop_capabilities(struct err *err)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[CAPABILITIES_WORDS] = {0}, left[CAPABILITIES_WORDS];
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 || syscall(SYS_capset, &header, none) < 0 ||
	    syscall(SYS_capget, &header, left) < 0)
		return err_sys(err, errno, "drop capabilities");
	for (int i = 0; i < CAPABILITIES_WORDS; i++)
		if (left[i].effective || left[i].permitted || left[i].inheritable)
			return err_set(err, ERR_UNVERIFIED, "capabilities are left");
	return 0;
}

static int limit(int resource, rlim_t most, struct err *err)
{
	struct rlimit limit;
	if (getrlimit(resource, &limit) < 0)
		return err_sys(err, errno, "read limit %d", resource);
	if (limit.rlim_max > most)
		limit.rlim_max = most;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) < 0 ? err_sys(err, errno, "set limit %d", resource) : 0;
}

static int set_limits(struct err *err)
{
	static const struct {
		int resource;
		rlim_t most;
	} limits[] = {
		{RLIMIT_NOFILE, FILES_MAX},
		{RLIMIT_NPROC, 0},
		{RLIMIT_CORE, 0},
		{RLIMIT_FSIZE, WIRE_OBJECT_MAX},
#ifndef CAISSON_SANITIZED
		{RLIMIT_DATA, (rlim_t)DATA_MAX_MB << 20},
#endif
		{RLIMIT_MEMLOCK, 0},
		{RLIMIT_MSGQUEUE, 0},
	};
	int result = 0;
	for (size_t i = 0; result == 0 && i < sizeof(limits) / sizeof(limits[0]); i++)
		result = limit(limits[i].resource, limits[i].most, err);
	return result;
}

int privilege_drop(unsigned uid, unsigned gid, struct err *err)
{
	int result = geteuid() == 0 ? become(uid, gid, err) : 0;
	if (result == 0)
		result = drop_capabilities(err);
	if (result == 0)
		result = set_limits(err);
	if (result)
		return result;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(err, errno, "give up new privileges");
	return filter_load(err);
}
