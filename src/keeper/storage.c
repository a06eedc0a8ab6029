/* storage.c - sweeps and checks the store; what may go and what must be there is what the ledger says at that moment. */
#include "keeper/storage.h"

#include <stdlib.h>
#include <string.h>

#include "artifact/tree.h"
#include "base/clock.h"

enum { FIRST_CAPACITY = 1024 };

struct object {
	struct digest digest;
	int64_t size_bytes, stored_at_ms;
	bool tree;
};

struct inventory {
	struct object *list;
	size_t count, capacity;
	int64_t bytes;
	struct err *err;
};

static int take_object(void *context, const struct store_entry *entry)
{
	struct inventory *inventory = context;
	if (entry->stray)
		return 0;
	if (inventory->count == inventory->capacity) {
		size_t capacity = inventory->capacity ? 2 * inventory->capacity : FIRST_CAPACITY;
		struct object *list = realloc(inventory->list, capacity * sizeof(*list));
		if (!list)
			return err_set(inventory->err, ERR_NO_MEMORY, "out of memory for the store's objects");
		inventory->list = list;
		inventory->capacity = capacity;
	}
	inventory->list[inventory->count++] =
		(struct object){.digest = entry->digest, .size_bytes = entry->size_bytes, .stored_at_ms = entry->stored_at_ms,
	                        .tree = entry->tree};
	inventory->bytes += entry->size_bytes;
	return 0;
}

static int by_digest(const void *a, const void *b)
{
	const struct object *left = a, *right = b;
	int order = memcmp(&left->digest, &right->digest, sizeof(left->digest));
	return order != 0 ? order : (int)left->tree - (int)right->tree;
}

static int by_age(const void *a, const void *b)
{
	const struct object *left = a, *right = b;
	if (left->stored_at_ms != right->stored_at_ms)
		return left->stored_at_ms < right->stored_at_ms ? -1 : 1;
	return by_digest(a, b);
}

/* Oldest first, and the listing of a directory right before its copy: left behind it would pass for a file of that digest. */
static void put_in_order(struct inventory *inventory)
{
	if (inventory->count == 0)
		return;
	qsort(inventory->list, inventory->count, sizeof(*inventory->list), by_digest);
	for (size_t i = 1; i < inventory->count; i++) {
		struct object *listing = &inventory->list[i - 1];
		const struct object *object = &inventory->list[i];
		if (object->tree && digest_equal(&object->digest, &listing->digest))
			listing->stored_at_ms = object->stored_at_ms;
	}
	qsort(inventory->list, inventory->count, sizeof(*inventory->list), by_age);
}

struct sweep {
	struct ledger *ledger;
	struct store *store;
	const struct sweep_options *options;
	struct sweep_result *result;
	struct inventory inventory;
	size_t next; /* the first object that is not decided yet */
	int64_t now_ms;
};

static bool is_wanted_gone(const struct sweep *sweep, const struct object *object)
{
	const struct sweep_options *options = sweep->options;
	int64_t left = sweep->inventory.bytes - sweep->result->removed_bytes;
	return (options->max_bytes < 0 || left > options->max_bytes) && sweep->now_ms - object->stored_at_ms >= options->older_ms;
}

static int remove_object(struct sweep *sweep, const struct object *object, struct err *err)
{
	int result = 0;
	if (!sweep->options->dry_run)
		result = object->tree ? store_remove_tree(sweep->store, &object->digest, err) :
		                        store_remove(sweep->store, &object->digest, err);
	if (result == ERR_NOT_FOUND) /* another sweep was faster */
		return 0;
	if (result == 0) {
		sweep->result->removed++;
		sweep->result->removed_bytes += object->size_bytes;
	}
	return result;
}

/* What is named is asked anew for each batch: others were let through in between. */
static int sweep_batch(struct sweep *sweep, struct err *err)
{
	REFERENCES_AUTO struct references references = {0};
	int64_t before = sweep->result->removed;
	int result = references_load(sweep->ledger, &references, err);
	while (result == 0 && sweep->next < sweep->inventory.count && sweep->result->removed - before < SWEEP_BATCH) {
		const struct object *object = &sweep->inventory.list[sweep->next++];
		size_t count;
		if (is_wanted_gone(sweep, object) && !references_find(&references, &object->digest, &count))
			result = remove_object(sweep, object, err);
	}
	return result;
}

static int remove_unfinished(struct sweep *sweep, struct err *err)
{
	int result = store_sweep_begin(sweep->store, SWEEP_WAIT_MS, err);
	if (result == 0)
		result = store_remove_unfinished(sweep->store, err);
	store_sweep_end(sweep->store);
	return result;
}

static int sweep_all(struct sweep *sweep, struct err *err)
{
	int result = sweep->options->dry_run ? 0 : remove_unfinished(sweep, err);
	while (result == 0 && sweep->next < sweep->inventory.count) {
		if (sweep->options->dry_run) {
			result = sweep_batch(sweep, err);
			continue;
		}
		result = store_sweep_begin(sweep->store, SWEEP_WAIT_MS, err);
		if (result == 0)
			result = sweep_batch(sweep, err);
		store_sweep_end(sweep->store);
	}
	return result;
}

int storage_sweep(struct ledger *ledger, struct store *store, const struct sweep_options *options, struct sweep_result *ret,
                  struct err *err)
{
	struct sweep sweep = {
		.ledger = ledger,
		.store = store,
		.options = options,
		.result = ret,
		.inventory.err = err,
		.now_ms = clock_wall_ms(),
	};
	*ret = (struct sweep_result){0};
	int result = store_walk(store, take_object, &sweep.inventory, err);
	if (result == 0)
		put_in_order(&sweep.inventory);
	ret->objects = (int64_t)sweep.inventory.count;
	ret->bytes = sweep.inventory.bytes;
	if (result == 0)
		result = sweep_all(&sweep, err);
	free(sweep.inventory.list);
	return result;
}

struct check {
	struct store *store;
	struct references references;
	bool *found; /* by the index of a reference */
	storage_finding_fn fn;
	void *context;
	struct storage_report *report;
	struct err *err;
};

static void tell(struct check *check, enum storage_finding_kind kind, const char *object, const struct reference *first,
                 size_t count)
{
	const struct storage_finding finding = {.kind = kind, .object = object, .references = first, .reference_count = count};
	check->report->findings++;
	check->fn(check->context, &finding);
}

static int check_entry(void *context, const struct store_entry *entry)
{
	struct check *check = context;
	char text[DIGEST_TEXT_SIZE];
	struct err why = ERR_INIT;
	size_t count = 0;
	if (entry->stray) {
		tell(check, STORAGE_STRAY, entry->name, NULL, 0);
		return 0;
	}
	const struct reference *first = references_find(&check->references, &entry->digest, &count);
	int result = entry->tree ? store_check_tree(check->store, &entry->digest, &why) :
	                           store_check(check->store, &entry->digest, &why);
	if (result == ERR_NOT_FOUND) /* a sweep was faster */
		return 0;
	if (result == ERR_DAMAGED)
		tell(check, STORAGE_DAMAGED, digest_text(&entry->digest, text), first, count);
	else if (result < 0)
		return err_set(check->err, result, "%s", why.text);
	check->report->objects++;
	check->report->bytes += entry->size_bytes;
	check->report->unnamed += count == 0;
	check->report->unnamed_bytes += count == 0 ? entry->size_bytes : 0;
	for (size_t i = 0; i < count; i++)
		check->found[first - check->references.list + (ptrdiff_t)i] = true;
	return 0;
}

static void tell_missing(struct check *check)
{
	char text[DIGEST_TEXT_SIZE];
	for (size_t i = 0; i < check->references.count;) {
		const struct digest *digest = &check->references.list[i].sha256;
		size_t count = 0;
		const struct reference *first = references_find(&check->references, digest, &count);
		if (!check->found[i])
			tell(check, STORAGE_MISSING, digest_text(digest, text), first, count);
		i += count;
	}
}

int storage_check(struct ledger *ledger, struct store *store, storage_finding_fn fn, void *context, struct storage_report *ret,
                  struct err *err)
{
	struct check check = {.store = store, .fn = fn, .context = context, .report = ret, .err = err};
	*ret = (struct storage_report){0};
	int result = references_load(ledger, &check.references, err);
	if (result == 0) {
		check.found = calloc(check.references.count + 1, sizeof(*check.found));
		result = check.found ? store_walk(store, check_entry, &check, err) : err_set(err, ERR_NO_MEMORY, "out of memory");
	}
	if (result == 0)
		tell_missing(&check);
	free(check.found);
	references_done(&check.references);
	return result;
}

const char *storage_finding_name(enum storage_finding_kind kind)
{
	switch (kind) {
	case STORAGE_DAMAGED:
		return "damaged";
	case STORAGE_MISSING:
		return "missing";
	case STORAGE_STRAY:
		return "stray";
	}
	return "unknown";
}
