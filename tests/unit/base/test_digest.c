/* test_digest.c - SHA-256 against the standard's examples, and a spelling that takes nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/digest.h"

#define ABC_HEX "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define EMPTY_HEX "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void digests_are_those_of_the_standard(void **state)
{
	(void)state;
	struct digest digest;
	char hex[DIGEST_HEX_SIZE], text[DIGEST_TEXT_SIZE];

	digest_of("abc", 3, &digest);
	assert_string_equal(digest_hex(&digest, hex), ABC_HEX);
	assert_string_equal(digest_text(&digest, text), "sha256:" ABC_HEX);
	digest_of(NULL, 0, &digest);
	assert_string_equal(digest_hex(&digest, hex), EMPTY_HEX);
}

static void a_stream_gives_the_digest_of_the_whole(void **state)
{
	(void)state;
	unsigned char bytes[1000];
	struct digest whole, streamed;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * 7);
	digest_of(bytes, sizeof bytes, &whole);
	for (size_t step = 1; step < 130; step += 9) {
		struct hasher *hasher = hasher_new();
		assert_non_null(hasher);
		for (size_t at = 0; at < sizeof bytes; at += step)
			hasher_add(hasher, bytes + at, step < sizeof bytes - at ? step : sizeof bytes - at);
		hasher_add(hasher, NULL, 0);
		hasher_finish(hasher, &streamed);
		hasher_free(hasher);
		assert_true(digest_equal(&whole, &streamed));
	}
	hasher_free(NULL);
}

static void one_changed_bit_is_another_digest(void **state)
{
	(void)state;
	struct digest a, b;

	digest_of("abc", 3, &a);
	b = a;
	assert_true(digest_equal(&a, &b));
	for (size_t i = 0; i < DIGEST_BYTES; i++) {
		b.bytes[i] ^= 1;
		assert_false(digest_equal(&a, &b));
		b.bytes[i] ^= 1;
	}
}

static void the_spelling_reads_back(void **state)
{
	(void)state;
	struct digest digest, read;

	digest_of("abc", 3, &digest);
	assert_int_equal(digest_parse("sha256:" ABC_HEX, &read, NULL), 0);
	assert_true(digest_equal(&digest, &read));
}

static void every_other_spelling_is_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"", "sha256:", ABC_HEX, "sha256:" ABC_HEX "0", "SHA256:" ABC_HEX, "sha512:" ABC_HEX, " sha256:" ABC_HEX,
		"sha256:BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a",
		"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ag",
		"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a ",
	};
	struct digest untouched = {.bytes = {42}};

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_int_equal(digest_parse(wrong[i], &untouched, NULL), ERR_INVALID);
	assert_int_equal(untouched.bytes[0], 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digests_are_those_of_the_standard),
		cmocka_unit_test(a_stream_gives_the_digest_of_the_whole),
		cmocka_unit_test(one_changed_bit_is_another_digest),
		cmocka_unit_test(the_spelling_reads_back),
		cmocka_unit_test(every_other_spelling_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
