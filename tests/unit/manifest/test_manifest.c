/* test_manifest.c - what a manifest may say, and that everything else is refused with its place named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "manifest/manifest.h"

#define VERSION "\"version\":\"caisson.manifest/v1\""
#define COMMAND "\"command\":{\"argv\":[\"x\"]}"
#define DOC(members) "{" VERSION "," COMMAND "," members "}"
#define DIGEST "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static struct manifest *parse(const char *text)
{
	struct manifest *manifest = NULL;
	struct err err = ERR_INIT;

	if (manifest_parse(text, strlen(text), &manifest, &err) != 0)
		fail_msg("%s: %s", text, err.text);
	return manifest;
}

static void assert_refused(const char *text, size_t length, const char *error)
{
	struct manifest *manifest = NULL;
	struct err err = ERR_INIT;

	if (manifest_parse(text, length, &manifest, &err) != ERR_INVALID)
		fail_msg("accepted, or another code: %.200s (%s)", text, err.text);
	assert_null(manifest);
	assert_int_equal(err.code, ERR_INVALID);
	if (strncmp(err.text, error, strlen(error)) != 0)
		fail_msg("%.200s:\n  got \"%s\"\n  not \"%s\"", text, err.text, error);
}

struct refusal {
	const char *text;
	const char *error; /* the error's text begins so */
};

static void assert_all_refused(const struct refusal *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_refused(cases[i].text, strlen(cases[i].text), cases[i].error);
}

#define ASSERT_ALL_REFUSED(cases) assert_all_refused(cases, sizeof(cases) / sizeof(cases)[0])

static void what_is_not_given_has_its_default(void **state)
{
	(void)state;
	MANIFEST_AUTO struct manifest *m = parse("{" VERSION ",\"command\":{\"argv\":[\"/bin/true\"]}}");

	assert_string_equal(m->profile, "linux");
	assert_int_equal(m->argc, 1);
	assert_string_equal(m->argv[0], "/bin/true");
	assert_null(m->argv[1]);
	assert_string_equal(m->cwd, "/box");
	assert_string_equal(m->rootfs, "host");
	assert_null(m->image);
	assert_int_equal(m->env_count + m->input_count + m->require_count + m->label_count + m->outputs.required_count, 0);
	assert_int_equal(m->standard_input.kind, INPUT_NONE);
	assert_false(m->outputs.given);
	assert_int_equal(m->outputs.max_files, -1);
	assert_int_equal(m->limits.wall_ms, -1);
	assert_int_equal(m->limits.cpus_centi, -1);
	assert_int_equal(cpu_list_count(&m->limits.pin), 0);
	assert_int_equal(m->limits.memory_bytes, -1);
	assert_int_equal(m->limits.on_limit_grace_ms, -1);
	assert_int_equal(m->limits.on_overflow, OVERFLOW_KILL);
	assert_int_equal(m->limits.scratch, SCRATCH_MEMORY);
	assert_int_equal(m->retained_output, RETAINED_FAIL);
	assert_int_equal(m->network, NETWORK_NONE);
	assert_int_equal(m->cancel_grace_ms, -1);
}

static const char whole[] =
	"{" VERSION ",\"profile\":\"linux\",\"command\":{\"argv\":[\"/usr/bin/python3\",\"main.py\",\"\"],\"cwd\":\"/box/a\","
	"\"env\":{\"TZ\":\"UTC\",\"A\":\"\",\"PATH\":\"/bin\"}},\"rootfs\":\"/srv/root\",\"image\":null,\"inputs\":["
	"{\"source\":\"../main.py\",\"target\":\"/box/main.py\",\"mode\":\"0444\"},"
	"{\"digest\":\"" DIGEST "\",\"target\":\"/box/a.out\",\"mode\":\"0555\"},"
	"{\"text\":\"1 2\\n\",\"target\":\"/box/small.txt\"}],\"stdin\":{\"text\":\"\"},"
	"\"outputs\":{\"required\":[\"result.json\",\"a/b\"],\"max_files\":1,\"max_file_bytes\":2,\"max_bytes\":3},"
	"\"limits\":{\"wall_ms\":1,\"cpu_ms\":2,\"cpus\":\"0.5\",\"pin\":\"3,1\",\"memory_bytes\":4194304,\"pids\":32768,\"open_files\":8,"
	"\"stack_bytes\":65536,\"stdout_bytes\":0,\"stderr_bytes\":1073741824,\"on_overflow\":\"truncate\",\"work_bytes\":4096,"
	"\"work_inodes\":16,\"scratch\":\"disk\",\"on_limit_grace_ms\":60000},\"retained_output\":\"ignore\","
	"\"network\":{\"mode\":\"allowlist\"},\"require\":[\"landlock>=1\",\"seccomp\"],\"cancel\":{\"grace_ms\":0},"
	"\"labels\":{\"problem\":\"42\",\"a\":\"\"}}";

static void every_field_is_read(void **state)
{
	(void)state;
	MANIFEST_AUTO struct manifest *m = parse(whole);
	const struct manifest_limits *limits = &m->limits;

	assert_int_equal(m->argc, 3);
	assert_string_equal(m->argv[2], "");
	assert_string_equal(m->cwd, "/box/a");
	assert_int_equal(m->env_count, 3);
	assert_string_equal(m->env[0].key, "A");
	assert_string_equal(m->env[1].key, "PATH");
	assert_string_equal(m->env[2].value, "UTC");
	assert_string_equal(m->rootfs, "/srv/root");
	assert_int_equal(m->outputs.required_count, 2);
	assert_string_equal(m->outputs.required[1], "a/b");
	assert_int_equal(m->outputs.max_files, 1);
	assert_int_equal(m->outputs.max_file_bytes, 2);
	assert_int_equal(m->outputs.max_bytes, 3);
	assert_int_equal(limits->wall_ms, 1);
	assert_int_equal(limits->cpu_ms, 2);
	assert_int_equal(limits->cpus_centi, 50);
	assert_int_equal(limits->pin.words[0], 1 << 3 | 1 << 1);
	assert_int_equal(limits->memory_bytes, 4194304);
	assert_int_equal(limits->pids, 32768);
	assert_int_equal(limits->open_files, 8);
	assert_int_equal(limits->stack_bytes, 65536);
	assert_int_equal(limits->stdout_bytes, 0);
	assert_int_equal(limits->stderr_bytes, 1 << 30);
	assert_int_equal(limits->work_bytes, 4096);
	assert_int_equal(limits->work_inodes, 16);
	assert_int_equal(limits->on_limit_grace_ms, 60000);
	assert_int_equal(limits->on_overflow, OVERFLOW_TRUNCATE);
	assert_int_equal(limits->scratch, SCRATCH_DISK);
	assert_int_equal(m->retained_output, RETAINED_IGNORE);
	assert_int_equal(m->network, NETWORK_ALLOWLIST);
	assert_string_equal(m->require[0], "landlock>=1");
	assert_int_equal(m->cancel_grace_ms, 0);
	assert_string_equal(m->labels[0].key, "a");
	assert_string_equal(m->labels[1].value, "42");
}

static void inputs_come_from_three_places(void **state)
{
	(void)state;
	MANIFEST_AUTO struct manifest *m = parse(whole);
	struct digest digest;

	digest_of("abc", 3, &digest);
	assert_int_equal(m->input_count, 3);
	assert_int_equal(m->inputs[0].kind, INPUT_SOURCE);
	assert_string_equal(m->inputs[0].source, "../main.py");
	assert_int_equal(m->inputs[0].mode, 0444);
	assert_int_equal(m->inputs[1].kind, INPUT_DIGEST);
	assert_true(digest_equal(&m->inputs[1].digest, &digest));
	assert_int_equal(m->inputs[1].mode, 0555);
	assert_int_equal(m->inputs[2].kind, INPUT_TEXT);
	assert_string_equal(m->inputs[2].text, "1 2\n");
	assert_int_equal(m->inputs[2].text_length, 4);
	assert_int_equal(m->inputs[2].mode, 0444);
	assert_string_equal(m->inputs[2].target, "/box/small.txt");
	assert_int_equal(m->standard_input.kind, INPUT_TEXT);
	assert_int_equal(m->standard_input.text_length, 0);
}

static void spelling_and_order_do_not_change_the_digest(void **state)
{
	(void)state;
	static const char canonical[] = "{\"command\":{\"argv\":[\"x\",\"\xc3\xa9\"]},\"limits\":{\"pids\":7,\"wall_ms\":5}," VERSION "}";
	MANIFEST_AUTO struct manifest *a = parse(canonical);
	MANIFEST_AUTO struct manifest *b = parse(" {\n\"limits\" : {\"wall_ms\":5, \"pids\":7},\t" VERSION
	                                         ",\r\n\"command\":{\"argv\":[ \"\\u0078\" , \"\\u00e9\" ]} } ");
	MANIFEST_AUTO struct manifest *c = parse("{\"command\":{\"argv\":[\"x\",\"\xc3\xa9\"]},\"limits\":{\"pids\":8,\"wall_ms\":5}," VERSION "}");
	struct digest digest;

	assert_string_equal(a->canonical, canonical);
	assert_int_equal(a->canonical_length, strlen(canonical));
	digest_of(canonical, strlen(canonical), &digest);
	assert_true(digest_equal(&a->digest, &digest));
	assert_string_equal(b->canonical, canonical);
	assert_true(digest_equal(&a->digest, &b->digest));
	assert_false(digest_equal(&a->digest, &c->digest));
}

static void the_canonical_form_keeps_what_was_given_and_adds_nothing(void **state)
{
	(void)state;
	MANIFEST_AUTO struct manifest *m = parse(DOC("\"image\":null,\"labels\":{}"));

	assert_string_equal(m->canonical, "{" COMMAND ",\"image\":null,\"labels\":{}," VERSION "}");
}

static void the_template_is_a_manifest_with_the_defaults(void **state)
{
	(void)state;
	MANIFEST_AUTO struct manifest *m = parse(manifest_template());

	assert_string_equal(m->profile, "linux");
	assert_int_equal(m->limits.wall_ms, 10000);
	assert_int_equal(m->limits.memory_bytes, 268435456);
	assert_int_equal(m->limits.on_limit_grace_ms, 0);
	assert_int_equal(m->cancel_grace_ms, 2000);
}

static void a_broken_document_names_line_and_column(void **state)
{
	(void)state;
#define BYTES(text) text, sizeof(text) - 1
	assert_refused(BYTES(""), "line 1, column 0: ");
	assert_refused(BYTES("\xef\xbb\xbf" DOC("\"labels\":{}")), "line 1, column 1: ");
	assert_refused(BYTES(DOC("\"labels\":{}") "x"), "line 1, column 71: end of file expected");
	assert_refused(BYTES(DOC("\"labels\":{}") "\0"), "line 1, column 71: end of file expected");
	assert_refused(BYTES("{" VERSION ",\n\n  " VERSION "," COMMAND "}"), "line 3, column 11: duplicate object key");
	assert_refused(BYTES(DOC("\"limits\":{\"pids\":1,\"pids\":2}")), "line 1, column 83: duplicate object key");
	assert_refused(BYTES("{" VERSION ",\"command\":{\"argv\":[\"\xff\"]}}"), "line 1, column 53: invalid UTF-8: unable to decode byte 0xff");
	assert_refused(BYTES("{" VERSION ",\"command\":{\"argv\":[\"a\\u0000b\"]}}"), "line 1, column ");
	assert_refused(BYTES("{" VERSION ",\"command\":{\"argv\":[\"a\0b\"]}}"), "line 1, column ");
	assert_refused(BYTES(DOC("\"limits\":{\"wall_ms\":9223372036854775808}")), "line 1, column 97: too big integer");
	assert_refused(BYTES(DOC("\"limits\":{\"wall_ms\":1e999}")), "line 1, column 83: real number overflow");
	assert_refused(BYTES(DOC("\"limits\":{\"wall_ms\":NaN}")), "line 1, column ");
#undef BYTES
}

static void a_deep_document_is_refused(void **state)
{
	(void)state;
	enum { DEPTH = 20000 };
	static char text[2 * DEPTH + 1];

	memset(text, '[', DEPTH);
	memset(text + DEPTH, ']', DEPTH);
	assert_refused(text, 2 * DEPTH, "line 1, column 2049: maximum parsing depth reached");
	/* As deep as the parser goes, where a string should stand. */
	enum { PARSED = 2000 };
	BUF_AUTO struct buf deep = BUF_INIT(100000);
	buf_puts(&deep, "{" VERSION ",\"command\":{\"argv\":[", NULL);
	for (int i = 0; i < PARSED; i++)
		buf_puts(&deep, "[", NULL);
	for (int i = 0; i < PARSED; i++)
		buf_puts(&deep, "]", NULL);
	buf_puts(&deep, "]}}", NULL);
	assert_refused(deep.data, deep.len, "$.command.argv[0]: must be a string");
}

static void the_frame_of_the_document_is_fixed(void **state)
{
	(void)state;
	static const struct refusal cases[] = {
		{"[]", "$: must be an object"},
		{"{}", "$.version: is required"},
		{"{\"version\":1}", "$.version: must be \"caisson.manifest/v1\""},
		{"{\"version\":\"caisson.manifest/v2\"," COMMAND "}", "$.version: must be \"caisson.manifest/v1\""},
		{"{" VERSION "}", "$.command: is required"},
		{"{" VERSION ",\"command\":[]}", "$.command: must be an object"},
		{DOC("\"limit\":{}"), "$.limit: unknown field"},
		{DOC("\"profile\":\"lin\""), "$.profile: must be \"linux\", \"docker\", \"recording\" or \"jobobject\""},
		{DOC("\"profile\":null"), "$.profile: must be \"linux\""},
		{DOC("\"rootfs\":\"relative\""), "$.rootfs: must be \"host\" or an absolute path"},
		{DOC("\"rootfs\":null"), "$.rootfs: must be a string"},
		{DOC("\"image\":\"debian\""), "$.image: must be null unless the profile is \"docker\""},
		{DOC("\"profile\":\"docker\",\"image\":\"\""), "$.image: must not be empty"},
		{DOC("\"profile\":\"docker\",\"image\":7"), "$.image: must be a string"},
		{DOC("\"retained_output\":\"keep\""), "$.retained_output: must be \"fail\" or \"ignore\""},
		{DOC("\"network\":\"none\""), "$.network: must be an object"},
		{DOC("\"network\":{\"mode\":\"host\"}"), "$.network.mode: must be \"none\" or \"allowlist\""},
		{DOC("\"network\":{\"mode\":\"none\",\"hosts\":[]}"), "$.network.hosts: unknown field"},
		{DOC("\"cancel\":{\"grace_ms\":-1}"), "$.cancel.grace_ms: must be an integer from 0 to 60000"},
		{DOC("\"cancel\":{\"grace_ms\":60001}"), "$.cancel.grace_ms: must be an integer from 0 to 60000"},
		{DOC("\"cancel\":{\"grace\":1}"), "$.cancel.grace: unknown field"},
		{DOC("\"cancel\":2000"), "$.cancel: must be an object"},
		{DOC("\"labels\":[]"), "$.labels: must be an object of at most 32 strings"},
		{DOC("\"labels\":{\"a\":1}"), "$.labels.a: must be a string"},
		{DOC("\"labels\":{\"\":\"x\"}"), "$.labels[\"\"]: must not be empty"},
		{DOC("\"require\":\"landlock\""), "$.require: must be an array of 0 to 32 strings"},
		{DOC("\"require\":[\"Landlock\"]"), "$.require[0]: must be NAME or NAME>=N"},
		{DOC("\"require\":[\"a\",\"landlock>1\"]"), "$.require[1]: must be NAME or NAME>=N"},
		{DOC("\"require\":[\"landlock>=\"]"), "$.require[0]: must be NAME or NAME>=N"},
		{DOC("\"require\":[\"landlock>=0\"]"), "$.require[0]: must be NAME or NAME>=N"},
		{DOC("\"require\":[\"landlock>=1x\"]"), "$.require[0]: must be NAME or NAME>=N"},
		{DOC("\"require\":[\"\"]"), "$.require[0]: must be NAME or NAME>=N"},
	};

	ASSERT_ALL_REFUSED(cases);
}

static void a_command_must_be_one_that_can_be_executed(void **state)
{
	(void)state;
#define WITH(command) "{" VERSION ",\"command\":{" command "}}"
	static const struct refusal cases[] = {
		{WITH(""), "$.command.argv: is required"},
		{WITH("\"argv\":[]"), "$.command.argv: must be an array of 1 to 4096 strings"},
		{WITH("\"argv\":\"true\""), "$.command.argv: must be an array of 1 to 4096 strings"},
		{WITH("\"argv\":[\"\"]"), "$.command.argv[0]: must not be empty"},
		{WITH("\"argv\":[\"a\",1]"), "$.command.argv[1]: must be a string"},
		{WITH("\"argv\":[\"a\"],\"shell\":true"), "$.command.shell: unknown field"},
		{WITH("\"argv\":[\"a\"],\"cwd\":\"\""), "$.command.cwd: must be an absolute path"},
		{WITH("\"argv\":[\"a\"],\"cwd\":\"box\""), "$.command.cwd: must be an absolute path"},
		{WITH("\"argv\":[\"a\"],\"cwd\":\"/box/\""), "$.command.cwd: must not have an empty component or a trailing slash"},
		{WITH("\"argv\":[\"a\"],\"cwd\":\"//box\""), "$.command.cwd: must not have an empty component"},
		{WITH("\"argv\":[\"a\"],\"cwd\":\"/box/../etc\""), "$.command.cwd: must not have a component \".\" or \"..\""},
		{WITH("\"argv\":[\"a\"],\"cwd\":\"/proc/self/fd/7\""), "$.command.cwd: must not be in /proc"},
		{WITH("\"argv\":[\"a\"],\"cwd\":\"/proc\""), "$.command.cwd: must not be in /proc"},
		{WITH("\"argv\":[\"a\"],\"env\":[]"), "$.command.env: must be an object of at most 512 strings"},
		{WITH("\"argv\":[\"a\"],\"env\":{\"A\":1}"), "$.command.env.A: must be a string"},
		{WITH("\"argv\":[\"a\"],\"env\":{\"A\":null}"), "$.command.env.A: must be a string"},
		{WITH("\"argv\":[\"a\"],\"env\":{\"1A\":\"\"}"), "$.command.env.1A: must have a name of letters, digits and _"},
		{WITH("\"argv\":[\"a\"],\"env\":{\"A=B\":\"\"}"), "$.command.env[\"A=B\"]: must have a name of letters, digits and _"},
		{WITH("\"argv\":[\"a\"],\"env\":{\"\":\"\"}"), "$.command.env[\"\"]: must have a name of letters, digits and _"},
	};
#undef WITH

	ASSERT_ALL_REFUSED(cases);
	manifest_free(parse("{" VERSION ",\"command\":{\"argv\":[\"a\"],\"cwd\":\"/\"}}"));
	manifest_free(parse("{" VERSION ",\"command\":{\"argv\":[\"a\"],\"cwd\":\"/process\"}}"));
}

static void every_limit_has_its_range(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t min, max;
	} limits[] = {
		{"wall_ms", 1, 86400000},
		{"cpu_ms", 1, INT64_C(86400000) * 9999},
		{"memory_bytes", 4194304, INT64_MAX},
		{"pids", 1, 32768},
		{"open_files", 8, INT64_MAX},
		{"stdout_bytes", 0, 1073741824},
		{"stderr_bytes", 0, 1073741824},
		{"work_bytes", 4096, INT64_C(1) << 40},
		{"work_inodes", 16, 1 << 24},
		{"on_limit_grace_ms", 0, 60000},
	};
	static const char *const never[] = {"-1", "1.5", "10.0", "1e4", "\"10\"", "null", "true", "[10]", "-9223372036854775808"};
	char text[256], error[128];

	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		int64_t inside[] = {limits[i].min, limits[i].max};
		for (size_t j = 0; j < 2; j++) {
			snprintf(text, sizeof text, DOC("\"limits\":{\"%s\":%lld}"), limits[i].name, (long long)inside[j]);
			manifest_free(parse(text));
		}
		snprintf(error, sizeof error, "$.limits.%s: must be an integer from %lld to %lld", limits[i].name, (long long)limits[i].min,
		         (long long)limits[i].max);
		snprintf(text, sizeof text, DOC("\"limits\":{\"%s\":%lld}"), limits[i].name, (long long)limits[i].min - 1);
		assert_refused(text, strlen(text), error);
		if (limits[i].max < INT64_MAX) {
			snprintf(text, sizeof text, DOC("\"limits\":{\"%s\":%lld}"), limits[i].name, (long long)limits[i].max + 1);
			assert_refused(text, strlen(text), error);
		}
		for (size_t j = 0; j < sizeof never / sizeof never[0]; j++) {
			snprintf(text, sizeof text, DOC("\"limits\":{\"%s\":%s}"), limits[i].name, never[j]);
			assert_refused(text, strlen(text), error);
		}
	}
}

static void limits_that_depend_on_each_other(void **state)
{
	(void)state;
	static const struct refusal cases[] = {
		{DOC("\"limits\":{\"walls_ms\":1}"), "$.limits.walls_ms: unknown field"},
		{DOC("\"limits\":[]"), "$.limits: must be an object"},
		{DOC("\"limits\":null"), "$.limits: must be an object"},
		{DOC("\"limits\":{\"stack_bytes\":65535}"), "$.limits.stack_bytes: must be an integer from 65536 to "},
		{DOC("\"limits\":{\"stack_bytes\":268435457}"), "$.limits.stack_bytes: must be at most the memory limit, 268435456"},
		{DOC("\"limits\":{\"stack_bytes\":4194305,\"memory_bytes\":4194304}"),
	         "$.limits.stack_bytes: must be at most the memory limit, 4194304"},
		{DOC("\"profile\":\"docker\",\"limits\":{\"memory_bytes\":6291455}"),
	         "$.limits.memory_bytes: must be at least 6291456 with profile \"docker\""},
		{DOC("\"limits\":{\"on_overflow\":\"drop\"}"), "$.limits.on_overflow: must be \"kill\" or \"truncate\""},
		{DOC("\"limits\":{\"scratch\":\"tmpfs\"}"), "$.limits.scratch: must be \"memory\" or \"disk\""},
	};

	ASSERT_ALL_REFUSED(cases);
	manifest_free(parse(DOC("\"limits\":{\"stack_bytes\":4194304,\"memory_bytes\":4194304}")));
	manifest_free(parse(DOC("\"profile\":\"docker\",\"image\":\"debian@sha256:x\",\"limits\":{\"memory_bytes\":6291456}")));
}

static void cpus_are_hundredths_in_a_string(void **state)
{
	(void)state;
	static const struct {
		const char *cpus;
		int64_t centi;
	} good[] = {{"1", 100}, {"2", 200}, {"0.5", 50}, {"0.50", 50}, {"0.01", 1}, {"1.25", 125}, {"10.1", 1010}, {"9999.99", 999999}};
	static const char *const wrong[] = {"\"\"", "\"0\"", "\"0.0\"", "\"0.00\"", "\"0.001\"", "\".5\"", "\"1.\"", "\"01\"", "\"1,5\"", "\"-1\"",
	                                    "\"+1\"", "\" 1\"", "\"1 \"", "\"1e1\"", "\"10000\"", "\"0x1\"", "\"all\"", "\"1.2.3\""};
	char text[128];

	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		snprintf(text, sizeof text, DOC("\"limits\":{\"cpus\":\"%s\"}"), good[i].cpus);
		MANIFEST_AUTO struct manifest *m = parse(text);
		assert_int_equal(m->limits.cpus_centi, good[i].centi);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		snprintf(text, sizeof text, DOC("\"limits\":{\"cpus\":%s}"), wrong[i]);
		assert_refused(text, strlen(text), "$.limits.cpus: must be a string such as \"2\" or \"0.5\"");
	}
	assert_refused(DOC("\"limits\":{\"cpus\":2}"), strlen(DOC("\"limits\":{\"cpus\":2}")), "$.limits.cpus: must be a string");
}

static void a_pin_is_a_list_of_cpus(void **state)
{
	(void)state;
	static const char *const wrong[] = {"\"\"", "\"all\"", "\"1-0\"", "\"0,\"", "\"1024\"", "0", "[0]"};
	MANIFEST_AUTO struct manifest *none = parse(DOC("\"limits\":{\"pin\":null}"));
	char text[128];

	assert_int_equal(cpu_list_count(&none->limits.pin), 0);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		snprintf(text, sizeof text, DOC("\"limits\":{\"pin\":%s}"), wrong[i]);
		assert_refused(text, strlen(text), "$.limits.pin: must be a ");
	}
}

static void an_input_says_once_where_its_bytes_are_and_where_they_go(void **state)
{
	(void)state;
#define WITH(input) DOC("\"inputs\":[{" input "}]")
	static const struct refusal cases[] = {
		{DOC("\"inputs\":{}"), "$.inputs: must be an array of at most 1024 inputs"},
		{DOC("\"inputs\":[\"a\"]"), "$.inputs[0]: must be an object"},
		{WITH("\"target\":\"/box/a\""), "$.inputs[0]: must have exactly one of \"source\", \"digest\" and \"text\""},
		{WITH("\"target\":\"/box/a\",\"text\":\"\",\"source\":\"a\""), "$.inputs[0]: must have exactly one of "},
		{WITH("\"target\":\"/box/a\",\"bytes\":\"\""), "$.inputs[0].bytes: unknown field"},
		{WITH("\"text\":\"\""), "$.inputs[0].target: is required"},
		{WITH("\"target\":\"/box/a\",\"text\":null"), "$.inputs[0].text: must be a string"},
		{WITH("\"target\":\"/box/a\",\"source\":\"\""), "$.inputs[0].source: must not be empty"},
		{WITH("\"target\":\"/box/a\",\"digest\":\"sha256:12\""), "$.inputs[0].digest: must be \"sha256:\" and 64 lower-case hex digits"},
		{WITH("\"target\":\"/box/a\",\"text\":\"\",\"mode\":\"0777\""), "$.inputs[0].mode: must be \"0444\" or \"0555\""},
		{WITH("\"target\":\"/box/a\",\"text\":\"\",\"mode\":444"), "$.inputs[0].mode: must be \"0444\" or \"0555\""},
		{WITH("\"target\":\"a\",\"text\":\"\""), "$.inputs[0].target: must be an absolute path"},
		{WITH("\"target\":\"\",\"text\":\"\""), "$.inputs[0].target: must be an absolute path"},
		{WITH("\"target\":\"/\",\"text\":\"\""), "$.inputs[0].target: must be a path below /box"},
		{WITH("\"target\":\"/box\",\"text\":\"\""), "$.inputs[0].target: must be a path below /box"},
		{WITH("\"target\":\"/boxes/a\",\"text\":\"\""), "$.inputs[0].target: must be a path below /box"},
		{WITH("\"target\":\"/tmp/a\",\"text\":\"\""), "$.inputs[0].target: must be a path below /box"},
		{WITH("\"target\":\"/box/a/\",\"text\":\"\""), "$.inputs[0].target: must not have an empty component or a trailing slash"},
		{WITH("\"target\":\"/box//a\",\"text\":\"\""), "$.inputs[0].target: must not have an empty component"},
		{WITH("\"target\":\"/box/./a\",\"text\":\"\""), "$.inputs[0].target: must not have a component \".\" or \"..\""},
		{WITH("\"target\":\"/box/../etc/passwd\",\"text\":\"\""), "$.inputs[0].target: must not have a component \".\" or \"..\""},
		{WITH("\"target\":\"/box/..\",\"text\":\"\""), "$.inputs[0].target: must not have a component \".\" or \"..\""},
		{DOC("\"stdin\":{}"), "$.stdin: must have exactly one of "},
		{DOC("\"stdin\":null"), "$.stdin: must be an object"},
		{DOC("\"stdin\":{\"text\":\"\",\"target\":\"/box/a\"}"), "$.stdin.target: unknown field"},
	};
#undef WITH

	ASSERT_ALL_REFUSED(cases);
	manifest_free(parse(DOC("\"inputs\":[{\"text\":\"\",\"target\":\"/box/..a/...\"}]")));
}

static void targets_must_not_be_in_each_others_way(void **state)
{
	(void)state;
#define AT(target) "{\"text\":\"\",\"target\":\"/box/" target "\"}"
	static const struct refusal cases[] = {
		{DOC("\"inputs\":[" AT("a") "," AT("a") "]"), "$.inputs["},
		{DOC("\"inputs\":[" AT("a/b") "," AT("c") "," AT("a") "]"), "$.inputs[0].target: is the target of $.inputs[2], or below it"},
		{DOC("\"inputs\":[" AT("a") "," AT("a-b") "," AT("a.b") "," AT("a!") "," AT("a/b/c") "]"),
	         "$.inputs[4].target: is the target of $.inputs[0], or below it"},
		{DOC("\"inputs\":[" AT("a/b") "," AT("a/b/c/d/e") "," AT("a/b!") "]"),
	         "$.inputs[1].target: is the target of $.inputs[0], or below it"},
	};

	ASSERT_ALL_REFUSED(cases);
	MANIFEST_AUTO struct manifest *m =
		parse(DOC("\"inputs\":[" AT("b/c") "," AT("b/d") "," AT("a") "," AT("ab") "," AT("a-b/c") "," AT("b!") "]"));
	assert_int_equal(m->input_count, 6);
	assert_string_equal(m->inputs[0].target, "/box/b/c");
#undef AT
}

static void output_names_stay_below_out(void **state)
{
	(void)state;
	static const struct refusal cases[] = {
		{DOC("\"outputs\":[]"), "$.outputs: must be an object"},
		{DOC("\"outputs\":{\"require\":[]}"), "$.outputs.require: unknown field"},
		{DOC("\"outputs\":{\"required\":{}}"), "$.outputs.required: must be an array of 0 to 1024 strings"},
		{DOC("\"outputs\":{\"required\":[\"\"]}"), "$.outputs.required[0]: must not have an empty component"},
		{DOC("\"outputs\":{\"required\":[\"/etc/shadow\"]}"), "$.outputs.required[0]: must be relative to /out"},
		{DOC("\"outputs\":{\"required\":[\"a\",\"../b\"]}"), "$.outputs.required[1]: must not have a component \".\" or \"..\""},
		{DOC("\"outputs\":{\"required\":[\"a/\"]}"), "$.outputs.required[0]: must not have an empty component or a trailing slash"},
		{DOC("\"outputs\":{\"required\":[\"a//b\"]}"), "$.outputs.required[0]: must not have an empty component"},
		{DOC("\"outputs\":{\"max_files\":-1}"), "$.outputs.max_files: must be an integer from 0 to "},
		{DOC("\"outputs\":{\"max_file_bytes\":1.5}"), "$.outputs.max_file_bytes: must be an integer from 0 to "},
		{DOC("\"outputs\":{\"max_bytes\":\"1\"}"), "$.outputs.max_bytes: must be an integer from 0 to "},
	};

	ASSERT_ALL_REFUSED(cases);
}

static void counts_have_their_bounds(void **state)
{
	(void)state;
	/* The n-th item is `before`, n, `after`. */
	static const struct {
		const char *prefix, *before, *after, *suffix, *error;
		int most;
	} cases[] = {
		{"{" VERSION ",\"command\":{\"argv\":[", "\"", "\"", "]}}", "$.command.argv: must be an array of 1 to 4096 strings", 4096},
		{"{" VERSION ",\"command\":{\"argv\":[\"x\"],\"env\":{", "\"A", "\":\"\"", "}}}",
	         "$.command.env: must be an object of at most 512 strings", 512},
		{"{" VERSION "," COMMAND ",\"labels\":{", "\"", "\":\"\"", "}}", "$.labels: must be an object of at most 32 strings", 32},
		{"{" VERSION "," COMMAND ",\"require\":[", "\"", "\"", "]}", "$.require: must be an array of 0 to 32 strings", 32},
		{"{" VERSION "," COMMAND ",\"inputs\":[", "{\"text\":\"\",\"target\":\"/box/", "\"}", "]}",
	         "$.inputs: must be an array of at most 1024 inputs", 1024},
		{"{" VERSION "," COMMAND ",\"outputs\":{\"required\":[", "\"", "\"", "]}}", "$.outputs.required: must be an array of 0 to 1024", 1024},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		for (int over = 0; over < 2; over++) {
			BUF_AUTO struct buf text = BUF_INIT(1 << 20);
			buf_puts(&text, cases[i].prefix, NULL);
			for (int n = 0; n < cases[i].most + over; n++)
				buf_printf(&text, NULL, "%s%s%d%s", n ? "," : "", cases[i].before, n, cases[i].after);
			buf_puts(&text, cases[i].suffix, NULL);
			if (over)
				assert_refused(text.data, text.len, cases[i].error);
			else
				manifest_free(parse(text.data));
		}
	}
}

static void sizes_have_their_bounds(void **state)
{
	(void)state;
	static char letters[MANIFEST_MAX_BYTES + 2];
	BUF_AUTO struct buf fits = BUF_INIT(1 << 20), over = BUF_INIT(1 << 20), name = BUF_INIT(1 << 20), path = BUF_INIT(1 << 20);

	memset(letters, 'x', sizeof letters - 1);
	/* "x" and "A=" take 2 and 3 bytes of the command's 131072. */
	buf_printf(&fits, NULL, "{" VERSION ",\"command\":{\"argv\":[\"x\"],\"env\":{\"A\":\"%.*s\"}}}", MANIFEST_MAX_COMMAND_BYTES - 5, letters);
	manifest_free(parse(fits.data));
	buf_printf(&over, NULL, "{" VERSION ",\"command\":{\"argv\":[\"x\"],\"env\":{\"A\":\"%.*s\"}}}", MANIFEST_MAX_COMMAND_BYTES - 4, letters);
	assert_refused(over.data, over.len, "$.command: argv and env must be at most 131072 bytes together");
	buf_printf(&name, NULL, DOC("\"inputs\":[{\"text\":\"\",\"target\":\"/box/%.*s\"}]"), 256, letters);
	assert_refused(name.data, name.len, "$.inputs[0].target: must not have a component of more than 255 bytes");
	buf_puts(&path, DOC("\"outputs\":{\"required\":[\""), NULL);
	path.len--; /* DOC's brace */
	for (int i = 0; i < 2048; i++)
		buf_puts(&path, "a/", NULL);
	buf_puts(&path, "a\"]}}", NULL);
	assert_refused(path.data, path.len, "$.outputs.required[0]: must be at most 4095 bytes");
	assert_refused(letters, MANIFEST_MAX_BYTES + 1, "must be at most 4194304 bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_given_has_its_default),
		cmocka_unit_test(every_field_is_read),
		cmocka_unit_test(inputs_come_from_three_places),
		cmocka_unit_test(spelling_and_order_do_not_change_the_digest),
		cmocka_unit_test(the_canonical_form_keeps_what_was_given_and_adds_nothing),
		cmocka_unit_test(the_template_is_a_manifest_with_the_defaults),
		cmocka_unit_test(a_broken_document_names_line_and_column),
		cmocka_unit_test(a_deep_document_is_refused),
		cmocka_unit_test(the_frame_of_the_document_is_fixed),
		cmocka_unit_test(a_command_must_be_one_that_can_be_executed),
		cmocka_unit_test(every_limit_has_its_range),
		cmocka_unit_test(limits_that_depend_on_each_other),
		cmocka_unit_test(cpus_are_hundredths_in_a_string),
		cmocka_unit_test(a_pin_is_a_list_of_cpus),
		cmocka_unit_test(an_input_says_once_where_its_bytes_are_and_where_they_go),
		cmocka_unit_test(targets_must_not_be_in_each_others_way),
		cmocka_unit_test(output_names_stay_below_out),
		cmocka_unit_test(counts_have_their_bounds),
		cmocka_unit_test(sizes_have_their_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
