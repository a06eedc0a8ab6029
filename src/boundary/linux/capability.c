/* capability.c - looks at our own capabilities, by system call: what a library says of them is what was so when it looked. */
#include "boundary/linux/capability.h"

#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t effective(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	return syscall(SYS_capget, &header, data) == 0 ? data[0].effective | (uint64_t)data[1].effective << 32 : 0;
}

static bool has(uint64_t set, int number)
{
	return set >> number & 1;
}

bool capability_effective(int number)
{
	return has(effective(), number);
}

bool capabilities_missing(char ret[static CAPABILITIES_TEXT_SIZE])
{
	static const struct {
		int number, or_number;
		const char *name;
	} needed[] = {
		{CAP_SYS_ADMIN, CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, /* namespaces and mounts */
		{CAP_NET_ADMIN, CAP_NET_ADMIN, "CAP_NET_ADMIN"}, /* the loopback of a network namespace */
		{CAP_SETUID, CAP_SETUID, "CAP_SETUID"},          /* the guest's ids */
		{CAP_SETGID, CAP_SETGID, "CAP_SETGID"},
		{CAP_CHOWN, CAP_CHOWN, "CAP_CHOWN"},             /* its own places */
		{CAP_FOWNER, CAP_FOWNER, "CAP_FOWNER"},
		{CAP_MKNOD, CAP_MKNOD, "CAP_MKNOD"},             /* /dev/null and its like */
		{CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE, "CAP_DAC_READ_SEARCH"}, /* which descriptors a process of another user has */
	};
	uint64_t set = geteuid() == 0 ? effective() : ~UINT64_C(0);
	*ret = '\0';
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		size_t length = strlen(ret);
		if (!has(set, needed[i].number) && !has(set, needed[i].or_number))
			snprintf(ret + length, CAPABILITIES_TEXT_SIZE - length, "%s%s", length ? ", " : "", needed[i].name);
	}
	return *ret;
}
