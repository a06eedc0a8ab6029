/* keeper.c - who a keeper is: its key, its owner's lock, its principal. */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "artifact/store.h"
#include "base/clock.h"
#include "base/fd.h"

enum { EPOCH_BYTES = 32 };

/* The epoch itself is used for nothing but its digest, and so is not kept. */
static int identify(struct ledger_owner *owner, struct err *err)
{
	uint8_t epoch[EPOCH_BYTES];
	id_new("own", owner->owner_id);
	id_random(epoch, sizeof(epoch));
	digest_of(epoch, sizeof(epoch), &owner->epoch);
	ssize_t length = fd_read_text(AT_FDCWD, "/proc/sys/kernel/random/boot_id", owner->boot_id, sizeof(owner->boot_id));
	if (length < 0)
		return err_sys(err, (int)-length, "read the boot id");
	owner->started_at_ms = clock_wall_ms();
	return 0;
}

int keeper_open(int dir, struct ledger *ledger, struct store *store, struct keeper **ret, struct err *err)
{
	struct keeper *keeper = calloc(1, sizeof(*keeper));
	if (!keeper)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a keeper");
	snprintf(keeper->principal, sizeof(keeper->principal), "uid:%u", (unsigned)getuid());
	int result = identify(&keeper->owner, err);
	if (result == 0)
		result = key_open(dir, &keeper->key, err);
	if (result == 0)
		result = ledger->ops->register_owner(ledger, &keeper->owner, err);
	if (result < 0) {
		key_free(keeper->key);
		free(keeper);
		return result;
	}
	keeper->dir = dir;
	keeper->ledger = ledger;
	keeper->store = store;
	*ret = keeper;
	return 0;
}

void keeper_free(struct keeper *keeper)
{
	if (!keeper)
		return;
	store_free(keeper->store);
	keeper->ledger->ops->close(keeper->ledger);
	key_free(keeper->key);
	fd_close(&keeper->dir);
	free(keeper);
}

/* Taking a ledger's memory apart is a tenth of a millisecond. Where leaks are looked for nothing may be left. */
void keeper_leave(struct keeper *keeper)
{
#ifdef __SANITIZE_ADDRESS__
	bool closes = true;
#else
	bool closes = !keeper || !keeper->ledger->ops->leave;
#endif
	if (closes) {
		keeper_free(keeper);
		return;
	}
	keeper->ledger->ops->leave(keeper->ledger);
	key_free(keeper->key);
}
