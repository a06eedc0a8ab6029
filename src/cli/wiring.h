/* wiring.h - the one place that knows which ledgers and boundaries there are: everything else sees vtables. */
#pragma once

#include "artifact/store.h"
#include "base/error.h"
#include "keeper/keeper.h"
#include "ledger/ledger.h"

enum wiring_access {
	WIRING_READ,  /* nothing is written, and nothing is made: also for a copy, or a ledger of somebody else */
	WIRING_WRITE, /* made when it is not there */
};

/* An opened ledger directory. */
struct wiring {
	int dir;
	struct ledger *ledger;
	struct store *store; /* NULL with WIRING_READ when the ledger has none yet */
};

#define WIRING_INIT ((struct wiring){.dir = -1})

/* option: --ledger, or NULL (places_ledger). *ret is WIRING_INIT; wiring_close in every case. */
int wiring_open(const char *option, enum wiring_access access, struct wiring *ret, struct err *err);
/* As wiring_open for reading, and finds the run that `name` means (ledger.h, find_run). */
int wiring_open_run(const char *option, const char *name, struct wiring *ret, char ret_run_id[static ID_SIZE], struct err *err);
void wiring_close(struct wiring *wiring);
#define WIRING_AUTO __attribute__((cleanup(wiring_close)))

/* As wiring_open for writing, and makes this process a keeper of it. keeper_free. */
int wiring_open_keeper(const char *option, struct keeper **ret, struct err *err);

/* The same with a ledger that any thread may use; changed hears of each run that was written about (ledger/shared.h). */
int wiring_open_shared_keeper(const char *option, void (*changed)(void *context, const char *run_id), void *context, struct keeper **ret,
                              struct err *err);

static inline void keeper_free_p(struct keeper **keeper)
{
	keeper_free(*keeper);
}
#define KEEPER_AUTO __attribute__((cleanup(keeper_free_p)))

/* How the provider of each profile is made. cgroup_parent: --cgroup-parent, or NULL (places_cgroup_parent). Valid until the program ends. */
const struct provider_factory *wiring_factory(const char *cgroup_parent);

/* Every profile, NULL-terminated. */
extern const char *const wiring_profiles[];
