/* stage.c - what the contract tests of every store share. */
#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct store_case *store_under_test;

void stage_use(const struct store_case *store)
{
	store_under_test = store;
}

int stage_setup(void **state)
{
	struct stage *stage = calloc(1, sizeof *stage);

	stage->store = store_under_test;
	stage->store->make(&stage->fixture);
	*state = stage;
	return 0;
}

int stage_teardown(void **state)
{
	struct stage *stage = *state;

	fixture_remove(&stage->fixture);
	free(stage);
	return 0;
}

struct ledger *ledger_of(void **state)
{
	return ((struct stage *)*state)->fixture.ledger;
}

struct ledger_run_state state_of(struct stage *stage, const char *run_id)
{
	struct ledger *ledger = stage->fixture.ledger;
	struct ledger_run_state state;
	struct err err = ERR_INIT;

	if (ledger->ops->run_state(ledger, run_id, &state, &err) < 0)
		fail_msg("%s", err.text);
	return state;
}

int count_records(void *context, const struct ledger_record *record, const struct digest *digest)
{
	int64_t *last = context;

	(void)digest;
	assert_int_equal(record->seq, *last + 1);
	*last = record->seq;
	return 0;
}

int count_attempt(void *context, const struct ledger_attempt *attempt)
{
	(void)attempt;
	++*(int *)context;
	return 0;
}

void start_other_keeper(struct stage *stage, struct other_keeper *ret)
{
	int release[2], ready[2];

	assert_int_equal(pipe(release), 0);
	assert_int_equal(pipe(ready), 0);
	ret->pid = fork();
	if (ret->pid == 0) {
		close(release[1]);
		close(ready[0]);
		dup2(release[0], STDIN_FILENO);
		dup2(ready[1], STDOUT_FILENO);
		execl("/proc/self/exe", "other_keeper", stage->store->name, stage->fixture.path, (char *)NULL);
		_exit(127);
	}
	close(release[0]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &ret->attempt, sizeof ret->attempt), sizeof ret->attempt);
	close(ready[0]);
	ret->release = release[1];
}

int be_other_keeper(const struct store_case *store, const char *path)
{
	struct ledger_fixture own;
	struct ledger_attempt attempt;
	char byte;

	store->open(&own, path, false);
	fixture_accept(&own, &attempt);
	if (write(STDOUT_FILENO, &attempt, sizeof attempt) != sizeof attempt || read(STDIN_FILENO, &byte, 1) != 0)
		return 1;
	_exit(0); /* as if it were killed: nothing is closed */
}

void end_other_keeper(struct other_keeper *keeper)
{
	int status;

	close(keeper->release);
	assert_int_equal(waitpid(keeper->pid, &status, 0), keeper->pid);
	assert_int_equal(status, 0);
}
