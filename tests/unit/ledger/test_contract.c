/* test_contract.c - what ledger.h promises, asked of every store through its vtable alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/json.h"
#include "ledger/shared.h"
#include "stage.h"

static void an_accepted_run_has_a_slot_a_lease_and_its_first_record(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt first, second;

	fixture_accept(&stage->fixture, &first);
	fixture_accept(&stage->fixture, &second);
	assert_int_equal(first.slot, 0);
	assert_int_equal(second.slot, 1);
	assert_int_equal(first.generation, 1);
}

static void the_lowest_free_slot_is_given(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempts[3], next;
	struct err err = ERR_INIT;

	for (int i = 0; i < 3; i++)
		fixture_accept(&stage->fixture, &attempts[i]);
	assert_int_equal(fixture_seal(&stage->fixture, &attempts[1], "", &err), 0);
	fixture_accept(&stage->fixture, &next);
	assert_int_equal(next.slot, 1);
}

static void a_quarantined_slot_stays_taken(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt quarantined, next;
	struct err err = ERR_INIT;

	fixture_accept(&stage->fixture, &quarantined);
	assert_int_equal(fixture_append(&stage->fixture, &quarantined, "quarantined", "quarantined", &err), 0);
	fixture_accept(&stage->fixture, &next);
	assert_int_equal(next.slot, 1);
}

static void a_run_is_accepted_once(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;

	fixture_accept(&stage->fixture, &attempt);
	assert_int_equal(fixture_try_accept(&stage->fixture, &attempt, true, &err), ERR_CONFLICT);
}

static void another_owner_than_the_registered_one_accepts_nothing(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;

	fixture_new_attempt(&stage->fixture, &attempt);
	id_new("own", attempt.owner_id);
	assert_int_equal(fixture_try_accept(&stage->fixture, &attempt, false, &err), ERR_STATE);
}

static void records_are_numbered_from_one(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	int64_t last = 0;

	fixture_accept(&stage->fixture, &attempt);
	assert_int_equal(fixture_append(&stage->fixture, &attempt, "prepared", "preparing", &err), 0);
	assert_int_equal(fixture_append(&stage->fixture, &attempt, "enrolled", NULL, &err), 0);
	assert_int_equal(ledger_of(state)->ops->records(ledger_of(state), attempt.attempt_id, count_records, &last, &err), 0);
	assert_int_equal(last, 3);
}

static void an_old_generation_is_fenced(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;

	fixture_accept(&stage->fixture, &attempt);
	attempt.generation = 2;
	assert_int_equal(fixture_append(&stage->fixture, &attempt, "prepared", NULL, &err), ERR_FENCED);
	assert_int_equal(fixture_intent(&stage->fixture, &attempt, &err), ERR_FENCED);
	assert_int_equal(fixture_seal(&stage->fixture, &attempt, "", &err), ERR_FENCED);
	assert_int_equal(ledger_of(state)->ops->renew(ledger_of(state), attempt.attempt_id, attempt.owner_id, 2, &err), ERR_FENCED);
}

static void an_unknown_attempt_is_not_found(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;

	fixture_new_attempt(&stage->fixture, &attempt);
	attempt.generation = 1;
	assert_int_equal(fixture_append(&stage->fixture, &attempt, "prepared", NULL, &err), ERR_NOT_FOUND);
}

static void a_run_has_one_launch_intent(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;

	fixture_accept(&stage->fixture, &attempt);
	assert_int_equal(fixture_intent(&stage->fixture, &attempt, &err), 0);
	assert_int_equal(fixture_intent(&stage->fixture, &attempt, &err), ERR_CONFLICT);
}

static void a_cancelled_run_is_not_launched(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	bool sealed = true, cancelled = false;

	fixture_accept(&stage->fixture, &attempt);
	assert_int_equal(ledger->ops->cancel_requested(ledger, attempt.run_id, &cancelled, &err), 0);
	assert_false(cancelled);
	for (int i = 0; i < 2; i++) { /* idempotent */
		assert_int_equal(ledger->ops->request_cancel(ledger, attempt.run_id, &sealed, &err), 0);
		assert_false(sealed);
		assert_int_equal(ledger->ops->cancel_requested(ledger, attempt.run_id, &cancelled, &err), 0);
		assert_true(cancelled);
	}
	assert_int_equal(fixture_intent(&stage->fixture, &attempt, &err), ERR_STATE);
}

static void a_cancellation_after_the_seal_changes_nothing_and_says_so(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	bool sealed = false, cancelled = true;

	fixture_run(&stage->fixture, &attempt);
	assert_int_equal(ledger->ops->request_cancel(ledger, attempt.run_id, &sealed, &err), 0);
	assert_true(sealed);
	assert_int_equal(ledger->ops->cancel_requested(ledger, attempt.run_id, &cancelled, &err), 0);
	assert_false(cancelled);
	assert_int_equal(ledger->ops->request_cancel(ledger, "run-aaaaaaaaaaaaaaaa", &sealed, &err), ERR_NOT_FOUND);
}

static void nothing_is_added_behind_a_seal(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;

	fixture_run(&stage->fixture, &attempt);
	assert_int_equal(fixture_append(&stage->fixture, &attempt, "late", NULL, &err), ERR_STATE);
	assert_int_equal(fixture_seal(&stage->fixture, &attempt, "again", &err), ERR_STATE);
}

static int refuse(void *context, const struct ledger_seal_numbers *numbers, struct ledger_seal_built *ret, struct err *err)
{
	(void)context;
	(void)numbers;
	(void)ret;
	return err_set(err, ERR_NO_SPACE, "no receipt today");
}

static int take_first(void *context, const struct ledger_attempt *attempt)
{
	*(struct ledger_attempt *)context = *attempt;
	return 0;
}

static void a_seal_whose_receipt_fails_leaves_nothing(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	const struct ledger_record record = {.at_ms = 1, .kind = "cleaned", .body = "{}"};
	const struct ledger_stream stream = {.name = "stdout", .drained = true, .data = ""};
	struct ledger_seal seal = {.records = &record, .record_count = 1, .streams = &stream, .stream_count = 1, .build = refuse};
	struct ledger_attempt attempt, seen = {.state = ""};
	struct err err = ERR_INIT;
	char *receipt = NULL;
	int64_t last = 0;

	fixture_accept(&stage->fixture, &attempt);
	seal.attempt_id = attempt.attempt_id;
	seal.owner_id = attempt.owner_id;
	seal.generation = 1;
	assert_int_equal(ledger->ops->seal(ledger, &seal, &err), ERR_NO_SPACE);
	assert_int_equal(ledger->ops->unsealed(ledger, take_first, &seen, &err), 0);
	assert_string_equal(seen.state, "queued");
	assert_int_equal(ledger->ops->receipt(ledger, attempt.run_id, &receipt, &err), 0);
	assert_null(receipt);
	assert_int_equal(ledger->ops->records(ledger, attempt.attempt_id, count_records, &last, &err), 0);
	assert_int_equal(last, 1);
	assert_int_equal(fixture_seal(&stage->fixture, &attempt, "now\n", &err), 0);
}

static void a_seal_that_has_not_heard_of_a_cancellation_is_refused(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_attempt attempt;
	struct ledger_seal seal = {.build = refuse, .generation = 1};
	struct err err = ERR_INIT;
	bool sealed = true;

	fixture_accept(&stage->fixture, &attempt);
	seal.attempt_id = attempt.attempt_id;
	seal.owner_id = attempt.owner_id;
	assert_int_equal(ledger->ops->request_cancel(ledger, attempt.run_id, &sealed, &err), 0);
	assert_int_equal(ledger->ops->seal(ledger, &seal, &err), ERR_CONFLICT);
	seal.cancel_heard = true;
	assert_int_equal(ledger->ops->seal(ledger, &seal, &err), ERR_NO_SPACE); /* as far as the receipt */
}

static void seals_of_a_key_form_one_chain(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	char previous[DIGEST_TEXT_SIZE] = "";

	for (int i = 1; i <= 3; i++) {
		struct ledger_attempt attempt;
		struct err err = ERR_INIT;
		struct digest digest;
		char *text = NULL;

		fixture_run(&stage->fixture, &attempt);
		assert_int_equal(ledger->ops->receipt(ledger, attempt.run_id, &text, &err), 0);
		JSON_AUTO json_t *receipt = json_loads(text, 0, NULL);
		assert_int_equal(json_integer_value(json_object_get(receipt, "seal_seq")), i);
		if (i > 1)
			assert_string_equal(json_string_value(json_object_get(receipt, "previous_seal")), previous);
		digest_of(text, strlen(text), &digest);
		digest_text(&digest, previous);
		free(text);
	}
}

static void a_lease_is_taken_over_when_its_owner_is_dead(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	const char *owner_id = stage->fixture.owner.owner_id;
	struct other_keeper other;
	struct ledger_attempt seen = {.state = ""};
	struct err err = ERR_INIT;
	int64_t generation = 0;

	start_other_keeper(stage, &other);
	assert_int_equal(ledger->ops->unsealed(ledger, take_first, &seen, &err), 0);
	assert_true(seen.owner_alive);
	assert_int_equal(ledger->ops->take_over(ledger, other.attempt.attempt_id, owner_id, &generation, &err), ERR_BUSY);
	end_other_keeper(&other);
	assert_int_equal(ledger->ops->unsealed(ledger, take_first, &seen, &err), 0);
	assert_false(seen.owner_alive);
	assert_int_equal(ledger->ops->take_over(ledger, other.attempt.attempt_id, owner_id, &generation, &err), 0);
	assert_int_equal(generation, 2);
	/* By now it is ours, and we live. */
	assert_int_equal(ledger->ops->take_over(ledger, other.attempt.attempt_id, owner_id, &generation, &err), ERR_BUSY);
	other.attempt.generation = 2;
	assert_int_equal(fixture_append(&stage->fixture, &other.attempt, "recovering", "recovering", &err), 0);
	assert_int_equal(fixture_seal(&stage->fixture, &other.attempt, "", &err), 0);
}

static void a_run_is_found_by_id_prefix_and_latest(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_attempt first, second;
	struct err err = ERR_INIT;
	char found[ID_SIZE], prefix[ID_SIZE];

	assert_int_equal(ledger->ops->find_run(ledger, "latest", found, &err), ERR_NOT_FOUND);
	fixture_accept(&stage->fixture, &first);
	fixture_accept(&stage->fixture, &second);
	assert_int_equal(ledger->ops->find_run(ledger, first.run_id, found, &err), 0);
	assert_string_equal(found, first.run_id);
	snprintf(prefix, sizeof prefix, "%.9s", first.run_id);
	assert_int_equal(ledger->ops->find_run(ledger, prefix, found, &err), 0);
	assert_string_equal(found, first.run_id);
	assert_int_equal(ledger->ops->find_run(ledger, "latest", found, &err), 0);
	assert_string_equal(found, second.run_id);
	assert_int_equal(ledger->ops->find_run(ledger, "run-a", found, &err), ERR_INVALID);
	assert_int_equal(ledger->ops->find_run(ledger, "run-%'\"--", found, &err), ERR_INVALID);
	assert_int_equal(ledger->ops->find_run(ledger, "run-aaaaaaaaaaaaaaaa", found, &err), ERR_NOT_FOUND);
}

static int check_list_row(void *context, const struct ledger_list_row *row)
{
	int *count = context;

	assert_string_equal(row->argv0, "/bin/echo hello");
	assert_string_equal(row->verdict, *count == 0 ? "" : "succeeded"); /* the newest first */
	(*count)++;
	return 0;
}

static void the_list_shows_what_the_receipt_says(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	const struct ledger_list_query query = {.limit = 10};
	struct err err = ERR_INIT;
	int count = 0;

	fixture_run(&stage->fixture, &attempt);
	fixture_accept(&stage->fixture, &attempt);
	assert_int_equal(ledger_of(state)->ops->list(ledger_of(state), &query, check_list_row, &count, &err), 0);
	assert_int_equal(count, 2);
}

static void streams_come_back_byte_for_byte(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_attempt attempt;
	struct ledger_stream stream;
	struct err err = ERR_INIT;
	bool in_store = true;
	void *data = NULL;

	fixture_run(&stage->fixture, &attempt);
	assert_int_equal(ledger->ops->stream(ledger, attempt.run_id, "stdout", &stream, &data, &in_store, &err), 0);
	assert_false(in_store);
	assert_int_equal(stream.kept_bytes, 6);
	assert_memory_equal(data, "hello\n", 6);
	free(data);
	assert_int_equal(ledger->ops->stream(ledger, attempt.run_id, "stderr", &stream, &data, &in_store, &err), 0);
	assert_false(in_store); /* empty, and here all the same */
	free(data);
	assert_int_equal(ledger->ops->stream(ledger, attempt.run_id, "stdlog", &stream, &data, &in_store, &err), ERR_NOT_FOUND);
}

static int check_artifact(void *context, const struct ledger_artifact *artifact)
{
	static const char *const paths[] = {"a\xff", "dir/b\n"};
	int *count = context;

	assert_string_equal(artifact->path, paths[*count]);
	assert_int_equal(artifact->mode, *count == 0 ? 0755 : 0644);
	assert_int_equal(artifact->size_bytes, *count == 0 ? 0 : 6);
	(*count)++;
	return 0;
}

static int check_reference(void *context, const struct ledger_reference *reference)
{
	assert_string_equal(reference->kind, "artifact"); /* streams that are rows need no object */
	assert_true(strcmp(reference->name, "a\xff") == 0 || strcmp(reference->name, "dir/b\n") == 0);
	(*(int *)context)++;
	return 0;
}

static void artifacts_come_back_in_order_and_are_references(void **state)
{
	struct stage *stage = *state;
	struct ledger *ledger = ledger_of(state);
	struct ledger_attempt first, second;
	struct err err = ERR_INIT;
	int count = 0;

	fixture_run(&stage->fixture, &first);
	fixture_run(&stage->fixture, &second);
	assert_int_equal(ledger->ops->artifacts(ledger, second.run_id, check_artifact, &count, &err), 0);
	assert_int_equal(count, 2);
	count = 0;
	assert_int_equal(ledger->ops->references(ledger, check_reference, &count, &err), 0);
	assert_int_equal(count, 4);
	count = 0;
	assert_int_equal(ledger->ops->artifacts(ledger, "run-aaaaaaaaaaaaaaaa", check_artifact, &count, &err), 0);
	assert_int_equal(count, 0);
}

static void what_was_accepted_outlives_the_process(void **state)
{
	struct stage *stage = *state;
	struct other_keeper other;
	struct err err = ERR_INIT;
	char *manifest = NULL, *plan = NULL;

	start_other_keeper(stage, &other);
	end_other_keeper(&other);
	assert_int_equal(ledger_of(state)->ops->manifest(ledger_of(state), other.attempt.run_id, &manifest, &plan, &err), 0);
	assert_non_null(strstr(manifest, "/bin/echo"));
	assert_non_null(strstr(plan, "caisson.plan/v1"));
	free(manifest);
	free(plan);
}

static void make_shared(struct ledger_fixture *fixture)
{
	fixture_make(fixture);
	fixture_share(fixture, true, NULL, NULL);
}

static void open_shared(struct ledger_fixture *fixture, const char *path, bool read_only)
{
	fixture_open(fixture, path, read_only);
	fixture_share(fixture, true, NULL, NULL);
}

static const struct store_case stores[] = {
	{"sqlite", fixture_make, fixture_open, true},
	{"shared", make_shared, open_shared, false},
};

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		STAGE_CASE(an_accepted_run_has_a_slot_a_lease_and_its_first_record),
		STAGE_CASE(the_lowest_free_slot_is_given),
		STAGE_CASE(a_quarantined_slot_stays_taken),
		STAGE_CASE(a_run_is_accepted_once),
		STAGE_CASE(another_owner_than_the_registered_one_accepts_nothing),
		STAGE_CASE(records_are_numbered_from_one),
		STAGE_CASE(an_old_generation_is_fenced),
		STAGE_CASE(an_unknown_attempt_is_not_found),
		STAGE_CASE(a_run_has_one_launch_intent),
		STAGE_CASE(a_cancelled_run_is_not_launched),
		STAGE_CASE(a_cancellation_after_the_seal_changes_nothing_and_says_so),
		STAGE_CASE(nothing_is_added_behind_a_seal),
		STAGE_CASE(a_seal_whose_receipt_fails_leaves_nothing),
		STAGE_CASE(a_seal_that_has_not_heard_of_a_cancellation_is_refused),
		STAGE_CASE(seals_of_a_key_form_one_chain),
		STAGE_CASE(a_lease_is_taken_over_when_its_owner_is_dead),
		STAGE_CASE(a_run_is_found_by_id_prefix_and_latest),
		STAGE_CASE(the_list_shows_what_the_receipt_says),
		STAGE_CASE(streams_come_back_byte_for_byte),
		STAGE_CASE(artifacts_come_back_in_order_and_are_references),
		STAGE_CASE(what_was_accepted_outlives_the_process),
	};
	int failed = 0;

	for (size_t i = 0; argc == 3 && i < sizeof stores / sizeof stores[0]; i++)
		if (strcmp(argv[1], stores[i].name) == 0)
			return be_other_keeper(&stores[i], argv[2]);
	for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
		stage_use(&stores[i]);
		failed += cmocka_run_group_tests_name(stores[i].name, tests, NULL, NULL);
		failed += contract_queue(&stores[i]);
	}
	return failed;
}
