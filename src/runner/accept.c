/* accept.c - the records of the transaction that accepts a run: who asked, what was decided, and what is going to be done. */
#include "runner/drive.h"

#include <string.h>

void runner_accept_records_done(struct runner_accept_records *records)
{
	struct journal journal = {.count = records->count};
	memcpy(journal.records, records->records, sizeof(records->records));
	journal_done(&journal);
	records->count = 0;
}

static json_t *accepted(const struct runner_acceptance *acceptance)
{
	char manifest[DIGEST_TEXT_SIZE];
	return json_pack("{s:s, s:s}", "principal", acceptance->principal, "manifest", digest_text(&acceptance->manifest, manifest));
}

static json_t *admitted(const struct runner_acceptance *acceptance)
{
	char admission[DIGEST_TEXT_SIZE], plan[DIGEST_TEXT_SIZE], policy[DIGEST_TEXT_SIZE];
	return json_pack("{s:s, s:s, s:s}", "admission", digest_text(&acceptance->admission, admission), "plan",
	                 digest_text(&acceptance->plan->digest, plan), "policy", digest_text(&acceptance->plan->policy, policy));
}

static json_t *intent(const struct runner_acceptance *acceptance)
{
	return json_pack("{s:s, s:[s, s, s, s]}", "boundary", acceptance->boundary_id, "steps", "prepare", "create_suspended", "enroll",
	                 "cleanup");
}

int runner_accept_records(const struct runner_acceptance *acceptance, struct runner_accept_records *ret, struct err *err)
{
	struct journal journal = {.count = 0};
	int rc = journal_add(&journal, "accepted", accepted(acceptance), err);
	if (rc == 0 && acceptance->admitted)
		rc = journal_add(&journal, "admitted", admitted(acceptance), err);
	if (rc == 0 && acceptance->admitted)
		rc = journal_add(&journal, "intent", intent(acceptance), err);
	if (rc < 0) {
		journal_done(&journal);
		return rc;
	}
	for (size_t i = 0; i < journal.count; i++)
		journal.records[i].at_ms = acceptance->at_ms;
	memcpy(ret->records, journal.records, sizeof(ret->records));
	ret->count = journal.count;
	return 0;
}
