/* verify_unsealed.c - the runs that no seal covers yet: under way, waiting for their recovery, or queued. */
#include <stdlib.h>
#include <string.h>

#include "evidence/verify_internal.h"

/* A run without a seal, and what its attempts say. */
struct open_run {
	struct image_row *row;
	const struct image_row *latest; /* attempt; NULL: none yet */
	bool under_way;                 /* an attempt is neither sealed nor abandoned */
	bool claims_seal;               /* an attempt says that it is sealed */
};

struct open_runs {
	const char **sealed; /* the runs that a seal is about, by its row or by its receipt; sorted */
	size_t sealed_count;
	struct open_run *list; /* by run_id, as the image is */
	size_t count;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int list_sealed(const struct verifier *verifier, struct open_runs *ret, struct err *err)
{
	ret->sealed = calloc(2 * verifier->seal_count + 1, sizeof *ret->sealed);
	if (!ret->sealed)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < verifier->seal_count; i++) {
		const char *by_row = image_text(verifier->seals[i].row, "run_id");

		ret->sealed[ret->sealed_count++] = verifier->seals[i].run;
		if (by_row)
			ret->sealed[ret->sealed_count++] = by_row;
	}
	qsort(ret->sealed, ret->sealed_count, sizeof *ret->sealed, by_text);
	return 0;
}

static int list_open(const struct verifier *verifier, struct open_runs *ret, struct err *err)
{
	struct image_range runs = image_find(&verifier->image, "run", NULL);

	ret->list = calloc(runs.count + 1, sizeof *ret->list);
	if (!ret->list)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < runs.count; i++) {
		const char *run = image_text(&runs.first[i], "run_id");

		if (run && !bsearch(&run, ret->sealed, ret->sealed_count, sizeof *ret->sealed, by_text))
			ret->list[ret->count++] = (struct open_run){.row = &runs.first[i]};
	}
	return 0;
}

static int by_run(const void *run, const void *open)
{
	return strcmp(run, image_text(((const struct open_run *)open)->row, "run_id"));
}

static struct open_run *open_run_of(const struct open_runs *open, const struct image_row *row)
{
	const char *run = image_text(row, "run_id");

	return run ? bsearch(run, open->list, open->count, sizeof *open->list, by_run) : NULL;
}

static void look_at_attempt(const struct open_runs *open, const struct image_row *attempt)
{
	struct open_run *run = open_run_of(open, attempt);
	const char *state = image_text(attempt, "state");

	if (!run || !state)
		return;
	if (strcmp(state, "sealed") == 0)
		run->claims_seal = true;
	else if (strcmp(state, "abandoned") != 0)
		run->under_way = true;
	if (!run->latest || image_number(attempt, "number") > image_number(run->latest, "number"))
		run->latest = attempt;
}

/* What is under way is not queued; of what is not under way the queue alone says that it is still to come. Otherwise its rows are
 * under no seal, and that is what is said. */
static void mark_run(struct verifier *verifier, const struct open_run *open)
{
	const char *run = image_text(open->row, "run_id");
	struct image_range places = image_find(&verifier->image, "queue", run);

	if (open->claims_seal || (!open->under_way && places.count == 0))
		return;
	open->row->unsealed = true;
	verifier->report.unsealed++;
	if (places.count > (open->under_way ? 0 : 1))
		verify_problem(verifier, run, "queue: %zu row%s of a run %s", places.count, places.count == 1 ? "" : "s",
		               open->under_way ? "that is under way" : "that waits once");
	verify_note(verifier, run, "not sealed yet (%s)", open->under_way ? image_text(open->latest, "state") : "queued");
}

/* Every row is of an attempt, or of a run. */
static bool parent_unsealed(const struct verifier *verifier, const struct image_row *row)
{
	const char *attempt = image_text(row, "attempt_id"), *run = image_text(row, "run_id");
	struct image_range parents = attempt && strcmp(row->table, "attempt") != 0
	                                     ? image_find(&verifier->image, "attempt", attempt)
	                                     : image_find(&verifier->image, "run", run ? run : "");

	return parents.count == 1 && parents.first->unsealed;
}

static void mark_owners(struct verifier *verifier)
{
	struct image_range leases = image_find(&verifier->image, "lease", NULL);

	for (size_t i = 0; i < leases.count; i++) {
		const char *owner = image_text(&leases.first[i], "owner_id");
		struct image_range owners = image_find(&verifier->image, "owner", owner ? owner : "");

		for (size_t k = 0; leases.first[i].unsealed && k < owners.count; k++)
			owners.first[k].unsealed = true;
	}
}

/* Attempts first: the other rows ask theirs. */
static void mark_rows(struct verifier *verifier)
{
	struct image_range attempts = image_find(&verifier->image, "attempt", NULL);

	for (size_t i = 0; i < attempts.count; i++)
		attempts.first[i].unsealed = parent_unsealed(verifier, &attempts.first[i]);
	for (size_t i = 0; i < verifier->image.count; i++) {
		struct image_row *row = &verifier->image.rows[i];

		if (!row->unsealed && strcmp(row->table, "run") != 0 && strcmp(row->table, "attempt") != 0)
			row->unsealed = parent_unsealed(verifier, row);
	}
	mark_owners(verifier);
}

int verify_mark_unsealed(struct verifier *verifier, struct err *err)
{
	struct image_range attempts = image_find(&verifier->image, "attempt", NULL);
	struct image_range ledgers = image_find(&verifier->image, "ledger", NULL);
	struct open_runs open = {.count = 0};
	int r = list_sealed(verifier, &open, err);

	if (r == 0)
		r = list_open(verifier, &open, err);
	for (size_t i = 0; r == 0 && i < attempts.count; i++)
		look_at_attempt(&open, &attempts.first[i]);
	for (size_t i = 0; r == 0 && i < ledgers.count; i++) /* the genesis comes under the first seal */
		ledgers.first[i].unsealed = verifier->seal_count == 0;
	for (size_t i = 0; r == 0 && i < open.count; i++)
		mark_run(verifier, &open.list[i]);
	if (r == 0)
		mark_rows(verifier);
	free(open.sealed);
	free(open.list);
	return r;
}
