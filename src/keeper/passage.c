/* passage.c - a queued run becomes an attempt of ours: read from the ledger, admitted, claimed. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "capture/capture.h"
#include "keeper/server_internal.h"

static int read_documents(struct passage *passage, const char *manifest, const char *plan, struct err *err)
{
	if (!manifest || !plan)
		return err_set(err, ERR_DAMAGED, "run %s has no plan", passage->entry.run_id);
	int result = manifest_parse(manifest, strlen(manifest), &passage->manifest, err);
	if (result == 0)
		result = plan_parse(plan, strlen(plan), &passage->plan, err);
	return result < 0 ? err_set(err, ERR_DAMAGED, "the documents of run %s cannot be read", passage->entry.run_id) : 0;
}

static int load(struct server *server, struct passage *passage, struct err *err)
{
	struct ledger *ledger = server->options.keeper->ledger;
	char *manifest = NULL, *plan = NULL;
	int result = ledger->ops->manifest(ledger, passage->entry.run_id, &manifest, &plan, err);
	if (result == 0)
		result = read_documents(passage, manifest, plan, err);
	free(manifest);
	free(plan);
	if (result < 0)
		return result;
	passage->attempt = (struct attempt){
		.keeper = server->options.keeper,
		.manifest = passage->manifest,
		.plan = passage->plan,
		.principal = passage->entry.principal,
	};
	attempt_name(&passage->attempt, passage->entry.run_id, false, server->options.lease_ttl_ms);
	return 0;
}

int passage_load(struct server *server, const struct queue_entry *entry, struct passage **ret, struct err *err)
{
	struct passage *passage = calloc(1, sizeof(*passage));
	if (!passage)
		return err_set(err, ERR_NO_MEMORY, "out of memory for an attempt");
	passage->entry = *entry;
	int result = load(server, passage, err);
	if (result < 0) {
		passage_free(passage);
		return result;
	}
	*ret = passage;
	return 0;
}

int passage_claim(struct server *server, struct passage *passage, struct err *err)
{
	struct ledger *ledger = server->options.keeper->ledger;
	ATTEMPT_RECORDS_AUTO struct attempt_records records;
	int result = attempt_records(&passage->attempt, &records, err);
	if (result == 0)
		result = FAULT_ERR("serve.claiming", err);
	if (result == 0)
		result = ledger->ops->claim(ledger, &passage->attempt.row, records.list, records.count, err);
	(void)FAULT("serve.claimed");
	passage->claimed = result == 0;
	return result;
}

void passage_free(struct passage *passage)
{
	if (!passage)
		return;
	if (passage->boundary)
		passage->boundary->ops->free(passage->boundary);
	capture_free(passage->captures[0]);
	capture_free(passage->captures[1]);
	free(passage->result.receipt);
	plan_free(passage->plan);
	manifest_free(passage->manifest);
	free(passage);
}
