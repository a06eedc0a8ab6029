/* test_options.c - command lines: what they say of the manifest, what is refused, and by which name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/options.h"
#include "manifest/manifest.h"

enum { WORDS_MAX = 16 };

struct line {
	const char *words[WORDS_MAX];
	struct options options;
	struct err err;
	int result;
};

static void parse(struct line *line, unsigned command)
{
	/* As main()'s argv: the words are not written to, only reordered. */
	line->result = options_parse(command, (char **)line->words, &line->options, &line->err);
}

#define PARSE(name, command, ...)                                                                                                  \
	struct line name = {.words = {__VA_ARGS__, NULL}, .err = ERR_INIT};                                                        \
	parse(&name, (command))

/* The manifest that a run's command line stands for. */
static void expect_document(struct line *line, const char *expected)
{
	BUF_AUTO struct buf text = BUF_INIT(MANIFEST_MAX_BYTES);

	assert_int_equal(line->result, 0);
	assert_int_equal(draft_set_command(&line->options.draft, line->options.operands, NULL), 0);
	assert_int_equal(draft_text(&line->options.draft, &text, NULL), 0);
	assert_string_equal(text.data, expected);
	options_done(&line->options);
}

static void expect_refused(struct line *line, const char *words)
{
	assert_true(line->result < 0);
	assert_non_null(strstr(line->err.text, words));
	options_done(&line->options);
}

static void limits_become_the_manifests(void **state)
{
	(void)state;
	PARSE(line, FOR_RUN, "--memory", "64M", "--wall=1.5s", "--cpu", "500ms", "--cpus", "0.5", "--pids=8", "--", "true",
	      "--wall");
	expect_document(&line, "{\"command\":{\"argv\":[\"true\",\"--wall\"]},\"limits\":{\"cpu_ms\":500,\"cpus\":\"0.5\",\"memory_"
	                       "bytes\":67108864,"
	                       "\"pids\":8,\"wall_ms\":1500},\"version\":\"caisson.manifest/v1\"}");
}

static void output_bounds_both_streams(void **state)
{
	(void)state;
	PARSE(line, FOR_RUN, "--output", "1K", "true");
	expect_document(&line, "{\"command\":{\"argv\":[\"true\"]},\"limits\":{\"stderr_bytes\":1024,\"stdout_bytes\":1024},"
	                       "\"version\":\"caisson.manifest/v1\"}");
}

static void pairs_and_words_keep_their_bytes(void **state)
{
	(void)state;
	PARSE(line, FOR_RUN, "--env", "A=b=c", "--env", "E=", "--label", "l=1", "--cwd", "/box/d", "--stdin", "-", "--require",
	      "landlock>=1", "x");
	expect_document(
		&line,
		"{\"command\":{\"argv\":[\"x\"],\"cwd\":\"/box/d\",\"env\":{\"A\":\"b=c\",\"E\":\"\"}},\"labels\":{\"l\":\"1\"},"
		"\"require\":[\"landlock>=1\"],\"stdin\":{\"source\":\"-\"},\"version\":\"caisson.manifest/v1\"}");
}

static void an_input_takes_its_mode_from_its_source(void **state)
{
	(void)state;
	PARSE(line, FOR_RUN, "--input", "/bin/sh:/box/sh", "--input", "/etc/passwd:/box/p", "x");
	expect_document(
		&line,
		"{\"command\":{\"argv\":[\"x\"]},\"inputs\":[{\"mode\":\"0555\",\"source\":\"/bin/sh\",\"target\":\"/box/sh\"},"
		"{\"mode\":\"0444\",\"source\":\"/etc/passwd\",\"target\":\"/box/p\"}],\"version\":\"caisson.manifest/v1\"}");
}

static void the_last_of_two_options_wins(void **state)
{
	(void)state;
	PARSE(line, FOR_RUN, "--wall", "1s", "--wall", "2s", "x");
	expect_document(&line,
	                "{\"command\":{\"argv\":[\"x\"]},\"limits\":{\"wall_ms\":2000},\"version\":\"caisson.manifest/v1\"}");
}

static void in_a_run_the_first_word_ends_the_options(void **state)
{
	(void)state;
	PARSE(line, FOR_RUN, "--quiet", "ls", "--json", "-l");
	assert_int_equal(line.result, 0);
	assert_int_equal(line.options.operand_count, 3);
	assert_true(line.options.quiet);
	assert_false(line.options.json);
}

static void elsewhere_options_and_operands_mix(void **state)
{
	(void)state;
	PARSE(line, FOR_SHOW, "latest", "--json", "--ledger", "/l", "--", "--odd");
	assert_int_equal(line.result, 0);
	assert_int_equal(line.options.operand_count, 2);
	assert_string_equal(line.options.operands[0], "latest");
	assert_string_equal(line.options.operands[1], "--odd");
	assert_null(line.options.operands[2]);
	assert_true(line.options.json);
	assert_string_equal(line.options.ledger, "/l");
}

static void unknown_options_are_errors(void **state)
{
	(void)state;
	PARSE(unknown, FOR_RUN, "--nosuch", "x");
	expect_refused(&unknown, "unknown option --nosuch");
	PARSE(abbreviated, FOR_RUN, "--mem", "64M", "x");
	expect_refused(&abbreviated, "unknown option --mem");
	PARSE(letter, FOR_RUN, "-m", "x");
	expect_refused(&letter, "unknown option -m");
	PARSE(elsewhere, FOR_LIST, "--wall", "1s");
	expect_refused(&elsewhere, "unknown option --wall");
}

static void bad_values_name_the_option(void **state)
{
	(void)state;
	PARSE(no_unit, FOR_RUN, "--wall", "2", "x");
	expect_refused(&no_unit, "--wall: \"2\" has no unit");
	PARSE(missing, FOR_RUN, "--memory");
	expect_refused(&missing, "--memory needs a value");
	PARSE(flag, FOR_RUN, "--json=yes", "x");
	expect_refused(&flag, "--json takes no value");
	PARSE(pair, FOR_RUN, "--env", "A", "x");
	expect_refused(&pair, "--env: \"A\" is not NAME=VALUE");
	PARSE(input, FOR_RUN, "--input", "file", "x");
	expect_refused(&input, "--input: \"file\" is not SRC:DEST");
	PARSE(absent, FOR_RUN, "--input", "/nosuch:/box/x", "x");
	expect_refused(&absent, "--input: /nosuch");
	PARSE(text, FOR_RUN, "--cwd", "/\xff", "x");
	expect_refused(&text, "--cwd: the text is not valid UTF-8");
}

static void errors_of_the_manifest_come_back_as_options(void **state)
{
	static const char *const cases[][2] = {
		{"$.limits.memory_bytes: must be an integer", "--memory: must be an integer"},
		{"limits.open_files: 65536 is too many", "--open-files: 65536 is too many"},
		{"$.inputs[1].target: must be below /box", "--input[1].target: must be below /box"},
		{"$.command.argv[0]: must not be empty", "the command: command.argv[0]: must not be empty"},
		{"something else", "something else"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = ERR_INIT;

		err_set(&err, ERR_INVALID, "%s", cases[i][0]);
		options_explain(&err);
		assert_string_equal(err.text, cases[i][1]);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

/* Every option that goes into the manifest names a place that the manifest has. */
static void every_option_is_a_field_of_the_manifest(void **state)
{
	static const char *const values[][2] = {
		{"memory", "64M"},
		{"wall", "1s"},
		{"cpu", "1s"},
		{"cpus", "1"},
		{"pin", "0-1"},
		{"pids", "8"},
		{"output", "1K"},
		{"on-overflow", "truncate"},
		{"work", "1M"},
		{"scratch", "disk"},
		{"stack", "1M"},
		{"open-files", "64"},
		{"grace", "1s"},
		{"stdin", "-"},
		{"input", "/etc/passwd:/box/p"},
		{"require-output", "result.json"},
		{"env", "A=1"},
		{"cwd", "/box"},
		{"rootfs", "/"},
		{"retained-output", "ignore"},
		{"require", "landlock>=1"},
		{"label", "a=1"},
		{"profile", "recording"},
	};
	size_t rows = 0;

	(void)state;
	for (const struct option_row *row = option_table; row->name; row++)
		rows += row->path != NULL;
	assert_int_equal(rows, sizeof(values) / sizeof(values[0]));
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char option[64] = "--";
		BUF_AUTO struct buf text = BUF_INIT(MANIFEST_MAX_BYTES);
		MANIFEST_AUTO struct manifest *manifest = NULL;
		struct err err = ERR_INIT;

		memcpy(option + 2, values[i][0], strlen(values[i][0]) + 1);
		PARSE(line, FOR_RUN, option, values[i][1], "x");
		assert_int_equal(line.result, 0);
		assert_int_equal(draft_set_command(&line.options.draft, line.options.operands, NULL), 0);
		assert_int_equal(draft_text(&line.options.draft, &text, NULL), 0);
		if (manifest_parse(text.data, text.len, &manifest, &err))
			fail_msg("--%s: %s", values[i][0], err.text);
		options_done(&line.options);
	}
}

static void a_submission_is_described_as_a_run_is(void **state)
{
	(void)state;
	PARSE(line, FOR_SUBMIT, "--key", "k1", "--wait", "--pids=8", "true", "--wait");
	assert_string_equal(line.options.key, "k1");
	assert_true(line.options.wait);
	expect_document(&line, "{\"command\":{\"argv\":[\"true\",\"--wait\"]},\"limits\":{\"pids\":8},\"version\":\"caisson.manifest/v1\"}");
}

static void short_f_follows_where_there_is_something_to_follow(void **state)
{
	(void)state;
	PARSE(logs, FOR_LOGS, "run-x", "-f");
	assert_int_equal(logs.result, 0);
	assert_true(logs.options.follow);
	PARSE(show, FOR_SHOW, "-f", "run-x");
	expect_refused(&show, "unknown option -f");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_become_the_manifests),
		cmocka_unit_test(a_submission_is_described_as_a_run_is),
		cmocka_unit_test(short_f_follows_where_there_is_something_to_follow),
		cmocka_unit_test(output_bounds_both_streams),
		cmocka_unit_test(pairs_and_words_keep_their_bytes),
		cmocka_unit_test(an_input_takes_its_mode_from_its_source),
		cmocka_unit_test(the_last_of_two_options_wins),
		cmocka_unit_test(in_a_run_the_first_word_ends_the_options),
		cmocka_unit_test(elsewhere_options_and_operands_mix),
		cmocka_unit_test(unknown_options_are_errors),
		cmocka_unit_test(bad_values_name_the_option),
		cmocka_unit_test(errors_of_the_manifest_come_back_as_options),
		cmocka_unit_test(every_option_is_a_field_of_the_manifest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
