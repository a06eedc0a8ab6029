/* test_plan.c - a plan says exactly what will be enforced, once, and reads back as it was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "manifest/plan.h"

#define DOC(members) "{\"version\":\"caisson.manifest/v1\",\"command\":{\"argv\":[\"x\"]}," members "}"

static const struct plan_host host = {.page_bytes = 4096, .cpus = 2, .cpu_list = {{1 << 0 | 1 << 5}}, .memory_bytes = INT64_C(8) << 30, .open_files_hard = 20000, .stack_hard = INT64_MAX,
	.processes_hard = INT64_MAX, .cpu_hard_ms = INT64_MAX, .memory_hard = INT64_MAX, .file_hard = INT64_MAX};

/* As many sealed inputs as the manifest has, of size 1, 2, 3, … */
static struct plan_sealed seal(const struct manifest *manifest, struct plan_input *inputs, size_t room)
{
	struct plan_sealed sealed = {.inputs = inputs, .input_count = manifest->input_count, .stdin_input = {.size_bytes = 77}};

	assert_true(manifest->input_count <= room);
	for (size_t i = 0; i < manifest->input_count; i++) {
		inputs[i] = (struct plan_input){.size_bytes = (int64_t)i + 1};
		digest_of(&i, sizeof i, &inputs[i].digest);
	}
	digest_of("stdin", 5, &sealed.stdin_input.digest);
	return sealed;
}

static int compile_on(const struct plan_host *where, const char *text, struct plan **ret, struct err *err)
{
	MANIFEST_AUTO struct manifest *manifest = NULL;
	struct plan_input inputs[8];
	struct digest policy;

	if (manifest_parse(text, strlen(text), &manifest, err) != 0)
		fail_msg("%s: %s", text, err->text);
	struct plan_sealed sealed = seal(manifest, inputs, 8);
	digest_of("policy", 6, &policy);
	return plan_compile(manifest, where, &sealed, &policy, ret, err);
}

static struct plan *compile(const char *text)
{
	struct plan *plan = NULL;
	struct err err = ERR_INIT;

	if (compile_on(&host, text, &plan, &err) != 0)
		fail_msg("%s: %s", text, err.text);
	return plan;
}

static void the_defaults_are_those_of_the_contract(void **state)
{
	(void)state;
	PLAN_AUTO struct plan *plan = compile(DOC("\"labels\":{}"));
	const struct plan_limits *limits = &plan->limits;

	assert_int_equal(limits->wall_ms, 10000);
	assert_int_equal(limits->cpu_ms, 20000);
	assert_int_equal(limits->cpus_centi, 0);
	assert_int_equal(limits->memory_bytes, 256 << 20);
	assert_int_equal(limits->pids, 64);
	assert_int_equal(limits->open_files, 256);
	assert_int_equal(limits->stack_bytes, 8 << 20);
	assert_int_equal(limits->stdout_bytes, 1 << 20);
	assert_int_equal(limits->stderr_bytes, 1 << 20);
	assert_int_equal(limits->on_overflow, OVERFLOW_KILL);
	assert_int_equal(limits->work_bytes, 64 << 20);
	assert_int_equal(limits->work_inodes, 4096);
	assert_int_equal(limits->out_bytes, 64 << 20);
	assert_int_equal(limits->out_inodes, 1024);
	assert_int_equal(limits->scratch, SCRATCH_MEMORY);
	assert_int_equal(limits->on_limit_grace_ms, 0);
	assert_int_equal(limits->cancel_grace_ms, 2000);
	assert_int_equal(limits->drain_ms, 100);
	assert_int_equal(limits->cleanup_ms, 15000);
	assert_int_equal(limits->artifact_files, 64);
	assert_int_equal(limits->artifact_file_bytes, 16 << 20);
	assert_int_equal(limits->artifact_bytes, 64 << 20);
	assert_int_equal(plan->unit.standard_input, ENDPOINT_CLOSED);
	assert_int_equal(plan->unit.standard_output, ENDPOINT_CAPTURE);
	assert_int_equal(plan->unit.standard_error, ENDPOINT_CAPTURE);
}

static void values_are_rounded_so_that_they_read_back_equal(void **state)
{
	(void)state;
	PLAN_AUTO struct plan *plan = compile(DOC("\"limits\":{\"memory_bytes\":4198399,\"work_bytes\":8191,\"wall_ms\":3,\"cpus\":\"0.5\"},"
	                                          "\"outputs\":{\"max_bytes\":1}"));

	assert_int_equal(plan->limits.memory_bytes, 4194304);
	assert_int_equal(plan->limits.work_bytes, 4096);
	assert_int_equal(plan->limits.out_bytes, 4096);
	assert_int_equal(plan->limits.artifact_bytes, 1);
	assert_int_equal(plan->limits.cpu_ms, 2); /* 1.5, up */
	/* The default stack would be more than the memory. */
	assert_int_equal(plan->limits.stack_bytes, 4194304);

	struct plan *large = NULL;
	struct plan_host large_pages = host;
	large_pages.page_bytes = 65536;
	assert_int_equal(compile_on(&large_pages, DOC("\"limits\":{\"work_bytes\":4096}"), &large, NULL), 0);
	assert_int_equal(large->limits.work_bytes, 65536);
	plan_free(large);
}

static void a_disk_is_rounded_to_what_its_file_system_can_be(void **state)
{
	(void)state;
	static const struct {
		const char *limits;
		int64_t bytes, inodes;
	} cases[] = {
		{"", INT64_C(64) << 20, 4096},
		{",\"work_bytes\":1048576", 1 << 20, 512},
		{",\"work_bytes\":3145727", 2 << 20, 1024},
		{",\"work_bytes\":1048576,\"work_inodes\":100", 1 << 20, 96},
		{",\"work_bytes\":134217728,\"work_inodes\":17", 128 << 20, 16},
		{",\"work_bytes\":135266304,\"work_inodes\":4000", 129 << 20, 4000},
		{",\"work_bytes\":402653184", 384 << 20, 4080},
		{",\"work_bytes\":1099511627776", INT64_C(1) << 40, 131072},
	};
	char text[256];

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		snprintf(text, sizeof text, DOC("\"limits\":{\"scratch\":\"disk\"%s}"), cases[i].limits);
		PLAN_AUTO struct plan *plan = compile(text);
		assert_int_equal(plan->limits.work_bytes, cases[i].bytes);
		assert_int_equal(plan->limits.work_inodes, cases[i].inodes);
	}
}

static void a_pin_is_canonical_and_makes_fewer_cpus_usable(void **state)
{
	(void)state;
	PLAN_AUTO struct plan *one = compile(DOC("\"limits\":{\"pin\":\"5\"}"));
	PLAN_AUTO struct plan *two = compile(DOC("\"limits\":{\"pin\":\"5,0,5\"}"));
	PLAN_AUTO struct plan *half = compile(DOC("\"limits\":{\"pin\":\"5\",\"cpus\":\"0.5\"}"));
	PLAN_AUTO struct plan *none = compile(DOC("\"limits\":{\"pin\":null}"));

	assert_int_equal(one->limits.cpu_ms, 10000);
	assert_int_equal(two->limits.cpu_ms, 20000);
	assert_int_equal(half->limits.cpu_ms, 5000);
	assert_non_null(strstr(two->canonical, "\"pin\":\"0,5\""));
	assert_null(strstr(none->canonical, "pin"));
}

static void what_this_host_cannot_give_is_refused_by_name(void **state)
{
	(void)state;
	static const struct {
		const char *text, *error;
	} cases[] = {
		{DOC("\"limits\":{\"open_files\":20001}"), "limits.open_files: 20001 asked for, but this host can give 20000 at most"},
		{DOC("\"limits\":{\"memory_bytes\":8589938688}"), "limits.memory_bytes: 8589938688 asked for, but this host can give 8589934592"},
		{DOC("\"limits\":{\"memory_bytes\":9223372036854775807}"), "limits.memory_bytes: "},
		{DOC("\"limits\":{\"cpus\":\"2.01\"}"), "limits.cpus: 2.01 asked for, but this host can give 2 at most"},
		{DOC("\"limits\":{\"pin\":\"0,4-5\"}"), "limits.pin: CPU 4 asked for, but this host can give 0,5"},
		{DOC("\"limits\":{\"pin\":\"5\",\"cpus\":\"1.01\"}"), "limits.cpus: 1.01 asked for, but the pin can give 1 at most"},
		{DOC("\"limits\":{\"pin\":\"5\",\"cpu_ms\":86400001}"), "limits.cpu_ms: 86400001 asked for, but this host can give 86400000"},
		{DOC("\"limits\":{\"scratch\":\"disk\",\"work_bytes\":1048575}"), "limits.work_bytes: scratch disk has 1048576 at least"},
		{DOC("\"limits\":{\"scratch\":\"disk\",\"work_bytes\":1073741824,\"work_inodes\":127}"),
	         "limits.work_inodes: scratch disk of 1073741824 bytes has 128 at least"},
		{DOC("\"limits\":{\"cpu_ms\":172800001}"), "limits.cpu_ms: 172800001 asked for, but this host can give 172800000 at most"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct plan *plan = NULL;
		struct err err = ERR_INIT;
		assert_int_equal(compile_on(&host, cases[i].text, &plan, &err), ERR_UNENFORCEABLE);
		assert_null(plan);
		if (strncmp(err.text, cases[i].error, strlen(cases[i].error)) != 0)
			fail_msg("got \"%s\", not \"%s\"", err.text, cases[i].error);
	}
	plan_free(compile(DOC("\"limits\":{\"open_files\":20000,\"memory_bytes\":8589934592,\"cpus\":\"2\",\"cpu_ms\":172800000}")));
}

static void a_default_that_this_host_cannot_give_is_refused_too(void **state)
{
	(void)state;
	struct plan_host small = host;
	struct plan *plan = NULL;
	struct err err = ERR_INIT;

	small.open_files_hard = 255;
	assert_int_equal(compile_on(&small, DOC("\"labels\":{}"), &plan, &err), ERR_UNENFORCEABLE);
	assert_string_equal(err.text, "limits.open_files: 256 asked for, but this host can give 255 at most");
}

static void the_environment_is_the_manifests_over_the_standard_one(void **state)
{
	(void)state;
	static const struct {
		const char *env, *expected; /* separated by '|' */
	} cases[] = {
		{"", "HOME=/box|LANG=C.UTF-8|PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		{"\"PATH\":\"/bin\",\"HOME\":\"\",\"LANG\":\"C\"", "HOME=|LANG=C|PATH=/bin"},
		{"\"Z\":\"1\",\"A\":\"=\",\"HOME2\":\"x\",\"PATH\":\"/bin\"", "A==|HOME=/box|HOME2=x|LANG=C.UTF-8|PATH=/bin|Z=1"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[512];
		BUF_AUTO struct buf joined = BUF_INIT(1000);
		snprintf(text, sizeof text, "{\"version\":\"caisson.manifest/v1\",\"command\":{\"argv\":[\"x\"],\"env\":{%s}}}", cases[i].env);
		PLAN_AUTO struct plan *plan = compile(text);
		for (size_t e = 0; e < plan->unit.env_count; e++)
			buf_printf(&joined, NULL, "%s%s", e ? "|" : "", plan->unit.env[e]);
		assert_null(plan->unit.env[plan->unit.env_count]);
		assert_string_equal(joined.data, cases[i].expected);
	}
}

static void only_the_hosts_own_root_is_curated(void **state)
{
	(void)state;
	PLAN_AUTO struct plan *curated = compile(DOC("\"profile\":\"linux\""));
	PLAN_AUTO struct plan *own = compile(DOC("\"rootfs\":\"/srv/root\""));
	PLAN_AUTO struct plan *docker = compile(DOC("\"profile\":\"docker\",\"image\":\"x\""));

	assert_true(curated->base_count > 0);
	for (size_t i = 0; i < curated->base_count; i++) {
		assert_int_equal(curated->base[i][0], '/');
		assert_string_not_equal(curated->base[i], "/etc/ssl");
	}
	assert_int_equal(own->base_count, 0);
	assert_null(own->base[0]);
	assert_string_equal(own->rootfs, "/srv/root");
	assert_int_equal(docker->base_count, 0);
}

static const char golden_manifest[] =
	DOC("\"inputs\":[{\"text\":\"\",\"target\":\"/box/b\"},{\"source\":\"a\",\"target\":\"/box/a\",\"mode\":\"0555\"}],"
            "\"stdin\":{\"source\":\"in\"},\"limits\":{\"cpus\":\"1.5\",\"on_overflow\":\"truncate\"},\"require\":[\"landlock>=1\"],"
            "\"retained_output\":\"ignore\",\"outputs\":{\"required\":[\"r\"]}");


static const char golden_plan[] =
	"{\"base\":[\"/etc/alternatives\",\"/etc/java-*-openjdk\",\"/etc/ld.so.cache\",\"/etc/ssl/certs\",\"/etc/ssl/openssl.cnf\"],"
	"\"limits\":{\"artifact_bytes\":67108864,\"artifact_file_bytes\":16777216,\"artifact_files\":64,\"cancel_grace_ms\":2000,"
	"\"cleanup_ms\":15000,\"cpu_ms\":15000,\"cpus\":\"1.5\",\"drain_ms\":100,\"memory_bytes\":268435456,\"on_limit_grace_ms\":0,"
	"\"on_overflow\":\"truncate\",\"open_files\":256,\"out_bytes\":67108864,\"out_inodes\":1024,\"pids\":64,\"scratch\":\"memory\","
	"\"stack_bytes\":8388608,\"stderr_bytes\":1048576,\"stdout_bytes\":1048576,\"wall_ms\":10000,\"work_bytes\":67108864,"
	"\"work_inodes\":4096},\"manifest\":\"@M\",\"network\":{\"mode\":\"none\"},\"outputs\":{\"required\":[\"r\"]},\"policy\":\"@P\","
	"\"profile\":\"linux\",\"require\":[\"landlock>=1\"],\"retained_output\":\"ignore\",\"rootfs\":\"host\",\"units\":[{\"argv\":[\"x\"],"
	"\"cwd\":\"/box\",\"env\":[\"HOME=/box\",\"LANG=C.UTF-8\",\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"],"
	"\"inputs\":[{\"digest\":\"@0\",\"mode\":\"0444\",\"size_bytes\":1,\"target\":\"/box/b\"},{\"digest\":\"@1\",\"mode\":\"0555\","
	"\"size_bytes\":2,\"target\":\"/box/a\"}],\"stderr\":{\"endpoint\":\"capture\"},\"stdin\":{\"digest\":\"@S\",\"endpoint\":\"input\","
	"\"size_bytes\":77},\"stdout\":{\"endpoint\":\"capture\"}}],\"version\":\"caisson.plan/v1\"}";

/* golden_plan with its digests put in. */
static void golden(const struct plan *plan, struct buf *ret)
{
	const struct {
		char mark;
		const struct digest *digest;
	} marks[] = {
		{'M', &plan->manifest}, {'P', &plan->policy}, {'0', &plan->unit.inputs[0].digest}, {'1', &plan->unit.inputs[1].digest},
		{'S', &plan->unit.stdin_input.digest},
	};
	char text[DIGEST_TEXT_SIZE];

	for (const char *at = golden_plan; *at; at++) {
		if (*at != '@') {
			buf_append(ret, at, 1, NULL);
			continue;
		}
		at++;
		for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
			if (marks[i].mark == *at)
				buf_puts(ret, digest_text(marks[i].digest, text), NULL);
	}
}

static void the_canonical_form_is_golden(void **state)
{
	(void)state;
	PLAN_AUTO struct plan *plan = compile(golden_manifest);
	BUF_AUTO struct buf expected = BUF_INIT(PLAN_MAX_BYTES);
	struct digest digest;

	golden(plan, &expected);
	assert_string_equal(plan->canonical, expected.data);
	assert_int_equal(plan->canonical_length, expected.len);
	digest_of(expected.data, expected.len, &digest);
	assert_true(digest_equal(&digest, &plan->digest));
}

static void a_plan_reads_back_as_it_was_written(void **state)
{
	(void)state;
	static const char *const texts[] = {
		DOC("\"labels\":{}"), golden_manifest,
		DOC("\"limits\":{\"cpus\":\"0.01\",\"stdout_bytes\":0,\"wall_ms\":1,\"memory_bytes\":4194304,\"scratch\":\"disk\"}"),
		DOC("\"limits\":{\"pin\":\"0,5\"}"),
		DOC("\"profile\":\"docker\",\"image\":\"x\",\"network\":{\"mode\":\"allowlist\"},\"rootfs\":\"/srv/\xc3\xa9\""),
	};

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		PLAN_AUTO struct plan *plan = compile(texts[i]);
		PLAN_AUTO struct plan *read = NULL;
		struct err err = ERR_INIT;
		if (plan_parse(plan->canonical, plan->canonical_length, &read, &err) != 0)
			fail_msg("%s: %s", plan->canonical, err.text);
		assert_string_equal(read->canonical, plan->canonical);
		assert_true(digest_equal(&read->digest, &plan->digest));
		assert_memory_equal(&read->limits, &plan->limits, sizeof plan->limits);
		assert_string_equal(read->profile, plan->profile);
		assert_int_equal(read->unit.argc, plan->unit.argc);
		assert_int_equal(read->unit.env_count, plan->unit.env_count);
		assert_int_equal(read->unit.input_count, plan->unit.input_count);
		assert_int_equal(read->unit.standard_input, plan->unit.standard_input);
		assert_true(digest_equal(&read->manifest, &plan->manifest));
		assert_true(digest_equal(&read->policy, &plan->policy));
	}
}

/* The golden plan with the first `from` in it replaced by `to`. */
static int parse_altered(const char *from, const char *to, struct err *err)
{
	PLAN_AUTO struct plan *plan = compile(golden_manifest);
	PLAN_AUTO struct plan *read = NULL;
	BUF_AUTO struct buf text = BUF_INIT(2 * PLAN_MAX_BYTES);
	const char *at = strstr(plan->canonical, from);

	assert_non_null(at);
	buf_append(&text, plan->canonical, (size_t)(at - plan->canonical), NULL);
	buf_puts(&text, to, NULL);
	buf_puts(&text, at + strlen(from), NULL);
	int r = plan_parse(text.data, text.len, &read, err);
	assert_int_equal(read == NULL, r < 0);
	return r;
}

/* A file has no kind, as in plans of the time before there were trees. */
static void an_input_is_a_file_or_a_tree(void **state)
{
	(void)state;
	struct err err = ERR_INIT;

	assert_int_equal(parse_altered("\"mode\":\"0444\"", "\"kind\":\"tree\",\"mode\":\"0444\"", &err), 0);
	assert_int_equal(parse_altered("\"mode\":\"0444\"", "\"kind\":\"file\",\"mode\":\"0444\"", &err), ERR_DAMAGED);
	assert_int_equal(parse_altered("\"mode\":\"0444\"", "\"kind\":\"disk\",\"mode\":\"0444\"", &err), ERR_INVALID);
	assert_non_null(strstr(err.text, "$.units[0].inputs[0].kind"));
}

static void a_plan_that_was_not_written_by_us_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *from, *to;
		int code;
		const char *error;
	} cases[] = {
		{"{\"base\"", " {\"base\"", ERR_DAMAGED, "not a plan in its canonical form"},
		{"\"caisson.plan/v1\"", "\"caisson.plan/v2\"", ERR_DAMAGED, "not a plan"},
		{",\"version\"", ",\"surprise\":1,\"version\"", ERR_DAMAGED, "not a plan"},
		{"\"drain_ms\":100,", "", ERR_DAMAGED, "not a plan"},
		{"\"x\"", "\"\\u0078\"", ERR_DAMAGED, "not a plan"},
		{"\"1.5\"", "\"1.50\"", ERR_DAMAGED, "not a plan"},
		{"\"HOME=/box\",\"LANG", "\"LANG", 0, ""},
		{"\"drain_ms\":100", "\"drain_ms\":5001", ERR_INVALID, "$.limits.drain_ms: must be an integer from 0 to 5000"},
		{"\"pids\":64", "\"pids\":0", ERR_INVALID, "$.limits.pids: must be an integer from 1 to 32768"},
		{"\"pids\":64", "\"pids\":64.0", ERR_INVALID, "$.limits.pids: must be an integer"},
		{"\"cpus\":\"1.5\"", "\"cpus\":\"many\"", ERR_INVALID, "$.limits.cpus: must be null or a string"},
		{"\"pids\":64", "\"pids\":64,\"pin\":\"5,0\"", ERR_DAMAGED, "not a plan"},
		{"\"pids\":64", "\"pids\":64,\"pin\":null", ERR_DAMAGED, "not a plan"},
		{"\"pids\":64", "\"pids\":64,\"pin\":\"\"", ERR_INVALID, "$.limits.pin: must be a list of CPUs"},
		{"\"/box/b\"", "\"/box/../b\"", ERR_INVALID, "$.units[0].inputs[0].target: must not have a component"},
		{"\"/box/b\"", "\"/etc/passwd\"", ERR_INVALID, "$.units[0].inputs[0].target: must be a path below /box"},
		{"\"cwd\":\"/box\"", "\"cwd\":\"box\"", ERR_INVALID, "$.units[0].cwd: must be an absolute path"},
		{"\"cwd\":\"/box\",", "", ERR_INVALID, "$.units[0].cwd: is required"},
		{"\"HOME=/box\"", "\"HOME\"", ERR_INVALID, "$.units[0].env[0]: must be NAME=VALUE"},
		{"\"argv\":[\"x\"]", "\"argv\":[]", ERR_INVALID, "$.units[0].argv: must be an array of 1 to 4096 strings"},
		{"\"units\":[{", "\"units\":[{},{", ERR_INVALID, "$.units: must be an array of one unit"},
		{"\"stdout\":{\"endpoint\":\"capture\"}", "\"stdout\":{\"endpoint\":\"input\"}", ERR_INVALID, "$.units[0].stdout: must not be"},
		{"\"endpoint\":\"input\"", "\"endpoint\":\"terminal\"", ERR_INVALID, "$.units[0].stdin.endpoint: must be \"closed\", \"input\""},
		{"\"/etc/alternatives\"", "\"etc\"", ERR_INVALID, "$.base[0]: must be an absolute path"},
		{"\"profile\":\"linux\",", "", ERR_INVALID, "$.profile: is required"},
		{"\"manifest\":\"sha256:", "\"manifest\":\"sha256:0", ERR_INVALID, "$.manifest: must be at most 71 bytes"},
		{"\"base\":", "\"base\":[],\"base\":", ERR_INVALID, "line 1, column "},
		{"caisson.plan/v1\"}", "caisson.plan/v1\"", ERR_INVALID, "line 1, column "},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct err err = ERR_INIT;
		int r = parse_altered(cases[i].from, cases[i].to, &err);
		if (r != cases[i].code || strncmp(err.text, cases[i].error, strlen(cases[i].error)) != 0)
			fail_msg("%s -> %s: got %d \"%s\"", cases[i].from, cases[i].to, r, err.text);
	}
}

static void a_plan_is_no_longer_than_one_message(void **state)
{
	(void)state;
	/* Every '"' is two bytes in JSON: a command that a manifest may have, but whose plan is too long. */
	enum { QUOTES = 100000 };
	BUF_AUTO struct buf text = BUF_INIT(1 << 20);
	struct plan *plan = NULL;
	struct err err = ERR_INIT;

	buf_puts(&text, "{\"version\":\"caisson.manifest/v1\",\"command\":{\"argv\":[\"x\",\"", NULL);
	for (int i = 0; i < QUOTES; i++)
		buf_puts(&text, "\\\"", NULL);
	buf_puts(&text, "\"]}}", NULL);
	assert_int_equal(compile_on(&host, text.data, &plan, &err), ERR_LIMIT);
	assert_string_equal(err.text, "plan: more than 196608 bytes");

	static char long_text[PLAN_MAX_BYTES + 1];
	assert_int_equal(plan_parse(long_text, sizeof long_text, &plan, &err), ERR_INVALID);
	assert_string_equal(err.text, "must be at most 196608 bytes");
}

static void other_inputs_than_the_manifests_are_refused(void **state)
{
	(void)state;
	MANIFEST_AUTO struct manifest *manifest = NULL;
	struct plan *plan = NULL;
	struct plan_sealed sealed = {.input_count = 0};
	struct digest policy = {{0}};

	assert_int_equal(manifest_parse(golden_manifest, strlen(golden_manifest), &manifest, NULL), 0);
	assert_int_equal(plan_compile(manifest, &host, &sealed, &policy, &plan, NULL), ERR_INTERNAL);
	assert_null(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_defaults_are_those_of_the_contract),
		cmocka_unit_test(values_are_rounded_so_that_they_read_back_equal),
		cmocka_unit_test(a_disk_is_rounded_to_what_its_file_system_can_be),
		cmocka_unit_test(a_pin_is_canonical_and_makes_fewer_cpus_usable),
		cmocka_unit_test(what_this_host_cannot_give_is_refused_by_name),
		cmocka_unit_test(a_default_that_this_host_cannot_give_is_refused_too),
		cmocka_unit_test(the_environment_is_the_manifests_over_the_standard_one),
		cmocka_unit_test(only_the_hosts_own_root_is_curated),
		cmocka_unit_test(the_canonical_form_is_golden),
		cmocka_unit_test(a_plan_reads_back_as_it_was_written),
		cmocka_unit_test(an_input_is_a_file_or_a_tree),
		cmocka_unit_test(a_plan_that_was_not_written_by_us_is_refused),
		cmocka_unit_test(a_plan_is_no_longer_than_one_message),
		cmocka_unit_test(other_inputs_than_the_manifests_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
