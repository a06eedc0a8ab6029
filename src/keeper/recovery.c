/* recovery.c - what dead keepers left: each attempt on its own, then what no attempt names. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/store.h"
#include "artifact/tree.h"
#include "keeper/keeper.h"
#include "keeper/watch.h"
#include "lifecycle/lifecycle.h"

enum {
	CLEANUP_MS = 15 * 1000, /* for one attempt or boundary */
	PROFILES_MAX = 8,
	LIST_GROWTH = 64,
};

/* A growing list of things of one size, collected first because the ledger or engine is busy while it tells them. */
struct list {
	void *items;
	size_t count, capacity;
	bool failed;
};

struct recovering {
	const struct keeper_recovery *given;
	struct keeper *keeper;
	struct keeper_recovered *counts;
	/* Made at first use. */
	struct boundary_provider *providers[PROFILES_MAX];
	size_t provider_count;
};

static int list_add(struct list *list, const void *item, size_t size)
{
	if (list->count == list->capacity) {
		void *larger = reallocarray(list->items, list->capacity + LIST_GROWTH, size);
		if (!larger) {
			list->failed = true;
			return 1;
		}
		list->items = larger;
		list->capacity += LIST_GROWTH;
	}
	memcpy((char *)list->items + list->count++ * size, item, size);
	return 0;
}

static void say(const struct recovering *recovering, const char *run_id, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void say(const struct recovering *recovering, const char *run_id, const char *format, ...)
{
	char line[ERR_TEXT_MAX + 128];
	va_list arguments;
	if (!recovering->given->report)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	recovering->given->report(recovering->given->context, run_id, line);
}

static int provider_of(struct recovering *recovering, const char *profile, struct boundary_provider **ret, struct err *err)
{
	const struct provider_factory *factory = recovering->given->factory;
	for (size_t i = 0; i < recovering->provider_count; i++)
		if (strcmp(recovering->providers[i]->ops->kind, profile) == 0) {
			*ret = recovering->providers[i];
			return 0;
		}
	if (recovering->provider_count == PROFILES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d profiles", PROFILES_MAX);
	int result = factory->make(factory->context, profile, -1, ret, err);
	if (result == 0)
		recovering->providers[recovering->provider_count++] = *ret;
	return result;
}

static void release_providers(struct recovering *recovering)
{
	const struct provider_factory *factory = recovering->given->factory;
	for (size_t i = 0; i < recovering->provider_count; i++)
		factory->release(factory->context, recovering->providers[i]);
}

static bool is_ours(const struct recovering *recovering, const struct ledger_attempt *attempt)
{
	return strcmp(attempt->owner_id, recovering->keeper->owner.owner_id) == 0;
}

static bool in_quarantine(const struct ledger_attempt *attempt)
{
	return strcmp(attempt->state, life_state_name(LIFE_QUARANTINED)) == 0;
}

/* Judges one recovery's outcome. Nothing of it keeps the others from theirs (R12). */
static void count_outcome(struct recovering *recovering, const struct ledger_attempt *attempt, int result,
                          const struct runner_result *outcome, const struct err *why)
{
	struct keeper_recovered *counts = recovering->counts;
	if (result == ERR_BUSY || result == ERR_FENCED) {
		counts->busy++;
		say(recovering, attempt->run_id, "left alone: somebody else has it");
	} else if (result < 0) {
		counts->failed++;
		say(recovering, attempt->run_id, "not recovered: %s", why->text);
	} else if (outcome->requeued) {
		counts->requeued++;
		say(recovering, attempt->run_id, "queued again");
	} else if (outcome->provisional) {
		counts->quarantined++;
		say(recovering, attempt->run_id, "quarantined: %s", outcome->verdict.detail);
	} else {
		counts->sealed++;
		say(recovering, attempt->run_id, "sealed as %s", verdict_name(outcome->verdict.kind));
	}
}

static void recover_attempt(struct recovering *recovering, const struct ledger_attempt *attempt)
{
	bool expired = attempt->owner_alive && !is_ours(recovering, attempt);
	struct boundary_provider *provider = NULL;
	struct runner_result outcome = {0};
	struct err why = ERR_INIT;
	if (recovering->given->dry_run) {
		recovering->counts->sealed++;
		say(recovering, attempt->run_id, "would be recovered: its keeper is %s in state %s", expired ? "stopped" : "gone",
		    attempt->state);
		return;
	}
	if (expired)
		say(recovering, attempt->run_id, "taken over: its keeper is stopped");
	int result = provider_of(recovering, attempt->profile, &provider, &why);
	if (result == 0) {
		const struct runner_recovery recovery = {
			.ledger = recovering->keeper->ledger,
			.key = recovering->keeper->key,
			.provider = provider,
			.owner_id = recovering->keeper->owner.owner_id,
			.attempt = *attempt,
			.expired = expired,
			.cleanup_ms = CLEANUP_MS,
		};
		result = runner_recover(&recovery, &outcome, &why);
	}
	count_outcome(recovering, attempt, result, &outcome, &why);
	free(outcome.receipt);
}

static int collect_attempt(void *context, const struct ledger_attempt *attempt)
{
	return list_add(context, attempt, sizeof(*attempt));
}

/* Of our own: did it get lost? It is let go only after its last word is in the ledger, and so that is read afterwards. */
static bool is_lost(struct recovering *recovering, const struct ledger_attempt *attempt)
{
	const struct keeper_recovery *given = recovering->given;
	struct ledger *ledger = recovering->keeper->ledger;
	struct ledger_run_state now;
	if (!given->holds || given->holds(given->context, attempt->run_id))
		return false;
	return ledger->ops->run_state(ledger, attempt->run_id, &now, NULL) == 0 && !now.sealed &&
	       strcmp(now.latest.attempt_id, attempt->attempt_id) == 0 && strcmp(now.latest.state, attempt->state) == 0 &&
	       now.latest.generation == attempt->generation;
}

/* A quarantine is its owner's to lift as long as that lives: its lease is not renewed, and says nothing. */
static bool is_left_alone(struct recovering *recovering, const struct ledger_attempt *attempt)
{
	struct keeper_watch *watch = recovering->given->watch;
	if (!attempt->owner_alive)
		return false;
	if (is_ours(recovering, attempt))
		return in_quarantine(attempt) || !is_lost(recovering, attempt);
	return !watch || in_quarantine(attempt) || !watch_look(watch, attempt);
}

static int recover_attempts(struct recovering *recovering, struct err *err)
{
	struct list list = {0};
	struct ledger *ledger = recovering->keeper->ledger;
	int result = ledger->ops->unsealed(ledger, collect_attempt, &list, err);
	if (list.failed)
		result = err_set(err, ERR_NO_MEMORY, "out of memory for the unsealed attempts");
	const struct ledger_attempt *attempts = list.items;
	for (size_t i = 0; result == 0 && i < list.count; i++) {
		if (is_left_alone(recovering, &attempts[i]))
			recovering->counts->busy++;
		else if (in_quarantine(&attempts[i]) && !recovering->given->include_quarantined)
			recovering->counts->quarantined++;
		else
			recover_attempt(recovering, &attempts[i]);
	}
	if (recovering->given->watch)
		watch_end_round(recovering->given->watch);
	free(list.items);
	return result;
}

static int collect_identity(void *context, const struct boundary_identity *identity)
{
	return list_add(context, identity, sizeof(*identity));
}

struct naming {
	const char *boundary_id;
	bool named;
};

static int compare_boundary(void *context, const struct ledger_attempt *attempt)
{
	struct naming *naming = context;
	naming->named = naming->named || strcmp(attempt->boundary_id, naming->boundary_id) == 0;
	return 0;
}

/* The ledger is asked after the boundary was seen, and right before each removal. An attempt is accepted before its boundary is made: so one
 * that is in use, or is yet to be recovered, is named now. */
static int sweep_one(struct recovering *recovering, const struct boundary_provider *provider, const struct boundary_identity *identity,
                     struct err *err)
{
	struct ledger *ledger = recovering->keeper->ledger;
	struct naming naming = {.boundary_id = identity->boundary_id};
	struct err why = ERR_INIT;
	int survivors = 0;
	int result = ledger->ops->unsealed(ledger, compare_boundary, &naming, err);
	if (result < 0 || naming.named)
		return result;
	if (recovering->given->dry_run) {
		recovering->counts->swept++;
		say(recovering, "", "would be swept: boundary %s, which no unsealed attempt names", identity->boundary_id);
		return 0;
	}
	result = provider->ops->recover(provider->context, identity, CLEANUP_MS, &survivors, &why);
	if (result < 0) {
		recovering->counts->failed++;
		say(recovering, "", "boundary %s not swept: %s", identity->boundary_id, why.text);
		return 0;
	}
	recovering->counts->swept++;
	say(recovering, "", "boundary %s swept, %d processes killed", identity->boundary_id, survivors);
	return 0;
}

static int sweep_profile(struct recovering *recovering, const char *profile, struct err *err)
{
	struct list list = {0};
	struct boundary_provider *provider = NULL;
	struct ledger *ledger = recovering->keeper->ledger;
	struct err why = ERR_INIT;
	int result = provider_of(recovering, profile, &provider, &why);
	if (result == ERR_UNSUPPORTED) /* this host cannot have any */
		return 0;
	if (result < 0)
		return err_set(err, result, "%s", why.text);
	result = provider->ops->enumerate(provider->context, ledger->ops->id(ledger), collect_identity, &list, err);
	if (list.failed)
		result = err_set(err, ERR_NO_MEMORY, "out of memory for the boundaries of profile %s", profile);
	const struct boundary_identity *identities = list.items;
	for (size_t i = 0; result == 0 && i < list.count; i++)
		result = sweep_one(recovering, provider, &identities[i], err);
	free(list.items);
	return result;
}

/* Trees of the store that died half laid out. Whoever holds the store may be laying one out right now: then a later recovery does it. */
static int sweep_store(struct recovering *recovering, struct err *err)
{
	struct store *store = recovering->keeper->store;
	struct err why = ERR_INIT;
	int result = store_sweep_begin(store, 0, &why);
	if (result == 0)
		result = store_remove_unfinished(store, &why);
	store_sweep_end(store);
	return result == 0 || result == ERR_BUSY || result == ERR_STATE ? 0 : err_set(err, result, "%s", why.text);
}

int keeper_recover(const struct keeper_recovery *recovery, struct keeper_recovered *ret, struct err *err)
{
	struct keeper_recovered counts = {0};
	struct recovering recovering = {.given = recovery, .keeper = recovery->keeper, .counts = &counts};
	int result = recovery->only_sweep ? 0 : recover_attempts(&recovering, err);
	for (const char *const *profile = recovery->profiles; result == 0 && recovery->sweep && *profile; profile++)
		result = sweep_profile(&recovering, *profile, err);
	if (result == 0 && recovery->sweep && !recovery->dry_run)
		result = sweep_store(&recovering, err);
	release_providers(&recovering);
	if (result == 0)
		*ret = counts;
	return result;
}
