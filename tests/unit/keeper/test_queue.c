/* test_queue.c - who is next: order within an owner, turns between owners, and the limit of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "keeper/queue.h"

static int setup(void **state)
{
	struct err err = ERR_INIT;
	return queue_new(2, (struct queue **)state, &err);
}

static int teardown(void **state)
{
	queue_free(*state);
	return 0;
}

static int add(struct queue *queue, const char *run, const char *owner, const char *profile)
{
	struct err err = ERR_INIT;
	struct queue_entry entry = {.position = (int64_t)queue_length(queue) + 1};
	snprintf(entry.run_id, sizeof(entry.run_id), "%s", run);
	snprintf(entry.principal, sizeof(entry.principal), "%s", owner);
	snprintf(entry.profile, sizeof(entry.profile), "%s", profile);
	return queue_add(queue, &entry, &err);
}

/* context: the one profile that is not taken, or NULL. */
static enum queue_choice choose(void *context, const struct queue_entry *entry)
{
	return context && strcmp(context, entry->profile) == 0 ? QUEUE_SKIP : QUEUE_TAKE;
}

static void next_is(struct queue *queue, const char *skip, const char *run)
{
	struct queue_entry entry;
	char without[QUEUE_PROFILE_SIZE] = "";
	snprintf(without, sizeof(without), "%s", skip ? skip : "");
	bool found = queue_next(queue, choose, skip ? without : NULL, &entry);
	assert_int_equal(found, run != NULL);
	if (run)
		assert_string_equal(entry.run_id, run);
}

static void owners_take_turns_whoever_came_first(void **state)
{
	struct queue *queue = *state;
	add(queue, "a1", "uid:1", "linux");
	add(queue, "a2", "uid:1", "linux");
	add(queue, "a3", "uid:1", "linux");
	add(queue, "b1", "uid:2", "linux");
	next_is(queue, NULL, "a1");
	next_is(queue, NULL, "b1");
	next_is(queue, NULL, "a2");
	assert_int_equal(queue_length(queue), 1);
}

static void an_owner_has_so_many_under_way_and_no_more(void **state)
{
	struct queue *queue = *state;
	add(queue, "a1", "uid:1", "linux");
	add(queue, "a2", "uid:1", "linux");
	add(queue, "a3", "uid:1", "linux");
	next_is(queue, NULL, "a1");
	next_is(queue, NULL, "a2");
	next_is(queue, NULL, NULL);
	queue_finished(queue, "uid:1");
	next_is(queue, NULL, "a3");
	next_is(queue, NULL, NULL);
}

static void what_cannot_be_taken_does_not_hold_up_another_profile(void **state)
{
	struct queue *queue = *state;
	add(queue, "d1", "uid:1", "docker");
	add(queue, "d2", "uid:1", "docker");
	add(queue, "l1", "uid:1", "linux");
	next_is(queue, "docker", "l1");
	next_is(queue, "docker", NULL);
	next_is(queue, NULL, "d1");
}

static void what_is_removed_is_not_offered_and_not_under_way(void **state)
{
	struct queue *queue = *state;
	struct queue_entry entry;
	add(queue, "a1", "uid:1", "linux");
	add(queue, "a2", "uid:1", "linux");
	add(queue, "a3", "uid:1", "linux");
	assert_true(queue_remove(queue, "a3", &entry)); /* the last: what comes next goes behind a2 */
	add(queue, "a4", "uid:1", "linux");
	assert_true(queue_remove(queue, "a1", &entry));
	assert_false(queue_remove(queue, "a1", &entry));
	assert_null(queue_find(queue, "a1"));
	assert_non_null(queue_find(queue, "a4"));
	next_is(queue, NULL, "a2");
	next_is(queue, NULL, "a4");
	assert_int_equal(queue_length(queue), 0);
}

static void clearing_forgets_what_waits_and_keeps_the_count_of_the_rest(void **state)
{
	struct queue *queue = *state;
	add(queue, "a1", "uid:1", "linux");
	add(queue, "a2", "uid:1", "linux");
	next_is(queue, NULL, "a1");
	queue_clear(queue);
	assert_int_equal(queue_length(queue), 0);
	add(queue, "a3", "uid:1", "linux");
	add(queue, "a4", "uid:1", "linux");
	next_is(queue, NULL, "a3");
	next_is(queue, NULL, NULL); /* a1 and a3 are under way */
}

static void an_owner_who_has_nothing_here_makes_room(void **state)
{
	struct queue *queue = *state;
	char owner[QUEUE_PRINCIPAL_SIZE];
	for (int i = 0; i < QUEUE_OWNERS_MAX; i++) {
		snprintf(owner, sizeof(owner), "uid:%d", i);
		assert_int_equal(add(queue, "r", owner, "linux"), 0);
	}
	assert_int_equal(add(queue, "r", "uid:one-more", "linux"), ERR_LIMIT);
	next_is(queue, NULL, "r");
	assert_int_equal(add(queue, "r", "uid:one-more", "linux"), ERR_LIMIT); /* still under way */
	queue_finished(queue, "uid:0");
	assert_int_equal(add(queue, "r", "uid:one-more", "linux"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(owners_take_turns_whoever_came_first, setup, teardown),
		cmocka_unit_test_setup_teardown(an_owner_has_so_many_under_way_and_no_more, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_taken_does_not_hold_up_another_profile, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_removed_is_not_offered_and_not_under_way, setup, teardown),
		cmocka_unit_test_setup_teardown(clearing_forgets_what_waits_and_keeps_the_count_of_the_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(an_owner_who_has_nothing_here_makes_room, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
