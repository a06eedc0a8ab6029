/* userns.h - which setting of this host keeps us from making user namespaces. */
#pragma once

#include <stdbool.h>

struct userns_restriction {
	const char *setting; /* as sysctl(8) names it */
	const char *value;   /* what it should be */
	const char *reason;
};

/* proc_sys: a directory descriptor of /proc/sys. The first setting that is in the way of a user (or, with `privileged`, of root), or NULL
 * when none that is known is. apparmor_restrict_unprivileged_userns may be lifted for single programs by a profile: what it says counts
 * only for one that failed. */
const struct userns_restriction *userns_restriction_of(int proc_sys, bool privileged);

/* The same of this host, for this process. */
const struct userns_restriction *userns_restriction(void);
