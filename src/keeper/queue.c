/* queue.c - one list for each owner, and a pointer to whose turn it is. */
#include "keeper/queue.h"

#include <stdlib.h>
#include <string.h>

enum { SKIPPED_PROFILES_MAX = 4 };

struct node {
	struct queue_entry entry;
	struct node *next;
};

struct owner {
	char principal[QUEUE_PRINCIPAL_SIZE];
	struct node *first, **last;
	int under_way;
};

struct queue {
	struct owner owners[QUEUE_OWNERS_MAX];
	size_t owner_count;
	size_t turn; /* index of the owner who is asked first */
	size_t length;
	int per_owner;
};

int queue_new(int per_owner, struct queue **ret, struct err *err)
{
	struct queue *queue = calloc(1, sizeof(*queue));
	if (!queue)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a queue");
	queue->per_owner = per_owner;
	*ret = queue;
	return 0;
}

void queue_set_per_owner(struct queue *queue, int per_owner)
{
	queue->per_owner = per_owner;
}

void queue_clear(struct queue *queue)
{
	for (size_t i = 0; i < queue->owner_count; i++) {
		struct owner *owner = &queue->owners[i];
		while (owner->first) {
			struct node *node = owner->first;
			owner->first = node->next;
			free(node);
		}
		owner->last = &owner->first;
	}
	queue->length = 0;
}

void queue_free(struct queue *queue)
{
	if (!queue)
		return;
	queue_clear(queue);
	free(queue);
}

static struct owner *find_owner(struct queue *queue, const char *principal)
{
	for (size_t i = 0; i < queue->owner_count; i++)
		if (strcmp(queue->owners[i].principal, principal) == 0)
			return &queue->owners[i];
	return NULL;
}

/* One who has nothing here any more makes room for a new one. */
static struct owner *make_owner(struct queue *queue, const char *principal)
{
	struct owner *owner = NULL;
	for (size_t i = 0; i < queue->owner_count && !owner; i++)
		if (!queue->owners[i].first && queue->owners[i].under_way == 0)
			owner = &queue->owners[i];
	if (!owner && queue->owner_count < QUEUE_OWNERS_MAX)
		owner = &queue->owners[queue->owner_count++];
	if (owner) {
		*owner = (struct owner){.first = NULL};
		owner->last = &owner->first;
		memcpy(owner->principal, principal, strlen(principal) + 1);
	}
	return owner;
}

int queue_add(struct queue *queue, const struct queue_entry *entry, struct err *err)
{
	struct owner *owner = find_owner(queue, entry->principal);
	if (!owner)
		owner = make_owner(queue, entry->principal);
	if (!owner)
		return err_set(err, ERR_LIMIT, "more than %d owners have runs", QUEUE_OWNERS_MAX);
	struct node *node = malloc(sizeof(*node));
	if (!node)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a queued run");
	*node = (struct node){.entry = *entry};
	*owner->last = node;
	owner->last = &node->next;
	queue->length++;
	return 0;
}

static void take_out(struct queue *queue, struct owner *owner, struct node **link, struct queue_entry *ret)
{
	struct node *node = *link;
	*link = node->next;
	if (owner->last == &node->next)
		owner->last = link;
	*ret = node->entry;
	free(node);
	queue->length--;
}

/* Profiles of which an earlier entry of the same owner was skipped: within a profile the order holds. */
struct skipped {
	const char *profiles[SKIPPED_PROFILES_MAX];
	size_t count;
};

static bool was_skipped(const struct skipped *skipped, const char *profile)
{
	for (size_t i = 0; i < skipped->count; i++)
		if (strcmp(skipped->profiles[i], profile) == 0)
			return true;
	return skipped->count == SKIPPED_PROFILES_MAX;
}

static bool offer(struct queue *queue, struct owner *owner, queue_choose_fn choose, void *context, struct queue_entry *ret)
{
	struct skipped skipped = {.count = 0};
	for (struct node **link = &owner->first; *link; link = &(*link)->next) {
		const struct queue_entry *entry = &(*link)->entry;
		if (was_skipped(&skipped, entry->profile))
			continue;
		if (choose(context, entry) == QUEUE_TAKE) {
			take_out(queue, owner, link, ret);
			owner->under_way++;
			return true;
		}
		skipped.profiles[skipped.count++] = entry->profile;
	}
	return false;
}

bool queue_next(struct queue *queue, queue_choose_fn choose, void *context, struct queue_entry *ret)
{
	for (size_t i = 0; i < queue->owner_count; i++) {
		size_t index = (queue->turn + i) % queue->owner_count;
		struct owner *owner = &queue->owners[index];
		if (owner->under_way < queue->per_owner && offer(queue, owner, choose, context, ret)) {
			queue->turn = (index + 1) % queue->owner_count;
			return true;
		}
	}
	return false;
}

void queue_finished(struct queue *queue, const char *principal)
{
	struct owner *owner = find_owner(queue, principal);
	if (owner && owner->under_way > 0)
		owner->under_way--;
}

bool queue_remove(struct queue *queue, const char *run_id, struct queue_entry *ret)
{
	for (size_t i = 0; i < queue->owner_count; i++)
		for (struct node **link = &queue->owners[i].first; *link; link = &(*link)->next)
			if (strcmp((*link)->entry.run_id, run_id) == 0) {
				take_out(queue, &queue->owners[i], link, ret);
				return true;
			}
	return false;
}

const struct queue_entry *queue_find(const struct queue *queue, const char *run_id)
{
	for (size_t i = 0; i < queue->owner_count; i++)
		for (const struct node *node = queue->owners[i].first; node; node = node->next)
			if (strcmp(node->entry.run_id, run_id) == 0)
				return &node->entry;
	return NULL;
}

size_t queue_length(const struct queue *queue)
{
	return queue->length;
}

size_t queue_waiting(const struct queue *queue, const char *profile)
{
	size_t count = 0;
	for (size_t i = 0; i < queue->owner_count; i++)
		for (const struct node *node = queue->owners[i].first; node; node = node->next)
			count += strcmp(node->entry.profile, profile) == 0;
	return count;
}
