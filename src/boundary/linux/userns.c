/* userns.c - reads the settings that switch user namespaces off: the kernel's own, Debian's, and AppArmor's. */
#include "boundary/linux/userns.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "base/fd.h"

/* Sources: Documentation/admin-guide/sysctl/user.rst; Debian's kernel patch "add sysctl to disallow unprivileged CLONE_NEWUSER by default";
 * AppArmor's wiki, "unprivileged_userns_restriction". */
static const struct {
	const char *file;
	int64_t forbids; /* the value that does */
	bool also_root;
	struct userns_restriction restriction;
} settings[] = {
	{"user/max_user_namespaces", 0, true, {"user.max_user_namespaces", "15000", "user namespaces are switched off"}},
	{"kernel/unprivileged_userns_clone", 0, false,
         {"kernel.unprivileged_userns_clone", "1", "user namespaces are root's alone"}},
	{"kernel/apparmor_restrict_unprivileged_userns", 1, false,
         {"kernel.apparmor_restrict_unprivileged_userns", "0", "AppArmor takes an ordinary user's namespaces their capabilities"}},
};

const struct userns_restriction *userns_restriction_of(int proc_sys, bool privileged)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		int64_t value;
		if ((!privileged || settings[i].also_root) && fd_read_number(proc_sys, settings[i].file, &value) == 0 &&
		    value == settings[i].forbids)
			return &settings[i].restriction;
	}
	return NULL;
}

const struct userns_restriction *userns_restriction(void)
{
	FD_AUTO int proc_sys = open("/proc/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return proc_sys < 0 ? NULL : userns_restriction_of(proc_sys, geteuid() == 0);
}
