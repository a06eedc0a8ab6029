/* landlock.c - the file-system layer below the mounts: read and execute everywhere in the view, write in the places meant for it.
 *
 * A second layer: the view is read-only already where it has to be. Source: Documentation/userspace-api/landlock.rst. Applied after
 * the pivot, because it forbids mounting. The headers of Debian 12 know ABI 2; later rights are spelled here. */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FS_READ (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_ABI_1 (LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1) /* all thirteen rights of ABI 1 */
#define FS_REFER (UINT64_C(1) << 13)                   /* ABI 2 */
#define FS_TRUNCATE (UINT64_C(1) << 14)                /* ABI 3 */
#define FS_IOCTL_DEV (UINT64_C(1) << 15)               /* ABI 5 */
#define SCOPE_ABSTRACT_UNIX_SOCKET UINT64_C(1)         /* ABI 6 */
#define SCOPE_SIGNAL UINT64_C(2)                       /* ABI 6 */

/* struct landlock_ruleset_attr as of ABI 6; a kernel takes a longer one only if what it does not know is zero. */
struct ruleset {
	uint64_t handled_fs, handled_net, scoped;
};

static bool allow_beneath(int ruleset, const char *path, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = open(path, O_PATH | O_CLOEXEC)};
	if (rule.parent_fd < 0)
		return false;
	bool added = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
	close(rule.parent_fd);
	return added;
}

static int make_ruleset(int abi, uint64_t *ret_handled)
{
	struct ruleset attributes = {.handled_fs = FS_ABI_1};
	size_t size = sizeof(uint64_t);
	if (abi >= 2)
		attributes.handled_fs |= FS_REFER;
	if (abi >= 3)
		attributes.handled_fs |= FS_TRUNCATE;
	if (abi >= 5)
		attributes.handled_fs |= FS_IOCTL_DEV;
	if (abi >= 6) {
		attributes.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
		size = sizeof(attributes);
	}
	*ret_handled = attributes.handled_fs;
	return (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
}

bool init_restrict_files(const struct init_setup *setup)
{
	uint64_t all;
	int ruleset = make_ruleset(setup->landlock_abi, &all);
	if (ruleset < 0)
		return false;
	const uint64_t file = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | (all & (FS_TRUNCATE | FS_IOCTL_DEV));
	bool done = allow_beneath(ruleset, "/", FS_READ) && allow_beneath(ruleset, "/proc", FS_READ | file) &&
	            allow_beneath(ruleset, "/dev", FS_READ | file);
	const char *path = init_string(setup, setup->writable);
	for (uint32_t i = 0; done && i < setup->writable_count; i++, path += strlen(path) + 1)
		done = allow_beneath(ruleset, path, all);
	done = done && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
	close(ruleset);
	return done;
}
