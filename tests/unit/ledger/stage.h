/* stage.h - what the contract tests of every store share: a ledger of the store under test, and another keeper on it. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "ledger_fixture.h"

/* A further store gets a line in stores[] of test_contract.c. */
struct store_case {
	const char *name;
	void (*make)(struct ledger_fixture *fixture);
	void (*open)(struct ledger_fixture *fixture, const char *path, bool read_only);
	bool batches; /* has batch_begin, batch_end and watch */
};

struct stage {
	const struct store_case *store;
	struct ledger_fixture fixture;
};

/* Which store the tests from now on are about. */
void stage_use(const struct store_case *store);
int stage_setup(void **state);
int stage_teardown(void **state);
#define STAGE_CASE(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

struct ledger *ledger_of(void **state);
struct ledger_run_state state_of(struct stage *stage, const char *run_id);

/* context: an int64_t, the seq of the last record; the next one must have the next. */
int count_records(void *context, const struct ledger_record *record, const struct digest *digest);
int count_attempt(void *context, const struct ledger_attempt *attempt);

/* Another process with an owner of its own, that accepts a run and then waits until its standard input closes. It is this program
 * again, executed: a forked child must not use SQLite where its parent has. */
struct other_keeper {
	pid_t pid;
	int release, ready;
	struct ledger_attempt attempt;
};

void start_other_keeper(struct stage *stage, struct other_keeper *ret);
int be_other_keeper(const struct store_case *store, const char *path);
void end_other_keeper(struct other_keeper *keeper);

/* contract_queue.c */
int contract_queue(const struct store_case *store);
