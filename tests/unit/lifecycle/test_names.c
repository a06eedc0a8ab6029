/* test_names.c - every word is there, is unique in its table, and is spelled as the contract spells it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "lifecycle/verdict.h"

enum { WORDS_MAX = 32 };

static void assert_words(const char *const *words, size_t count)
{
	assert_true(count <= WORDS_MAX);
	for (size_t i = 0; i < count; i++) {
		assert_non_null(words[i]);
		assert_int_equal(strspn(words[i], "abcdefghijklmnopqrstuvwxyz_"), strlen(words[i]));
		assert_true(words[i][0] != '\0');
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(words[i], words[j]);
	}
}

static void every_word_is_there_and_unique(void **state)
{
	(void)state;
	const char *words[WORDS_MAX];

	for (int i = 0; i < LIFE_STATE_COUNT; i++)
		words[i] = life_state_name((enum life_state)i);
	assert_words(words, LIFE_STATE_COUNT);
	for (int i = 0; i < LIFE_EVENT_COUNT; i++)
		words[i] = life_event_name((enum life_event_kind)i);
	assert_words(words, LIFE_EVENT_COUNT);
	for (int i = 0; i < LIFE_ACTION_COUNT; i++)
		words[i] = life_action_name((enum life_action)i);
	assert_words(words, LIFE_ACTION_COUNT);
	for (int i = 0; i < STEP_COUNT; i++)
		words[i] = life_step_name((enum life_step)i);
	assert_words(words, STEP_COUNT);
	for (int i = 0; i < STOP_CAUSE_COUNT; i++)
		words[i] = stop_cause_name((enum stop_cause)i);
	assert_words(words, STOP_CAUSE_COUNT);
	for (int i = 0; i < VERDICT_COUNT; i++)
		words[i] = verdict_name((enum verdict_kind)i);
	assert_words(words, VERDICT_COUNT);
}

static void a_number_from_outside_names_nothing(void **state)
{
	(void)state;
	assert_string_equal(life_state_name(LIFE_STATE_COUNT), "?");
	assert_string_equal(life_event_name(LIFE_EVENT_COUNT), "?");
	assert_string_equal(life_action_name(LIFE_ACTION_COUNT), "?");
	assert_string_equal(life_step_name(STEP_COUNT), "?");
	assert_string_equal(stop_cause_name(STOP_CAUSE_COUNT), "?");
	assert_string_equal(verdict_name(VERDICT_COUNT), "?");
}

static void a_state_comes_back_from_its_name(void **state)
{
	(void)state;
	for (int i = 0; i < LIFE_STATE_COUNT; i++) {
		enum life_state parsed = LIFE_STATE_COUNT;
		assert_int_equal(life_state_parse(life_state_name((enum life_state)i), &parsed, NULL), 0);
		assert_int_equal(parsed, i);
	}
}

static void an_unknown_state_is_named_in_the_error(void **state)
{
	(void)state;
	enum life_state parsed = LIFE_ENROLLED;
	struct err err = ERR_INIT;

	assert_int_equal(life_state_parse("Running", &parsed, &err), ERR_INVALID);
	assert_non_null(strstr(err.text, "\"Running\""));
	assert_int_equal(parsed, LIFE_ENROLLED);
	assert_int_equal(life_state_parse("", &parsed, NULL), ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_word_is_there_and_unique),
		cmocka_unit_test(a_number_from_outside_names_nothing),
		cmocka_unit_test(a_state_comes_back_from_its_name),
		cmocka_unit_test(an_unknown_state_is_named_in_the_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
