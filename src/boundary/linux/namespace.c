/* namespace.c - an ordinary user's worker gives itself a user namespace, and in it mounts and a network, where it may do what root's may.
 *
 * Everybody may make one. Ids are mapped onto themselves there, so that a number means the same inside and outside; those of subuid(5) are
 * mapped by newuidmap(1), which must be started from outside, before. The worker stays there: nothing else of this process changes, it is
 * the same user of the kernel, and owns no more of the host than before. Guests get namespaces of their own below it. */
#include "boundary/linux/linux_boundary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/fd.h"
#include "boundary/linux/userns.h"

enum { NUMBER_MAX = 16, SAID_MAX = 256, GROUPS_MAX = 65536 };

/* ---- the helpers ---- */

struct helper {
	pid_t pid;
	int go;   /* write end: its end of file without a byte means never mind */
	int said; /* read end: what newuidmap and newgidmap complain */
};

static bool call_helper(const char *program, pid_t target, uint32_t own, uint32_t first, uint32_t count)
{
	char pid[NUMBER_MAX], id[NUMBER_MAX], range[NUMBER_MAX], length[NUMBER_MAX];
	static char one[] = "1";
	int status;
	snprintf(pid, sizeof(pid), "%d", target);
	snprintf(id, sizeof(id), "%" PRIu32, own);
	snprintf(range, sizeof(range), "%" PRIu32, first);
	snprintf(length, sizeof(length), "%" PRIu32, count);
	char *const argv[] = {(char *)(uintptr_t)program, pid, id, id, one, range, range, length, NULL};
	static char *const env[] = {NULL};
	pid_t child = fork();
	if (child == 0) {
		execve(program, argv, env);
		_exit(127);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The child that stays outside until it is told to map. */
_Noreturn static void serve_as_helper(const struct ids_source *source, pid_t target, int go, int said)
{
	char byte;
	signal(SIGCHLD, SIG_DFL);
	if (read(go, &byte, 1) != 1)
		_exit(0);
	if (dup2(said, STDERR_FILENO) < 0)
		_exit(1);
	_exit(call_helper(IDS_UID_HELPER, target, source->uid, source->first_uid, source->count) &&
	      call_helper(IDS_GID_HELPER, target, source->gid, source->first_gid, source->count) ? 0 : 1);
}

static int start_helper(const struct ids_source *source, struct helper *ret, struct err *err)
{
	int go[2], said[2];
	pid_t target = getpid();
	if (pipe2(go, O_CLOEXEC) != 0)
		return err_sys(err, errno, "pipe");
	if (pipe2(said, O_CLOEXEC) != 0) {
		int error = errno;
		close(go[0]);
		close(go[1]);
		return err_sys(err, error, "pipe");
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(go[1]);
		serve_as_helper(source, target, go[0], said[1]);
	}
	int error = errno;
	close(go[0]);
	close(said[1]);
	*ret = (struct helper){.pid = pid, .go = go[1], .said = said[0]};
	return pid < 0 ? err_sys(err, error, "fork") : 0;
}

/* What it said, on one line. Waits for its end. */
static void finish_helper(struct helper *helper, char said[static SAID_MAX])
{
	fd_close(&helper->go);
	ssize_t length = helper->said < 0 ? 0 : fd_read_full(helper->said, said, SAID_MAX - 1);
	said[length > 0 ? length : 0] = '\0';
	said[strcspn(said, "\n")] = '\0';
	fd_close(&helper->said);
	while (helper->pid > 0 && waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
		;
	helper->pid = -1;
}

/* By the kernel's word: is the range mapped onto itself? */
static bool is_mapped(const char *map, uint32_t first, uint32_t count)
{
	char text[1024];
	if (fd_read_text(AT_FDCWD, map, text, sizeof(text)) < 0)
		return false;
	for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		uint32_t inside, outside, length;
		if (sscanf(line, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &length) == 3 && inside == first &&
		    outside == first && length == count)
			return true;
	}
	return false;
}

static int map_range(const struct ids_source *source, struct helper *helper, struct err *err)
{
	char said[SAID_MAX];
	ssize_t written = write(helper->go, "x", 1);
	finish_helper(helper, said);
	if (written == 1 && is_mapped("/proc/self/uid_map", source->first_uid, source->count) &&
	    is_mapped("/proc/self/gid_map", source->first_gid, source->count))
		return 0;
	return err_set(err, ERR_UNSUPPORTED, "newuidmap and newgidmap did not map the ranges that /etc/subuid and /etc/subgid give to uid %"
	               PRIu32 ": %s", source->uid, said[0] ? said : "they say nothing");
}

static int map_own(const struct ids_source *source, struct err *err)
{
	char uids[64], gids[64];
	snprintf(uids, sizeof(uids), "%" PRIu32 " %" PRIu32 " 1\n", source->uid, source->uid);
	snprintf(gids, sizeof(gids), "%" PRIu32 " %" PRIu32 " 1\n", source->gid, source->gid);
	const char *const files[][2] = {{"/proc/self/setgroups", "deny"}, {"/proc/self/uid_map", uids}, {"/proc/self/gid_map", gids}};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int rc = fd_write_text(AT_FDCWD, files[i][0], files[i][1]);
		if (rc < 0)
			return err_sys(err, -rc, "%s", files[i][0]);
	}
	return 0;
}

/* Without newgidmap nobody can give a group up in a user namespace (user_namespaces(7), "setgroups"). What a group may read, the guest
 * could. */
static int check_groups(const struct ids_source *source, struct err *err)
{
	static const char groups_refused[] =
		"ids.groups: uid %" PRIu32 " is in group %u besides its own, from which a guest cannot be kept without newuidmap and newgidmap "
		"(package uidmap) and a range: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 with its name";
	int count = getgroups(0, NULL), rc = 0;
	gid_t *groups = count > 0 && count <= GROUPS_MAX ? calloc((size_t)count, sizeof(*groups)) : NULL;
	if (count < 0 || (count > 0 && (!groups || getgroups(count, groups) != count)))
		rc = err_set(err, ERR_UNENFORCEABLE, "ids.groups: our groups cannot be read");
	for (int i = 0; i < count && rc == 0; i++)
		if (groups[i] != source->gid)
			rc = err_set(err, ERR_UNENFORCEABLE, groups_refused, source->uid, (unsigned)groups[i]);
	free(groups);
	return rc;
}

/* ---- the namespace ---- */

int linux_userns_failed(int error, const char *step, struct err *err)
{
	const struct userns_restriction *restriction = userns_restriction();
	if (!restriction)
		return err_sys(err, error, "%s", step);
	return err_set(err, ERR_UNSUPPORTED, "%s: %s: as root: sysctl -w %s=%s", step, restriction->reason, restriction->setting,
	               restriction->value);
}

/* Any mount call tells whether the capabilities are real: AppArmor lets the namespace be made and takes them away. What the host unmounts
 * meanwhile goes away here too. */
static int check_capabilities(struct err *err)
{
	return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 ? 0 : linux_userns_failed(errno, "mounts in a user namespace", err);
}

static int enter(struct linux_provider *provider, struct err *err)
{
	const struct ids_source *source = &provider->ids;
	bool range = source->kind == IDS_SUBORDINATE;
	struct helper helper = {.pid = -1, .go = -1, .said = -1};
	char ignored[SAID_MAX];
	int rc = range ? start_helper(source, &helper, err) : check_groups(source, err);
	if (rc == 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0)
		rc = linux_userns_failed(errno, "new user namespace", err);
	if (rc == 0)
		rc = range ? map_range(source, &helper, err) : map_own(source, err);
	finish_helper(&helper, ignored);
	if (rc == 0)
		rc = check_capabilities(err);
	return rc < 0 ? rc : host_read_namespaces(provider->apart, err);
}

int linux_enter_namespace(struct linux_provider *provider, struct err *err)
{
	if (provider->ids.kind == IDS_RANGES_OF_ROOT || provider->apart[NS_USER] != 0)
		return 0;
	if (provider->entering.code < 0) /* half way in, there is no second try */
		return err_set(err, provider->entering.code, "%s", provider->entering.text);
	int rc = enter(provider, &provider->entering);
	return rc < 0 ? err_set(err, rc, "%s", provider->entering.text) : 0;
}
