/* queue.h - the runs that wait, as one keeper sees them: in order of arrival for each owner, the owners taking turns. Pure; no lock of its own.
 *
 * The ledger has the queue that counts (ledger.h, `queued`); this is a picture of it, which may be late: a run that somebody else claimed
 * shows when it is claimed here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"

enum { QUEUE_PRINCIPAL_SIZE = 64, QUEUE_PROFILE_SIZE = 16, QUEUE_OWNERS_MAX = 1024 };

struct queue_entry {
	int64_t position; /* of arrival in the ledger; grows */
	char run_id[ID_SIZE];
	char principal[QUEUE_PRINCIPAL_SIZE];
	char profile[QUEUE_PROFILE_SIZE];
	bool cancelled;
	int64_t created_at_ms;
};

struct queue;

/* per_owner: how many runs of one owner may be under way at a time. */
int queue_new(int per_owner, struct queue **ret, struct err *err);
void queue_set_per_owner(struct queue *queue, int per_owner);
void queue_free(struct queue *queue);

/* Adds behind all others of its owner. ERR_LIMIT for more than QUEUE_OWNERS_MAX owners, ERR_NO_MEMORY. */
int queue_add(struct queue *queue, const struct queue_entry *entry, struct err *err);

/* Forgets what waits; what is under way stays counted. */
void queue_clear(struct queue *queue);

/* What may be done with an owner's first entry. */
enum queue_choice { QUEUE_SKIP, QUEUE_TAKE };
typedef enum queue_choice (*queue_choose_fn)(void *context, const struct queue_entry *entry);

/* Offers the first entry of each owner that is below per_owner, beginning with the owner behind the one that was served last; the one that is
 * taken counts as under way until queue_finished. An entry that is skipped is followed by the owner's next ones of other profiles. False when
 * none was taken. */
bool queue_next(struct queue *queue, queue_choose_fn choose, void *context, struct queue_entry *ret);

/* A run of this owner that was taken is over. */
void queue_finished(struct queue *queue, const char *principal);

/* Takes out a run that waits. False when there is none. It does not count as under way. */
bool queue_remove(struct queue *queue, const char *run_id, struct queue_entry *ret);

/* Borrowed until the queue changes; NULL when it does not wait here. */
const struct queue_entry *queue_find(const struct queue *queue, const char *run_id);
size_t queue_length(const struct queue *queue);

/* How many of the waiting runs have this profile. */
size_t queue_waiting(const struct queue *queue, const char *profile);
