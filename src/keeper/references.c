/* references.c - gathers what rows and unfinished plans name. */
#include "keeper/references.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/plan.h"

enum { FIRST_CAPACITY = 256 };

void references_done(struct references *references)
{
	for (size_t i = 0; i < references->count; i++)
		free(references->list[i].name);
	free(references->list);
	*references = (struct references){0};
}

static int out_of_memory(struct err *err)
{
	return err_set(err, ERR_NO_MEMORY, "out of memory for references");
}

static int add(struct references *references, const struct ledger_reference *found, struct err *err)
{
	if (references->count == references->capacity) {
		size_t capacity = references->capacity ? 2 * references->capacity : FIRST_CAPACITY;
		struct reference *list = realloc(references->list, capacity * sizeof(*list));
		if (!list)
			return out_of_memory(err);
		references->list = list;
		references->capacity = capacity;
	}
	struct reference *reference = &references->list[references->count];
	reference->sha256 = found->sha256;
	snprintf(reference->run_id, sizeof(reference->run_id), "%s", found->run_id);
	snprintf(reference->kind, sizeof(reference->kind), "%s", found->kind);
	reference->name = strdup(found->name);
	if (!reference->name)
		return out_of_memory(err);
	references->count++;
	return 0;
}

struct loading {
	struct references *references;
	struct err *err;
	char (*runs)[ID_SIZE]; /* not sealed */
	size_t run_count, run_capacity;
};

static int take_row(void *context, const struct ledger_reference *reference)
{
	struct loading *loading = context;
	return add(loading->references, reference, loading->err);
}

static int take_run(void *context, const char *run_id)
{
	struct loading *loading = context;
	if (loading->run_count == loading->run_capacity) {
		size_t capacity = loading->run_capacity ? 2 * loading->run_capacity : FIRST_CAPACITY;
		char (*runs)[ID_SIZE] = realloc(loading->runs, capacity * sizeof(*runs));
		if (!runs)
			return out_of_memory(loading->err);
		loading->runs = runs;
		loading->run_capacity = capacity;
	}
	snprintf(loading->runs[loading->run_count++], ID_SIZE, "%s", run_id);
	return 0;
}

static int add_input(struct loading *loading, const char *run_id, const char *name, const struct plan_input *input)
{
	const struct ledger_reference reference = {.run_id = run_id, .kind = "input", .name = name, .sha256 = input->digest};
	return add(loading->references, &reference, loading->err);
}

static int add_inputs(struct loading *loading, const char *run_id, const struct plan_unit *unit)
{
	int result = 0;
	if (unit->standard_input == ENDPOINT_INPUT)
		result = add_input(loading, run_id, "stdin", &unit->stdin_input);
	for (size_t i = 0; result == 0 && i < unit->input_count; i++)
		result = add_input(loading, run_id, unit->inputs[i].target, &unit->inputs[i]);
	return result;
}

/* A run that was refused has no plan, and no use for its inputs. */
static int add_plan(struct loading *loading, struct ledger *ledger, const char *run_id)
{
	PLAN_AUTO struct plan *plan = NULL;
	char *manifest = NULL, *text = NULL;
	int result = ledger->ops->manifest(ledger, run_id, &manifest, &text, loading->err);
	if (result == 0 && text) {
		result = plan_parse(text, strlen(text), &plan, loading->err);
		if (result < 0)
			result = err_context(loading->err, ERR_DAMAGED, "the plan of %s", run_id);
		else
			result = add_inputs(loading, run_id, &plan->unit);
	}
	free(manifest);
	free(text);
	return result;
}

static int by_digest(const void *a, const void *b)
{
	return memcmp(&((const struct reference *)a)->sha256, &((const struct reference *)b)->sha256, sizeof(struct digest));
}

/* The runs that are not sealed come first: what is sealed between the two has its rows by then, and is found twice at worst. */
int references_load(struct ledger *ledger, struct references *ret, struct err *err)
{
	struct loading loading = {.references = ret, .err = err};
	int result = ledger->ops->open_runs(ledger, take_run, &loading, err);
	for (size_t i = 0; result == 0 && i < loading.run_count; i++)
		result = add_plan(&loading, ledger, loading.runs[i]);
	if (result == 0)
		result = ledger->ops->references(ledger, take_row, &loading, err);
	free(loading.runs);
	if (result == 0 && ret->count > 0)
		qsort(ret->list, ret->count, sizeof(*ret->list), by_digest);
	return result;
}

const struct reference *references_find(const struct references *references, const struct digest *digest, size_t *ret_count)
{
	size_t low = 0, high = references->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (memcmp(&references->list[middle].sha256, digest, sizeof(*digest)) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	size_t end = low;
	while (end < references->count && digest_equal(&references->list[end].sha256, digest))
		end++;
	*ret_count = end - low;
	return end > low ? &references->list[low] : NULL;
}
