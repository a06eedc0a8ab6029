/* own_keeper.h - a keeper of our own, where none answers: `caisson serve` as a child, on a private socket in the ledger's
 * directory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/error.h"
#include "client/request.h"

struct own_keeper {
	const char *program, *ledger;
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
	pid_t pid; /* 0: none is running */
	int pidfd;
	int log;               /* what it wrote, while it lives: the reason when it does not start */
	unsigned deaths;       /* one after the other, without an answer in between */
	int64_t respawn_at_ns; /* pid 0: when the next one is started */
};

/* Does nobody listen on the socket? */
bool own_keeper_is_needed(const char *socket_path);

/* Starts it. It makes the ledger's directory where there is none; its socket answers some time later. ERR_LIMIT when the socket's
 * path would be too long. own_keeper_stop in every case. */
int own_keeper_start(struct own_keeper *keeper, const struct request *request, struct err *err);

/* Its pidfd has become ready: it is dead, and is started again after a while. ERR_LOST, with its last words, when it died
 * OWN_KEEPER_DEATHS_MAX times without having answered in between. */
enum { OWN_KEEPER_DEATHS_MAX = 5 };
int own_keeper_died(struct own_keeper *keeper, struct err *err);

/* Starts it again when that is due. */
int own_keeper_tick(struct own_keeper *keeper, int64_t now_ns, struct err *err);

/* It has answered. */
static inline void own_keeper_answered(struct own_keeper *keeper)
{
	keeper->deaths = 0;
}

/* Asks it to end, and waits for it; kills it when it does not within its time. */
void own_keeper_stop(struct own_keeper *keeper);
