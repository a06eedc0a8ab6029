/* ids.h - a uid and gid range of its own for each boundary, so that two guests never share a kernel user.
 *
 * Ranges lie in 0x70000000..0x7fffffff, which systemd's table of uids leaves unused (UIDS-GIDS.md); one that /etc/subuid or
 * /etc/subgid gives away is passed over. A range is held by an open-file-description lock on one byte of a file in /run/caisson: it is
 * gone with its holder, however that ends, and leaves nothing behind. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum {
	IDS_GUEST = 1000,        /* inside: the guest */
	IDS_INIT = 0,            /* inside: guest init */
	IDS_RANGE_SIZE = 65536,
	IDS_RANGES = 4096,
};

#define IDS_FIRST UINT32_C(0x70000000)

struct ids {
	int lock;      /* descriptor that holds the range; -1: none */
	uint32_t base; /* host id of inside id 0 */
};

/* start: where to begin to look (any number), so that a range is not used again at once. ERR_BUSY when none is free. */
int ids_acquire(uint32_t start, struct ids *ret, struct err *err);
void ids_release(struct ids *ids);

/* Writes /proc/PID/uid_map and gid_map: two ids of the range are mapped, init's and the guest's. */
int ids_write_maps(const struct ids *ids, int pid, struct err *err);
