/* ids.h - which users of the kernel a guest and its init are.
 *
 * Root gives each boundary a uid and gid range of its own, so that two guests never share a kernel user. Ranges lie in
 * 0x70000000..0x7fffffff, which systemd's table of uids leaves unused (UIDS-GIDS.md); one that /etc/subuid or /etc/subgid gives away is
 * passed over.
 *
 * An ordinary user has what these two files give him, if newuidmap(1) and newgidmap(1) are there: two ids of it are one boundary's. Without,
 * guest and init are the user himself (docs/adr/0016-rootless.md says what that means).
 *
 * A range or pair is held by an open-file-description lock on one byte of a file: it is gone with its holder, however that ends, and
 * leaves nothing behind. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum {
	IDS_GUEST = 1000,        /* inside: the guest */
	IDS_INIT = 0,            /* inside: guest init, where it is another user than the guest */
	IDS_RANGE_SIZE = 65536,
	IDS_RANGES = 4096,
};

#define IDS_FIRST UINT32_C(0x70000000)
#define IDS_RUN_DIR "/run/caisson" /* of root */

#define IDS_UID_HELPER "/usr/bin/newuidmap"
#define IDS_GID_HELPER "/usr/bin/newgidmap"

enum ids_kind {
	IDS_RANGES_OF_ROOT,
	IDS_SUBORDINATE, /* subuid(5) and subgid(5) */
	IDS_CALLERS_OWN,
};

/* Where ids come from. */
struct ids_source {
	enum ids_kind kind;
	uint32_t uid, gid;             /* ours */
	uint32_t first_uid, first_gid; /* of what is ours to give */
	uint32_t count;                /* subordinate: so many of each */
};

struct ids {
	int lock; /* descriptor that holds them; -1: none */
	uint32_t init_uid, init_gid, guest_uid, guest_gid; /* as the host knows them */
};

/* What this process may use. Looks, and changes nothing. */
int ids_find_source(struct ids_source *ret, struct err *err);

/* dir: where the lock's file is (made if need be, for us alone). start: where to begin to look (any number), so that ids are not used
 * again at once. ERR_BUSY when none are free. */
int ids_acquire(const struct ids_source *source, const char *dir, uint32_t start, struct ids *ret, struct err *err);
void ids_release(struct ids *ids);

/* Are guest and init one user of the kernel? */
static inline bool ids_shared(const struct ids *ids)
{
	return ids->init_uid == ids->guest_uid;
}

/* Writes /proc/PID/uid_map and gid_map: two ids are mapped, init's and the guest's, or the one that both are. */
int ids_write_maps(const struct ids *ids, int pid, struct err *err);
