/* test_receipt.c - a receipt's text, whole, and what its signature covers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>

#include "base/fd.h"
#include "evidence/receipt.h"

/* The key of RFC 8032, section 7.1, test 1: a fixed key makes a fixed receipt. */
static const uint8_t key_file[64] = {
	0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
	0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
	0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
	0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a};

static int setup(void **state)
{
	char path[] = "/tmp/caisson-test-receipt-XXXXXX";
	struct key *key;
	struct err err = ERR_INIT;

	assert_non_null(mkdtemp(path));
	FD_AUTO int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FD_AUTO int fd = openat(dir, "key", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_all(fd, key_file, sizeof key_file), 0);
	assert_int_equal(key_open(dir, &key, &err), 0);
	unlinkat(dir, "key", 0);
	rmdir(path);
	*state = key;
	return 0;
}

static int teardown(void **state)
{
	key_free(*state);
	return 0;
}

static struct receipt example(void)
{
	struct receipt receipt = {.run_id = "run-aaaaaaaaaaaaaaaa",
	                          .attempt_id = "att-bbbbbbbbbbbbbbbb",
	                          .owner = "uid:0",
	                          .verdict = "signaled",
	                          .reason = "SIGKILL",
	                          .detail = "",
	                          .exit_code = -1,
	                          .signal = "SIGKILL",
	                          .wall_ms = 1000,
	                          .cpu_user_ms = 7,
	                          .cpu_system_ms = 0,
	                          .memory_peak_bytes = 4096,
	                          .memory_peak_anon_sampled_bytes = -1,
	                          .pids_peak = 1,
	                          .oom_kills = -1,
	                          .standard_output = {.bytes = 3, .kept_bytes = 2, .dropped_bytes = 1, .drained = true},
	                          .boundary_kind = "linux",
	                          .survivors_killed = -1,
	                          .verified_empty = true,
	                          .has_plan = true,
	                          .lease_generations = 1,
	                          .times = {.admitted_at = 1764448894123,
	                                    .launched_at = 1764448894125,
	                                    .exited_at = -1,
	                                    .sealed_at = 1764448895000,
	                                    .drain_ms = 0,
	                                    .cleanup_ms = -1},
	                          .ledger_id = "led-cccccccccccccccc",
	                          .seal_seq = 2};

	digest_of("out", 3, &receipt.standard_output.sha256);
	digest_of("", 0, &receipt.standard_error.sha256);
	return receipt;
}

#define ZERO "sha256:0000000000000000000000000000000000000000000000000000000000000000"

static const char golden[] =
	"{\"admission\":null,\"approval\":null,\"artifacts\":[],\"attempt\":\"att-bbbbbbbbbbbbbbbb\",\"boundary\":{\"evidence\":[],"
	"\"kind\":\"linux\",\"layers\":[],\"survivors_killed\":null,\"verified_empty\":true},\"detail\":\"\",\"exit_code\":null,"
	"\"key\":\"21fe31dfa154a261626bf854046fd2271b7bed4b6abe45aa58877ef47f9721b9\",\"last_record\":\"" ZERO "\","
	"\"lease_generations\":1,\"ledger\":\"led-cccccccccccccccc\",\"limits\":null,\"manifest\":\"" ZERO "\",\"owner\":\"uid:0\","
	"\"plan\":\"" ZERO "\",\"policy\":\"" ZERO "\",\"previous_seal\":\"" ZERO "\",\"reason\":\"SIGKILL\","
	"\"run\":\"run-aaaaaaaaaaaaaaaa\",\"seal_seq\":2,\"signal\":\"SIGKILL\",\"signature\":\"";

static const char golden_end[] =
	"\",\"space_full\":false,"
	"\"stderr\":{\"bytes\":0,\"drained\":false,\"dropped_bytes\":0,\"kept_bytes\":0,\"retained\":false,"
	"\"sha256\":\"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"},"
	"\"stdout\":{\"bytes\":3,\"drained\":true,\"dropped_bytes\":1,\"kept_bytes\":2,\"retained\":false,"
	"\"sha256\":\"sha256:762069bc07a6e1b5df123a5ae7bd91c10daa04694fbaa17fba0cd6a8dcce8f22\"},"
	"\"times\":{\"admitted_at\":\"2025-11-29T20:41:34.123Z\",\"cleanup_ms\":null,\"drain_ms\":0,\"exited_at\":null,"
	"\"launched_at\":\"2025-11-29T20:41:34.125Z\",\"sealed_at\":\"2025-11-29T20:41:35.000Z\"},"
	"\"usage\":{\"cpu_system_ms\":0,\"cpu_user_ms\":7,\"memory_peak_anon_sampled_bytes\":null,\"memory_peak_bytes\":4096,"
	"\"oom_kills\":null,\"pids_peak\":1,\"wall_ms\":1000},\"verdict\":\"signaled\",\"version\":\"caisson.receipt/v1\"}";

static char *seal_example(const struct key *key, struct digest *ret_digest)
{
	const struct receipt receipt = example();
	uint8_t signature[64];
	struct err err = ERR_INIT;
	char *text = NULL;

	if (receipt_seal(&receipt, key, &text, ret_digest, signature, &err) < 0)
		fail_msg("%s", err.text);
	return text;
}

/* All but the 128 digits of the signature is as written above. */
static void the_text_is_the_golden_one(void **state)
{
	struct digest digest, of_text;
	char *text = seal_example(*state, &digest);
	size_t start = strlen(golden);

	if (strncmp(text, golden, start) != 0 || strcmp(text + start + 128, golden_end) != 0)
		fail_msg("the receipt is\n%s\n", text);
	digest_of(text, strlen(text), &of_text);
	assert_true(digest_equal(&digest, &of_text));
	free(text);
}

static void the_signature_holds_for_this_key_alone(void **state)
{
	struct digest digest;
	char *text = seal_example(*state, &digest);
	uint8_t other[32] = {1};

	assert_int_equal(receipt_check(text, key_public(*state), NULL), 0);
	assert_int_equal(receipt_check(text, other, NULL), ERR_DAMAGED);
	free(text);
}

static void every_changed_byte_is_noticed(void **state)
{
	struct digest digest;
	char *text = seal_example(*state, &digest);

	for (size_t i = 0; text[i]; i++) {
		text[i] ^= 1;
		assert_int_equal(receipt_check(text, key_public(*state), NULL), ERR_DAMAGED);
		text[i] ^= 1;
	}
	free(text);
}

static void another_spelling_is_another_receipt(void **state)
{
	struct digest digest;
	char *text = seal_example(*state, &digest), spaced[8192];

	snprintf(spaced, sizeof spaced, "%s ", text);
	assert_int_equal(receipt_check(spaced, key_public(*state), NULL), ERR_DAMAGED);
	snprintf(spaced, sizeof spaced, "{ %s", text + 1);
	assert_int_equal(receipt_check(spaced, key_public(*state), NULL), ERR_DAMAGED);
	free(text);
}

static void exit_code_and_signal_never_come_together(void **state)
{
	struct receipt receipt = example();
	uint8_t signature[64];
	struct digest digest;
	char *text = NULL;

	receipt.exit_code = 137;
	assert_int_equal(receipt_seal(&receipt, *state, &text, &digest, signature, NULL), ERR_INTERNAL);
	assert_null(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_is_the_golden_one),
		cmocka_unit_test(the_signature_holds_for_this_key_alone),
		cmocka_unit_test(every_changed_byte_is_noticed),
		cmocka_unit_test(another_spelling_is_another_receipt),
		cmocka_unit_test(exit_code_and_signal_never_come_together),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
