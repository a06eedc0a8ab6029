/* client.h - what the subcommands of caisson-client share. */
#pragma once

#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "client/http.h"
#include "client/request.h"

enum {
	CLIENT_OK = 0,
	CLIENT_NO = 1,              /* it worked, and the answer is no */
	CLIENT_CAISSON = 125,       /* as `caisson` (contract, "Verdicts") */
	CLIENT_WAIT_MS = 30 * 1000, /* of one call that waits; then it is made again */
};

struct client {
	const struct request *request;
	struct http *http;
	bool met; /* a keeper has answered: from now on one that is away may come back */
};

/* A subcommand: an exit status, or a negative err_code. */
int client_submit(struct client *client, struct err *err);
int client_wait(struct client *client, struct err *err);
int client_cancel(struct client *client, struct err *err);
int client_logs(struct client *client, struct err *err);
int client_events(struct client *client, struct err *err);
int client_workers(struct client *client, struct err *err);
int client_ps(struct client *client, struct err *err);
int client_recover(struct client *client, struct err *err);
int client_batch(struct client *client, struct err *err);

/* Makes a call, again and again while it is lost and patience lasts: so it must be one that may be repeated. What is there from the
 * start is told from what goes away: without a keeper it fails at once. ret: the document of a good reply, or NULL when it is not
 * wanted. The error is the keeper's own. */
int client_ask(struct client *client, struct http_call *call, json_t **ret, struct err *err);

/* Has a call, that may be repeated, not done anything for a reason that passes: lost, no answer in time, 503? */
static inline bool client_may_retry(const struct http_call *call)
{
	return call->result == ERR_LOST || call->result == ERR_TIMEOUT || (call->result == 0 && call->status == HTTP_UNAVAILABLE);
}

/* After such a call: waits before the next attempt, and gives 0. The call's error when patience is over or when no keeper was ever
 * there. losses: zero at first; it counts them. */
struct losses {
	unsigned count;
	int64_t since_ns;
};
int client_lost(struct client *client, const struct http_call *call, struct losses *losses, struct err *err);

/* The id of the run that the request names; "latest" is asked for, and what may be the beginning of one. */
int client_find_run(struct client *client, char ret_run_id[static ID_SIZE], struct err *err);

/* Waits until the run is sealed, or its result is provisional; shows the outcome (outcome.h) and gives the exit status of it. */
int client_await(struct client *client, const char *run_id, struct err *err);
