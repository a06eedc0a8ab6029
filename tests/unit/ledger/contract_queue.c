/* contract_queue.c - what ledger.h promises of runs that wait, of leases that expire, and of batches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/resource.h>

#include "stage.h"

static int check_number(void *context, const struct ledger_attempt *attempt)
{
	assert_int_equal(attempt->number, ++*(int *)context);
	return 0;
}

static void a_submitted_run_waits_without_an_attempt(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_run_state seen;
	struct err err = ERR_INIT;
	char run_id[ID_SIZE];
	int unsealed = 0;

	fixture_submit(&stage->fixture, NULL, run_id);
	seen = state_of(stage, run_id);
	assert_string_equal(seen.principal, "uid:0");
	assert_int_equal(seen.attempts, 0);
	assert_false(seen.attached || seen.cancelled || seen.sealed);
	assert_int_equal(ledger->ops->unsealed(ledger, count_attempt, &unsealed, &err), 0);
	assert_int_equal(unsealed, 0);
	assert_int_equal(ledger->ops->run_state(ledger, "run-aaaaaaaaaaaaaaaa", &seen, &err), ERR_NOT_FOUND);
}

static void a_submission_is_repeated_under_its_key(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_run other = {.principal = "uid:0", .manifest = "{}", .labels = "{}"};
	char first[ID_SIZE], again[ID_SIZE], somebody_elses[ID_SIZE];
	struct err err = ERR_INIT;
	bool existing = false;

	fixture_submit(&stage->fixture, "key", first);
	assert_int_equal(fixture_try_submit(&stage->fixture, "uid:0", "key", again, &existing, &err), 0);
	assert_true(existing);
	assert_string_equal(again, first);
	assert_int_equal(fixture_try_submit(&stage->fixture, "uid:1", "key", somebody_elses, &existing, &err), 0);
	assert_false(existing);
	assert_string_not_equal(somebody_elses, first);

	id_new("run", other.run_id);
	digest_of(other.manifest, strlen(other.manifest), &other.manifest_digest);
	memcpy(again, other.run_id, sizeof again);
	assert_int_equal(ledger->ops->submit(ledger, &other, "key", FIXTURE_QUEUE_MAX, &existing, &err), ERR_CONFLICT);
	assert_string_equal(other.run_id, again);
	assert_int_equal(ledger->ops->submit(ledger, &other, "other key", FIXTURE_QUEUE_MAX, &existing, &err), 0);
	assert_false(existing);
}

static void a_submission_that_cannot_be_is_refused(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_run run = {.run_id = "run-aaaaaaaaaaaaaaaa", .attached = true, .manifest = "{}", .labels = "{}"};
	char key[LEDGER_IDEMPOTENCY_MAX + 2], run_id[ID_SIZE];
	struct err err = ERR_INIT;
	bool existing = false;

	memset(key, 'k', sizeof key - 1);
	key[sizeof key - 1] = '\0';
	assert_int_equal(fixture_try_submit(&stage->fixture, "uid:0", key, run_id, &existing, &err), ERR_INVALID);
	assert_int_equal(fixture_try_submit(&stage->fixture, "uid:0", "", run_id, &existing, &err), ERR_INVALID);
	assert_int_equal(fixture_try_submit(&stage->fixture, "uid:0", key + 1, run_id, &existing, &err), 0);
	assert_int_equal(ledger->ops->submit(ledger, &run, NULL, FIXTURE_QUEUE_MAX, &existing, &err), ERR_INVALID); /* attached */
	run.attached = false;
	assert_int_equal(ledger->ops->submit(ledger, &run, NULL, FIXTURE_QUEUE_MAX, &existing, &err), ERR_INVALID); /* digest */
}

static void the_queue_is_bounded_but_not_for_a_repetition(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	char run_id[ID_SIZE], first[ID_SIZE];
	struct err err = ERR_INIT;
	bool existing = false;

	fixture_submit(&stage->fixture, "key", first);
	for (int i = 1; i < FIXTURE_QUEUE_MAX; i++)
		fixture_submit(&stage->fixture, NULL, run_id);
	assert_int_equal(fixture_try_submit(&stage->fixture, "uid:0", NULL, run_id, &existing, &err), ERR_LIMIT);
	assert_non_null(strstr(err.text, "queue_full"));
	assert_int_equal(fixture_try_submit(&stage->fixture, "uid:0", "key", run_id, &existing, &err), 0);
	assert_true(existing);
	fixture_claim(&stage->fixture, first, &attempt);
	fixture_submit(&stage->fixture, NULL, run_id);
}

struct queue_seen {
	struct ledger_queued list[FIXTURE_QUEUE_MAX];
	int count;
};

static int take_queued(void *context, const struct ledger_queued *queued)
{
	struct queue_seen *seen = context;

	seen->list[seen->count++] = *queued;
	return 0;
}

static struct queue_seen queue_of(struct stage *stage, int64_t after, int64_t limit)
{
	struct ledger *ledger = stage->fixture.ledger;
	struct queue_seen seen = {.count = 0};
	struct err err = ERR_INIT;

	if (ledger->ops->queued(ledger, after, limit, take_queued, &seen, &err) < 0)
		fail_msg("%s", err.text);
	return seen;
}

static void the_queue_is_in_order_of_arrival(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_attempt attempt;
	struct queue_seen seen;
	struct err err = ERR_INIT;
	char first[ID_SIZE], second[ID_SIZE], third[ID_SIZE];
	bool sealed;

	fixture_submit(&stage->fixture, NULL, first);
	fixture_accept(&stage->fixture, &attempt); /* attached, and so never queued */
	fixture_submit(&stage->fixture, NULL, second);
	fixture_submit(&stage->fixture, NULL, third);
	assert_int_equal(ledger->ops->request_cancel(ledger, second, &sealed, &err), 0);
	fixture_claim(&stage->fixture, first, &attempt);
	seen = queue_of(stage, 0, FIXTURE_QUEUE_MAX);
	assert_int_equal(seen.count, 2);
	assert_string_equal(seen.list[0].run_id, second);
	assert_string_equal(seen.list[0].principal, "uid:0");
	assert_true(seen.list[0].cancelled);
	assert_string_equal(seen.list[1].run_id, third);
	assert_false(seen.list[1].cancelled);
	assert_string_equal(queue_of(stage, 0, 1).list[0].run_id, second);
	assert_string_equal(queue_of(stage, seen.list[0].position, FIXTURE_QUEUE_MAX).list[0].run_id, third);

	assert_int_equal(fixture_abandon(&stage->fixture, &attempt, &err), 0);
	seen = queue_of(stage, 0, FIXTURE_QUEUE_MAX);
	assert_int_equal(seen.count, 3);
	assert_string_equal(seen.list[0].run_id, first); /* where it was */
	assert_int_equal(seen.list[0].attempts, 1);
}

static void a_queued_run_is_claimed_once(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt, late, accepted;
	struct err err = ERR_INIT;
	char run_id[ID_SIZE];

	fixture_accept(&stage->fixture, &accepted);
	fixture_submit(&stage->fixture, NULL, run_id);
	fixture_claim(&stage->fixture, run_id, &attempt);
	assert_int_equal(attempt.number, 1);
	assert_int_equal(attempt.slot, 1);
	assert_int_equal(attempt.generation, 1);
	assert_int_equal(fixture_try_claim(&stage->fixture, run_id, &late, &err), ERR_STATE);
	assert_int_equal(fixture_intent(&stage->fixture, &attempt, &err), 0);
	assert_int_equal(fixture_try_claim(&stage->fixture, run_id, &late, &err), ERR_STATE);
	assert_int_equal(fixture_seal(&stage->fixture, &attempt, "", &err), 0);
	assert_int_equal(fixture_try_claim(&stage->fixture, run_id, &late, &err), ERR_STATE);
	assert_int_equal(fixture_try_claim(&stage->fixture, accepted.run_id, &late, &err), ERR_STATE);
	assert_int_equal(fixture_try_claim(&stage->fixture, "run-aaaaaaaaaaaaaaaa", &late, &err), ERR_NOT_FOUND);
	assert_true(state_of(stage, run_id).sealed);
	assert_string_equal(state_of(stage, run_id).verdict, "succeeded");
}

static void an_abandoned_attempt_frees_its_slot_and_is_over(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_attempt first, second;
	struct ledger_run_state seen;
	struct err err = ERR_INIT;
	char run_id[ID_SIZE];
	int unsealed = 0;

	fixture_submit(&stage->fixture, NULL, run_id);
	fixture_claim(&stage->fixture, run_id, &first);
	assert_int_equal(fixture_abandon(&stage->fixture, &first, &err), 0);
	assert_int_equal(ledger->ops->unsealed(ledger, count_attempt, &unsealed, &err), 0);
	assert_int_equal(unsealed, 0);
	assert_string_equal(state_of(stage, run_id).latest.state, "abandoned");
	fixture_claim(&stage->fixture, run_id, &second);
	assert_int_equal(second.number, 2);
	assert_int_equal(second.slot, first.slot);
	assert_int_equal(fixture_append(&stage->fixture, &first, "late", NULL, &err), ERR_STATE);
	assert_int_equal(fixture_intent(&stage->fixture, &first, &err), ERR_STATE);
	assert_int_equal(fixture_seal(&stage->fixture, &first, "", &err), ERR_STATE);
	assert_int_equal(fixture_abandon(&stage->fixture, &first, &err), ERR_STATE);
	assert_int_equal(ledger->ops->renew(ledger, first.attempt_id, first.owner_id, 1, &err), ERR_STATE);
	seen = state_of(stage, run_id);
	assert_int_equal(seen.attempts, 2);
	assert_string_equal(seen.latest.attempt_id, second.attempt_id);
	assert_int_equal(fixture_intent(&stage->fixture, &second, &err), 0);
	assert_int_equal(fixture_seal(&stage->fixture, &second, "", &err), 0);
}

static void the_third_attempt_is_the_last(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	char run_id[ID_SIZE];
	int number = 0;

	fixture_submit(&stage->fixture, NULL, run_id);
	for (int i = 1; i < LEDGER_ATTEMPTS_MAX; i++) {
		fixture_claim(&stage->fixture, run_id, &attempt);
		assert_int_equal(fixture_abandon(&stage->fixture, &attempt, &err), 0);
	}
	fixture_claim(&stage->fixture, run_id, &attempt);
	assert_int_equal(fixture_abandon(&stage->fixture, &attempt, &err), ERR_LIMIT);
	assert_int_equal(fixture_seal(&stage->fixture, &attempt, "", &err), 0);
	assert_int_equal(ledger->ops->attempts(ledger, run_id, check_number, &number, &err), 0);
	assert_int_equal(number, LEDGER_ATTEMPTS_MAX);
}

static void what_was_launched_or_is_attached_is_not_abandoned(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	const struct ledger_record record = {.at_ms = 1, .kind = "note", .body = "{}"};
	struct ledger_attempt launched, attached;
	struct err err = ERR_INIT;
	char run_id[ID_SIZE];

	fixture_accept(&stage->fixture, &attached);
	assert_int_equal(fixture_abandon(&stage->fixture, &attached, &err), ERR_STATE);
	fixture_submit(&stage->fixture, NULL, run_id);
	fixture_claim(&stage->fixture, run_id, &launched);
	launched.generation = 2;
	assert_int_equal(fixture_abandon(&stage->fixture, &launched, &err), ERR_FENCED);
	launched.generation = 1;
	assert_int_equal(ledger->ops->abandon(ledger, launched.attempt_id, launched.owner_id, 1, &record, 1, &err), ERR_INVALID);
	assert_int_equal(fixture_intent(&stage->fixture, &launched, &err), 0);
	assert_int_equal(fixture_abandon(&stage->fixture, &launched, &err), ERR_CONFLICT);
}

static void a_lease_expires_for_whoever_saw_it_unchanged(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	const char *owner_id = stage->fixture.owner.owner_id;
	struct other_keeper other;
	struct err err = ERR_INIT;
	int64_t generation = 0;

	start_other_keeper(stage, &other); /* it lives all the time */
	assert_int_equal(ledger->ops->expire(ledger, other.attempt.attempt_id, owner_id, 1, 1, &generation, &err), ERR_BUSY);
	assert_int_equal(ledger->ops->expire(ledger, other.attempt.attempt_id, owner_id, 2, 0, &generation, &err), ERR_BUSY);
	assert_int_equal(ledger->ops->expire(ledger, other.attempt.attempt_id, owner_id, 1, 0, &generation, &err), 0);
	assert_int_equal(generation, 2);
	assert_int_equal(ledger->ops->expire(ledger, other.attempt.attempt_id, owner_id, 1, 0, &generation, &err), ERR_BUSY);
	assert_int_equal(ledger->ops->renew(ledger, other.attempt.attempt_id, other.attempt.owner_id, 1, &err), ERR_FENCED);
	assert_int_equal(ledger->ops->append(ledger, other.attempt.attempt_id, other.attempt.owner_id, 1, NULL, NULL, 0, false, &err),
	                 ERR_FENCED);
	other.attempt.generation = 2;
	assert_int_equal(fixture_seal(&stage->fixture, &other.attempt, "", &err), 0);
	assert_int_equal(ledger->ops->expire(ledger, other.attempt.attempt_id, owner_id, 2, 0, &generation, &err), ERR_BUSY);
	end_other_keeper(&other);
}

static int take_row(void *context, const struct ledger_list_row *row)
{
	struct ledger_list_row *last = context;

	*last = *row;
	return 0;
}

static void the_list_goes_on_behind_a_row_and_knows_whose_a_run_is(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_list_query query = {.limit = 1};
	struct ledger_list_row row;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	char mine[ID_SIZE], theirs[ID_SIZE];
	bool existing;

	fixture_submit(&stage->fixture, NULL, mine);
	assert_int_equal(fixture_try_submit(&stage->fixture, "uid:1", NULL, theirs, &existing, &err), 0);
	assert_int_equal(ledger->ops->list(ledger, &query, take_row, &row, &err), 0);
	assert_string_equal(row.run_id, theirs);
	assert_string_equal(row.principal, "uid:1");
	assert_string_equal(row.state, "queued");
	assert_string_equal(row.attempt_id, "");
	query.before = row.position;
	assert_int_equal(ledger->ops->list(ledger, &query, take_row, &row, &err), 0);
	assert_string_equal(row.run_id, mine);
	query = (struct ledger_list_query){.limit = 10, .principal = "uid:0"};
	assert_int_equal(ledger->ops->list(ledger, &query, take_row, &row, &err), 0);
	assert_string_equal(row.run_id, mine);
	query.before = row.position;
	row.run_id[0] = '\0';
	assert_int_equal(ledger->ops->list(ledger, &query, take_row, &row, &err), 0);
	assert_string_equal(row.run_id, "");
	theirs[ID_SIZE - 4] = '\0';
	query = (struct ledger_list_query){.limit = 10, .stem = theirs};
	assert_int_equal(ledger->ops->list(ledger, &query, take_row, &row, &err), 0);
	assert_memory_equal(row.run_id, theirs, ID_SIZE - 4);
	query.principal = "uid:0";
	row.run_id[0] = '\0';
	assert_int_equal(ledger->ops->list(ledger, &query, take_row, &row, &err), 0);
	assert_string_equal(row.run_id, "");
	fixture_claim(&stage->fixture, mine, &attempt);
	assert_int_equal(fixture_abandon(&stage->fixture, &attempt, &err), 0);
	query = (struct ledger_list_query){.limit = 10, .principal = "uid:0"};
	assert_int_equal(ledger->ops->list(ledger, &query, take_row, &row, &err), 0);
	assert_string_equal(row.state, "queued");
	assert_string_equal(row.attempt_id, attempt.attempt_id);
}

static void begin_batch(struct stage *stage, bool durable)
{
	struct ledger *ledger = stage->fixture.ledger;
	struct err err = ERR_INIT;

	assert_int_equal(ledger->ops->batch_begin(ledger, durable, &err), 0);
}

static void what_fails_in_a_batch_leaves_the_rest_of_it(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_attempt first, second;
	struct err err = ERR_INIT;
	int64_t last = 0;

	fixture_accept(&stage->fixture, &first);
	begin_batch(stage, true);
	assert_int_equal(fixture_append(&stage->fixture, &first, "prepared", "preparing", &err), 0);
	first.generation = 2;
	assert_int_equal(fixture_append(&stage->fixture, &first, "late", NULL, &err), ERR_FENCED);
	first.generation = 1;
	fixture_accept(&stage->fixture, &second);
	assert_int_equal(fixture_intent(&stage->fixture, &second, &err), 0);
	assert_int_equal(fixture_intent(&stage->fixture, &second, &err), ERR_CONFLICT);
	assert_int_equal(fixture_seal(&stage->fixture, &second, "hello\n", &err), 0);
	assert_int_equal(ledger->ops->batch_end(ledger, &err), 0);
	assert_true(state_of(stage, second.run_id).sealed);
	assert_string_equal(state_of(stage, first.run_id).latest.state, "preparing");
	assert_int_equal(ledger->ops->records(ledger, first.attempt_id, count_records, &last, &err), 0);
	assert_int_equal(last, 2);
}

static int refuse(void *context, const struct ledger_seal_numbers *numbers, struct ledger_seal_built *ret, struct err *err)
{
	(void)context;
	(void)numbers;
	(void)ret;
	return err_set(err, ERR_NO_SPACE, "no receipt today");
}

/* It fails when all but the receipt is written. */
static void what_fails_late_in_a_batch_leaves_nothing(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	const struct ledger_record record = {.at_ms = 1, .kind = "cleaned", .body = "{}"};
	struct ledger_seal seal = {.records = &record, .record_count = 1, .build = refuse};
	struct ledger_attempt attempt, other;
	struct err err = ERR_INIT;
	int64_t last = 0;

	fixture_accept(&stage->fixture, &attempt);
	seal.attempt_id = attempt.attempt_id;
	seal.owner_id = attempt.owner_id;
	seal.generation = 1;
	begin_batch(stage, true);
	fixture_accept(&stage->fixture, &other);
	assert_int_equal(ledger->ops->seal(ledger, &seal, &err), ERR_NO_SPACE);
	assert_int_equal(ledger->ops->batch_end(ledger, &err), 0);
	assert_string_equal(state_of(stage, attempt.run_id).latest.state, "queued");
	assert_string_equal(state_of(stage, other.run_id).latest.state, "queued");
	assert_int_equal(ledger->ops->records(ledger, attempt.attempt_id, count_records, &last, &err), 0);
	assert_int_equal(last, 1);
}

static void a_batch_that_fails_leaves_nothing_and_its_owner_begins_anew(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_attempt attempt;
	struct rlimit before, none;
	struct err err = ERR_INIT;

	begin_batch(stage, true);
	fixture_accept(&stage->fixture, &attempt); /* the first of this owner: its row comes with it */
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_true(ledger->ops->batch_end(ledger, &err) < 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	fixture_accept(&stage->fixture, &attempt);
	assert_int_equal(attempt.slot, 0);
	fixture_run(&stage->fixture, &attempt);
}

static void a_batch_is_durable_or_not_from_the_beginning(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;

	begin_batch(stage, false);
	fixture_accept(&stage->fixture, &attempt);
	assert_int_equal(fixture_intent(&stage->fixture, &attempt, &err), ERR_STATE);
	assert_int_equal(ledger->ops->batch_begin(ledger, true, &err), ERR_STATE);
	assert_int_equal(ledger->ops->batch_end(ledger, &err), 0);
	assert_int_equal(ledger->ops->batch_end(ledger, &err), ERR_STATE);
	assert_int_equal(fixture_intent(&stage->fixture, &attempt, &err), 0);
}

static void note_run(void *context, const char *run_id)
{
	snprintf(context, ID_SIZE, "%s", run_id);
}

static void whoever_watches_hears_which_run_is_written_about(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	char touched[ID_SIZE] = "", run_id[ID_SIZE];
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	bool sealed;

	ledger->ops->watch(ledger, note_run, touched);
	fixture_submit(&stage->fixture, NULL, run_id);
	assert_string_equal(touched, run_id);
#define TOUCHES(call) do { touched[0] = '\0'; call; assert_string_equal(touched, run_id); } while (0)
	TOUCHES(fixture_claim(&stage->fixture, run_id, &attempt));
	TOUCHES(fixture_append(&stage->fixture, &attempt, "prepared", "preparing", &err));
	TOUCHES(fixture_abandon(&stage->fixture, &attempt, &err));
	TOUCHES(fixture_claim(&stage->fixture, run_id, &attempt));
	TOUCHES(ledger->ops->request_cancel(ledger, run_id, &sealed, &err));
	TOUCHES(fixture_seal(&stage->fixture, &attempt, "", &err));
#undef TOUCHES
	ledger->ops->watch(ledger, NULL, NULL);
}

int contract_queue(const struct store_case *store)
{
	const struct CMUnitTest tests[] = {
		STAGE_CASE(a_submitted_run_waits_without_an_attempt),
		STAGE_CASE(a_submission_is_repeated_under_its_key),
		STAGE_CASE(a_submission_that_cannot_be_is_refused),
		STAGE_CASE(the_queue_is_bounded_but_not_for_a_repetition),
		STAGE_CASE(the_queue_is_in_order_of_arrival),
		STAGE_CASE(a_queued_run_is_claimed_once),
		STAGE_CASE(an_abandoned_attempt_frees_its_slot_and_is_over),
		STAGE_CASE(the_third_attempt_is_the_last),
		STAGE_CASE(what_was_launched_or_is_attached_is_not_abandoned),
		STAGE_CASE(a_lease_expires_for_whoever_saw_it_unchanged),
		STAGE_CASE(the_list_goes_on_behind_a_row_and_knows_whose_a_run_is),
	};
	const struct CMUnitTest of_batches[] = {
		STAGE_CASE(what_fails_in_a_batch_leaves_the_rest_of_it),
		STAGE_CASE(what_fails_late_in_a_batch_leaves_nothing),
		STAGE_CASE(a_batch_that_fails_leaves_nothing_and_its_owner_begins_anew),
		STAGE_CASE(a_batch_is_durable_or_not_from_the_beginning),
		STAGE_CASE(whoever_watches_hears_which_run_is_written_about),
	};
	int failed = cmocka_run_group_tests_name(store->name, tests, NULL, NULL);

	return failed + (store->batches ? cmocka_run_group_tests_name(store->name, of_batches, NULL, NULL) : 0);
}
