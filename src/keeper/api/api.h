/* api.h - the keeper's side of the HTTP API: listens on a unix socket, hands connections to the front, and answers what the front
 * asks.
 *
 * A connection's peer credentials are read here and bound to a channel of its own (wire.h); the front only ever holds connections
 * that it was handed. One thread waits for sockets, channels and time; a few others serve one request each. A request that has to
 * wait is parked and holds none of them. */
#pragma once

#include <sys/types.h>

#include "artifact/store.h"
#include "base/error.h"
#include "keeper/api/core.h"
#include "keeper/api/wire.h"
#include "ledger/ledger.h"

enum {
	API_CONNECTIONS_MAX = WIRE_CONNECTIONS_MAX,
	API_CONNECTIONS_OF_UID_MAX = 2048, /* of one user; root and the keeper's own may have all */
	API_THREADS = 8,
	API_UPLOADS_MAX = 4,               /* objects that are being sent at a time */
	API_BACKLOG = API_CONNECTIONS_MAX, /* as many may come at once as may be here */
};

struct api_options {
	const char *socket_path;      /* made with mode 0600; one that nobody listens on is replaced */
	const char *front_path;       /* the program caisson-front */
	uid_t front_uid;              /* who it becomes when we are root */
	gid_t front_gid;
	struct ledger *ledger;        /* safe from any thread (ledger/shared.h) */
	struct store *store;
	const struct api_core *core;  /* borrowed until api_stop, like ledger and store */
};

struct api;

/* Listens, starts the front and the threads. ERR_BUSY when somebody listens on the socket already. */
int api_start(const struct api_options *options, struct api **ret, struct err *err);

/* Something was committed about this run, or its live state changed: whoever waits for it looks again. From any thread, until
 * api_free; quick. */
void api_changed(struct api *api, const char *run_id);

/* Closes the socket and every connection, ends the front, joins the threads: ledger, store and core are not used any more. */
void api_stop(struct api *api);

/* When nobody calls api_changed any more. Stops it first unless that was done. NULL is allowed. */
void api_free(struct api *api);
