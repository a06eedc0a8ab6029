/* outcome.c - shows what a run came to. */
#include "cli/outcome.h"

#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "print/output.h"
#include "print/page.h"
#include "print/report.h"

static int print_provisional(const struct keeper_result *result, struct err *err)
{
	const struct verdict *verdict = &result->run.verdict;
	const char *signal_name = verdict->signal ? verdict_signal_name(verdict->signal) : NULL;
	JSON_AUTO json_t *code = verdict->exit_code < 0 ? json_null() : json_integer(verdict->exit_code);
	JSON_AUTO json_t *document = json_pack("{s:s,s:{s:s,s:s,s:s,s:O,s:s?}}", "run", result->run_id, "provisional_result",
	                                       "verdict", verdict_name(verdict->kind), "reason", verdict->reason, "detail",
	                                       verdict->detail, "exit_code", code, "signal", signal_name);

	return document ? print_json(STDOUT_FILENO, document, err) : err_set(err, ERR_NO_MEMORY, "out of memory");
}

static int print_receipt(const struct keeper_result *result, struct err *err)
{
	PAGE_AUTO struct page page = PAGE_INIT;

	page_add(&page, "%s\n", result->run.receipt);
	return page_print(&page, STDOUT_FILENO, err);
}

static void add_summary(struct page *page, const char *receipt_text)
{
	JSON_AUTO json_t *receipt = NULL;

	if (json_parse(receipt_text, strlen(receipt_text), &receipt, NULL))
		return;
	page_add(page, "caisson: ");
	report_boundary(page, receipt);
	page_add(page, "\n");
	if (!isatty(STDERR_FILENO))
		return;
	page_add(page, "caisson: ");
	report_usage(page, receipt);
	page_add(page, "\n");
}

static int print_lines(const struct keeper_result *result, const struct options *options, struct err *err)
{
	PAGE_AUTO struct page page = PAGE_INIT;
	const struct verdict *verdict = &result->run.verdict;

	page_add(&page, "caisson: ");
	report_line(&page, result->run_id, verdict_name(verdict->kind), verdict->reason, verdict->detail);
	page_add(&page, "\n");
	if (result->run.provisional)
		page_add(&page,
		         "caisson: provisional: the boundary is quarantined until it is verified empty (see caisson recover)\n");
	if (options->summary && result->run.receipt)
		add_summary(&page, result->run.receipt);
	return page_print(&page, STDERR_FILENO, err);
}

int outcome_show(const struct keeper_result *result, const struct options *options, struct err *err)
{
	bool succeeded = result->run.verdict.kind == VERDICT_SUCCEEDED && !result->run.provisional;
	int code = 0;

	if (options->json)
		code = result->run.receipt ? print_receipt(result, err) : print_provisional(result, err);
	if (code == 0 && (options->summary || (!succeeded && !options->quiet)))
		code = print_lines(result, options, err);
	return code;
}

int outcome_status(const struct keeper_result *result, int first_signal)
{
	return result->run.provisional ? STATUS_CAISSON : verdict_exit_status(&result->run.verdict, first_signal);
}
