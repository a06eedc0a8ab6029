/* recovering.c - runs a recovery, or a sweep alone, and prints each line as it happens. */
#include "cli/recovering.h"

#include <unistd.h>

#include "cli/cli.h"
#include "cli/wiring.h"
#include "print/output.h"
#include "print/page.h"

/* Lines appear as they happen: a recovery may take its time. */
static void say_line(void *context, const char *run_id, const char *line)
{
	PAGE_AUTO struct page page = PAGE_INIT;

	(void)context;
	page_add(&page, "%s%s%s\n", run_id, *run_id ? ": " : "", line);
	(void)page_print(&page, STDOUT_FILENO, NULL);
}

static void collect_line(void *context, const char *run_id, const char *line)
{
	json_array_append_new(context, json_pack("{s:s,s:s}", "run", run_id, "line", line));
}

static int say_totals(const struct keeper_recovered *recovered, json_t *lines, struct err *err)
{
	if (!lines) {
		PAGE_AUTO struct page page = PAGE_INIT;

		page_add(&page, "%d sealed, %d queued again, %d quarantined, %d of living keepers left alone, %d failed, %d boundaries swept\n",
		         recovered->sealed, recovered->requeued, recovered->quarantined, recovered->busy, recovered->failed, recovered->swept);
		return page_print(&page, STDOUT_FILENO, err);
	}

	JSON_AUTO json_t *totals =
		json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:O}", "sealed", recovered->sealed, "requeued", recovered->requeued, "quarantined", recovered->quarantined, "busy",
	                  recovered->busy, "failed", recovered->failed, "swept", recovered->swept, "lines", lines);

	return totals ? print_json(STDOUT_FILENO, totals, err) : err_set(err, ERR_NO_MEMORY, "out of memory");
}

int recovering_run(const struct options *options, enum recovering what, struct err *err)
{
	KEEPER_AUTO struct keeper *keeper = NULL;
	JSON_AUTO json_t *lines = options->json ? json_array() : NULL;
	struct keeper_recovered recovered = {0};
	int result = wiring_open_keeper(options->ledger, &keeper, err);

	if (result)
		return result;

	const struct keeper_recovery recovery = {
		.keeper = keeper,
		.factory = wiring_factory(options->cgroup_parent),
		.profiles = wiring_profiles,
		.sweep = true,
		.only_sweep = what == RECOVERING_SWEEP,
		.dry_run = options->dry_run,
		.include_quarantined = true,
		.report = lines ? collect_line : say_line,
		.context = lines,
	};

	result = keeper_recover(&recovery, &recovered, err);
	if (result == 0)
		result = say_totals(&recovered, lines, err);
	if (result)
		return result;
	return recovered.quarantined || recovered.failed ? STATUS_NO : STATUS_OK;
}
