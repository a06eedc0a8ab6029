/* outcome.c - shows what a run came to. */
#include "client/outcome.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "lifecycle/verdict.h"
#include "print/output.h"
#include "print/page.h"
#include "print/report.h"

enum { SIGNAL_MAX = 64 };

const json_t *outcome_receipt(const json_t *state)
{
	const json_t *receipt = json_object_get(state, "receipt");

	return json_is_object(receipt) ? receipt : NULL;
}

json_t *outcome_provisional(const json_t *state)
{
	json_t *provisional = json_object_get(state, "provisional_result");

	return json_is_object(provisional) ? json_incref(provisional) : json_object();
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "";
}

bool outcome_known(const json_t *state)
{
	return outcome_receipt(state) || strcmp(text(state, "state"), "quarantined") == 0;
}

static int signal_of_name(const char *name)
{
	for (int signal = 1; signal <= SIGNAL_MAX; signal++)
		if (strcmp(verdict_signal_name(signal), name) == 0)
			return signal;
	return 0;
}

/* A receipt has the error of exec in its detail alone, by its name at the end: "No such file or directory (ENOENT)". */
static int exec_errno(const json_t *receipt)
{
	static const char not_found[] = "(ENOENT)";
	const char *detail = text(receipt, "detail");
	size_t length = strlen(detail);

	if (strcmp(text(receipt, "reason"), "exec_failed") != 0)
		return 0;
	if (length >= strlen(not_found) && strcmp(detail + length - strlen(not_found), not_found) == 0)
		return ENOENT;
	return EACCES;
}

/* What outcome_status needs of the verdict. False when it is none that we know. */
static bool verdict_of(const json_t *receipt, struct verdict *ret)
{
	const json_t *code = json_object_get(receipt, "exit_code");

	*ret = (struct verdict){.exit_code = json_is_integer(code) ? (int)json_integer_value(code) : -1};
	ret->signal = signal_of_name(text(receipt, "signal"));
	ret->exec_errno = exec_errno(receipt);
	for (int kind = 0; kind < VERDICT_COUNT; kind++) {
		ret->kind = (enum verdict_kind)kind;
		if (strcmp(verdict_name(ret->kind), text(receipt, "verdict")) == 0)
			return true;
	}
	return false;
}

int outcome_status(const json_t *state)
{
	struct verdict verdict;
	const json_t *receipt = outcome_receipt(state);

	return receipt && verdict_of(receipt, &verdict) ? verdict_exit_status(&verdict, 0) : CLIENT_CAISSON;
}

static int print_document(const json_t *state, struct err *err)
{
	const json_t *receipt = outcome_receipt(state);

	if (receipt)
		return print_json(STDOUT_FILENO, receipt, err);

	JSON_AUTO json_t *document =
		json_pack("{s:s,s:o}", "run", text(state, "run"), "provisional_result", outcome_provisional(state));

	return document ? print_json(STDOUT_FILENO, document, err)
	                : err_set(err, ERR_PROTOCOL, "the keeper's answer has no result");
}

static int print_lines(const json_t *state, const struct request *request, struct err *err)
{
	PAGE_AUTO struct page page = PAGE_INIT;
	JSON_AUTO json_t *provisional = outcome_provisional(state);
	const json_t *receipt = outcome_receipt(state), *result = receipt ? receipt : provisional;
	const char *verdict = text(result, "verdict");

	page_add(&page, "caisson: ");
	report_line(&page, text(state, "run"), *verdict ? verdict : "unknown", text(result, "reason"), text(result, "detail"));
	page_add(&page, "\n");
	if (!receipt)
		page_add(&page,
		         "caisson: provisional: the boundary is quarantined until it is verified empty (see caisson workers)\n");
	if (request->summary && receipt) {
		page_add(&page, "caisson: ");
		report_boundary(&page, receipt);
		page_add(&page, "\ncaisson: ");
		report_usage(&page, receipt);
		page_add(&page, "\n");
	}
	return page_print(&page, STDERR_FILENO, err);
}

int outcome_show(const json_t *state, const struct request *request, struct err *err)
{
	const json_t *receipt = outcome_receipt(state);
	bool succeeded = receipt && strcmp(text(receipt, "verdict"), verdict_name(VERDICT_SUCCEEDED)) == 0;
	int result = request->json ? print_document(state, err) : 0;

	if (result == 0 && (request->summary || (!succeeded && !request->quiet)))
		result = print_lines(state, request, err);
	return result;
}
