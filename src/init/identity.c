/* identity.c - who init and main are: ids, capabilities, securebits, and the budgets of their user namespace. */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"

/* Without these a guest could use up what the host's root needs: inotify instances, nested namespaces (ucounts are charged to every
 * ancestor's user too). The files show the limits of the namespace of whoever opens them. */
static const struct {
	const char *path, *value;
} ucounts[] = {
	{"/proc/sys/user/max_user_namespaces", "0"},
	{"/proc/sys/user/max_inotify_instances", "8"},
	{"/proc/sys/user/max_inotify_watches", "4096"},
};

static bool write_and_read_back(const char *path, const char *value)
{
	char text[32];
	size_t length = strlen(value);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool written = write(fd, value, length) == (ssize_t)length;
	ssize_t got = pread(fd, text, sizeof(text), 0);
	close(fd);
	return written && got == (ssize_t)length + 1 && memcmp(text, value, length) == 0 && text[length] == '\n';
}

bool init_limit_namespaces(void)
{
	bool done = true;
	for (size_t i = 0; i < sizeof(ucounts) / sizeof(ucounts[0]); i++)
		done = write_and_read_back(ucounts[i].path, ucounts[i].value) && done;
	return done;
}

static void set_capabilities(uint64_t keep)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)keep, .permitted = (uint32_t)keep},
		{.effective = (uint32_t)(keep >> 32), .permitted = (uint32_t)(keep >> 32)},
	};
	if (syscall(SYS_capset, &header, data) != 0)
		init_fail("capset", errno);
}

void init_empty_bounding_set(void)
{
	if (OMITTED("caps.bounding"))
		return;
	for (int cap = 0; cap <= 63; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) {
			if (errno == EINVAL)
				return; /* past the last one of this kernel */
			init_fail("bounding set", errno);
		}
}

uint32_t init_become(const struct init_setup *setup, enum init_who who, uint64_t keep)
{
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
	                           SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	uid_t uid = who == INIT_GUEST ? setup->guest_uid : setup->init_uid;
	gid_t gid = who == INIT_GUEST ? setup->guest_gid : setup->init_gid;
	uint32_t attested = 0;
	if (!OMITTED("securebits") && prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) == 0)
		attested = UINT32_C(1) << INIT_DID_SECUREBITS;
	if (!setup->keep_groups && setgroups(OMITTED("ids.groups") ? 1 : 0, &gid) != 0)
		init_fail("setgroups", errno);
	if (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
		init_fail("ids", errno);
	if (keep != ~UINT64_C(0))
		set_capabilities(keep);
	return attested;
}
