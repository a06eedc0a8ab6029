/* test_record.c - the chain of records: what a digest covers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "evidence/record.h"

static const char attempt[] = "att-aaaaaaaaaaaaaaaa";

static struct digest digest_with(const char *attempt_id, int64_t seq, int64_t at_ms, const char *kind, const char *body,
                                 const char *previous)
{
	struct digest start, digest;
	struct err err = ERR_INIT;

	digest_of(previous, strlen(previous), &start);
	assert_int_equal(record_digest(attempt_id, seq, at_ms, kind, body, &start, &digest, &err), 0);
	return digest;
}

/* The text that is hashed is the documented one: anybody can recompute it. */
static void the_digest_is_that_of_the_canonical_json(void **state)
{
	static const char text[] =
		"{\"at\":17,\"attempt\":\"att-aaaaaaaaaaaaaaaa\",\"body\":{\"x\":1},\"kind\":\"launch_intent\","
		"\"prev_digest\":\"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\",\"seq\":3}";
	struct digest expected, digest = digest_with(attempt, 3, 17, "launch_intent", "{\"x\":1}", "abc");

	(void)state;
	digest_of(text, strlen(text), &expected);
	assert_true(digest_equal(&digest, &expected));
}

static void every_field_counts(void **state)
{
	const struct digest original = digest_with(attempt, 3, 17, "launch_intent", "{\"x\":1}", "abc");
	const struct digest others[] = {
		digest_with("att-aaaaaaaaaaaaaaab", 3, 17, "launch_intent", "{\"x\":1}", "abc"),
		digest_with(attempt, 4, 17, "launch_intent", "{\"x\":1}", "abc"),
		digest_with(attempt, 3, 18, "launch_intent", "{\"x\":1}", "abc"),
		digest_with(attempt, 3, 17, "launched", "{\"x\":1}", "abc"),
		digest_with(attempt, 3, 17, "launch_intent", "{\"x\":2}", "abc"),
		digest_with(attempt, 3, 17, "launch_intent", "{ \"x\":1}", "abc"), /* as it is stored, to the byte */
		digest_with(attempt, 3, 17, "launch_intent", "{\"x\":1}", "abd"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		assert_false(digest_equal(&original, &others[i]));
}

static void what_would_need_escaping_is_refused(void **state)
{
	struct digest previous = {.bytes = {0}}, digest;
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(record_digest(attempt, 1, 0, "a\",\"kind\":\"b", "{}", &previous, &digest, &err), ERR_INVALID);
	assert_int_equal(record_digest("att\"", 1, 0, "a", "{}", &previous, &digest, &err), ERR_INVALID);
	assert_int_equal(record_digest(attempt, 1, 0, "", "{}", &previous, &digest, &err), ERR_INVALID);
	assert_int_equal(record_digest(attempt, 1, 0, "a", "[]", &previous, &digest, &err), ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_digest_is_that_of_the_canonical_json),
		cmocka_unit_test(every_field_counts),
		cmocka_unit_test(what_would_need_escaping_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
