/* scene.c - builds and takes down what scene.h promises; any failure in here fails the test. */
#include "scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "evidence/record.h"
#include "ledger/sqlite/sqlite_ledger.h"

enum { OPEN_FILES_AT_ONCE = 8, MANIFEST_TEXT_MAX = 64 * 1024, TEST_CPUS = 2 };

static const struct sqlite_ledger_options ledger_options = {.record_digest = record_digest};

static void must(int rc, const struct err *err)
{
	if (rc < 0)
		fail_msg("%s: %s", err_code_name(rc), err->text);
}

static void open_ledger(struct scene *scene)
{
	struct err err = ERR_INIT;
	must(sqlite_ledger_open(scene->dir, &ledger_options, &scene->ledger, &err), &err);
	scene->owner = (struct ledger_owner){.boot_id = "test", .started_at_ms = clock_wall_ms()};
	id_new("own", scene->owner.owner_id);
	digest_of(scene->owner.owner_id, strlen(scene->owner.owner_id), &scene->owner.epoch);
	must(scene->ledger->ops->register_owner(scene->ledger, &scene->owner, &err), &err);
}

void scene_open(struct scene *scene)
{
	struct err err = ERR_INIT;
	*scene = (struct scene){.dir = -1};
	snprintf(scene->path, sizeof(scene->path), "/var/tmp/caisson-test-XXXXXX");
	assert_non_null(mkdtemp(scene->path));
	scene->dir = open(scene->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(scene->dir >= 0);
	assert_int_equal(mkdirat(scene->dir, "store", 0700), 0);
	FD_AUTO int store = openat(scene->dir, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(store_open(store, &scene->store, &err), &err);
	must(key_open(scene->dir, &scene->key, &err), &err);
	open_ledger(scene);
}

static int remove_entry(const char *path, const struct stat *status, int flag, struct FTW *where)
{
	(void)status;
	(void)flag;
	(void)where;
	return remove(path);
}

void scene_close(struct scene *scene)
{
	scene->ledger->ops->close(scene->ledger);
	key_free(scene->key);
	store_free(scene->store);
	fd_close(&scene->dir);
	assert_int_equal(nftw(scene->path, remove_entry, OPEN_FILES_AT_ONCE, FTW_DEPTH | FTW_PHYS), 0);
}

void scene_new_owner(struct scene *scene)
{
	scene->ledger->ops->close(scene->ledger);
	open_ledger(scene);
}

static void compile(struct scene_run *run, const char *text)
{
	const struct plan_host host = {
		.page_bytes = sysconf(_SC_PAGESIZE), .cpus = TEST_CPUS, .cpu_list = {{1}}, .memory_bytes = INT64_C(1) << 33, .open_files_hard = 4096, .stack_hard = INT64_MAX,
	.processes_hard = INT64_MAX, .cpu_hard_ms = INT64_MAX, .memory_hard = INT64_MAX, .file_hard = INT64_MAX};
	const struct plan_sealed sealed = {.input_count = 0};
	struct digest policy;
	struct err err = ERR_INIT;
	digest_of("policy", 6, &policy);
	must(manifest_parse(text, strlen(text), &run->manifest, &err), &err);
	must(plan_compile(run->manifest, &host, &sealed, &policy, &run->plan, &err), &err);
}

void scene_plan(struct scene *scene, const char *profile, const char *const *argv, const char *limits, struct scene_run *ret)
{
	struct err err = ERR_INIT;
	*ret = (struct scene_run){.scene = scene, .ttl_ms = 30000};
	json_t *words = json_array();
	for (size_t i = 0; argv[i]; i++)
		json_array_append_new(words, json_string(argv[i]));
	json_t *limits_json = NULL;
	must(json_parse(limits, strlen(limits), &limits_json, &err), &err);
	json_t *document JSON_AUTO = json_pack("{s:s, s:s, s:{s:o}, s:o, s:{s:i}}", "version", MANIFEST_VERSION, "profile", profile,
	                                       "command", "argv", words, "limits", limits_json, "cancel", "grace_ms", 300);
	struct buf text BUF_AUTO = BUF_INIT(MANIFEST_TEXT_MAX);
	must(json_canonical(document, &text, &err), &err);
	compile(ret, text.data);
}

void scene_accept(struct scene_run *run)
{
	struct scene *scene = run->scene;
	struct err err = ERR_INIT;
	struct ledger_run row = {
		.principal = "uid:0",
		.attached = !run->detached,
		.manifest = run->manifest->canonical,
		.plan = run->plan->canonical,
		.manifest_digest = run->manifest->digest,
		.plan_digest = run->plan->digest,
		.created_at_ms = clock_wall_ms(),
		.labels = "{}",
	};
	run->attempt = (struct ledger_attempt){.number = 1, .ttl_ms = run->ttl_ms, .state = "queued", .attached = !run->detached};
	id_new("run", row.run_id);
	id_new("att", run->attempt.attempt_id);
	id_new("bnd", run->attempt.boundary_id);
	memcpy(run->attempt.run_id, row.run_id, ID_SIZE);
	memcpy(run->attempt.owner_id, scene->owner.owner_id, ID_SIZE);
	memcpy(run->identity.boundary_id, run->attempt.boundary_id, ID_SIZE);
	memcpy(run->identity.ledger_id, scene->ledger->ops->id(scene->ledger), ID_SIZE);
	snprintf(run->attempt.profile, sizeof(run->attempt.profile), "%s", run->plan->profile);
	const struct ledger_record records[] = {
		{.at_ms = row.created_at_ms, .kind = "accepted", .body = "{\"principal\":\"uid:0\"}"},
	};
	must(scene->ledger->ops->accept(scene->ledger, &row, &run->attempt, records, 1, false, &err), &err);
	const struct plan_limits *limits = &run->plan->limits;
	int spool = store_dir_fd(scene->store);
	must(capture_new(limits->stdout_bytes, limits->on_overflow, spool, &run->standard_output, &err), &err);
	must(capture_new(limits->stderr_bytes, limits->on_overflow, spool, &run->standard_error, &err), &err);
}

static int stop_requested(void *context)
{
	struct scene_run *run = context;
	struct capture_state state;
	capture_get_state(run->standard_output, &state);
	if (run->stop_when_ready && state.total_bytes > 0)
		run->stop = run->stop_when_ready;
	return run->stop;
}

static void launched(void *context)
{
	struct scene_run *run = context;
	run->launched_calls++;
	if (run->stop_when_launched) {
		run->stop = run->stop_when_launched;
		run->boundary->ops->interrupt(run->boundary);
	}
}

static void provisional(void *context, const struct verdict *verdict)
{
	struct scene_run *run = context;
	run->provisional_calls++;
	run->provisional = *verdict;
}

void scene_drive(struct scene_run *run)
{
	const struct runner_request request = {
		.ledger = run->scene->ledger,
		.key = run->scene->key,
		.store = run->scene->store,
		.boundary = run->boundary,
		.plan = run->plan,
		.attempt = run->attempt,
		.principal = "uid:0",
		.admitted_at_ms = clock_wall_ms(),
		.leased_at_ns = clock_boot_ns(),
		.standard_output = run->standard_output,
		.standard_error = run->standard_error,
		.stop_requested = stop_requested,
		.launched = launched,
		.provisional = provisional,
		.context = run,
	};
	free(run->result.receipt);
	run->result = (struct runner_result){.receipt = NULL};
	run->err = ERR_INIT;
	run->rc = runner_drive(&request, &run->result, &run->err);
}

void scene_run_done(struct scene_run *run)
{
	if (run->boundary)
		run->boundary->ops->free(run->boundary);
	capture_free(run->standard_output);
	capture_free(run->standard_error);
	plan_free(run->plan);
	manifest_free(run->manifest);
	free(run->result.receipt);
}

struct finding {
	const char *attempt_id;
	struct ledger_attempt *ret;
	bool found;
};

static int match_attempt(void *context, const struct ledger_attempt *attempt)
{
	struct finding *finding = context;
	if (!strcmp(attempt->attempt_id, finding->attempt_id)) {
		*finding->ret = *attempt;
		finding->found = true;
	}
	return 0;
}

bool scene_find(struct scene *scene, const char *attempt_id, struct ledger_attempt *ret)
{
	struct finding finding = {.attempt_id = attempt_id, .ret = ret};
	struct err err = ERR_INIT;
	must(scene->ledger->ops->unsealed(scene->ledger, match_attempt, &finding, &err), &err);
	return finding.found;
}

int scene_recover(struct scene *scene, const struct boundary_provider *provider, const char *attempt_id, struct runner_result *ret,
                  struct err *err)
{
	struct runner_recovery recovery = {
		.ledger = scene->ledger,
		.key = scene->key,
		.provider = provider,
		.owner_id = scene->owner.owner_id,
		.cleanup_ms = 5000,
	};
	assert_true(scene_find(scene, attempt_id, &recovery.attempt));
	return runner_recover(&recovery, ret, err);
}

static int append_kind(void *context, const struct ledger_record *record, const struct digest *digest)
{
	char *kinds = context;
	size_t used = strlen(kinds);
	(void)digest;
	snprintf(kinds + used, SCENE_KINDS_MAX - used, "%s%s", used ? " " : "", record->kind);
	return 0;
}

const char *scene_kinds(struct scene *scene, const char *attempt_id, char ret[static SCENE_KINDS_MAX])
{
	struct err err = ERR_INIT;
	ret[0] = '\0';
	must(scene->ledger->ops->records(scene->ledger, attempt_id, append_kind, ret, &err), &err);
	return ret;
}

char *scene_receipt_get(const struct runner_result *result, const char *path)
{
	struct err err = ERR_INIT;
	json_t *document JSON_AUTO = NULL;
	assert_non_null(result->receipt);
	must(json_parse(result->receipt, strlen(result->receipt), &document, &err), &err);
	const json_t *value = document;
	for (const char *at = path; value && *at;) {
		size_t length = strcspn(at, ".");
		char key[64];
		snprintf(key, sizeof(key), "%.*s", (int)length, at);
		value = json_object_get(value, key);
		at += length + (at[length] == '.');
	}
	if (!value)
		fail_msg("the receipt has no %s", path);
	return json_dumps(value, JSON_ENCODE_ANY | JSON_SORT_KEYS);
}

void scene_assert_stream(struct scene_run *run, const char *name, const char *text, int64_t bytes)
{
	struct scene *scene = run->scene;
	struct ledger_stream stream;
	struct err err = ERR_INIT;
	void *data = NULL;
	bool in_store = false;
	must(scene->ledger->ops->stream(scene->ledger, run->attempt.run_id, name, &stream, &data, &in_store, &err), &err);
	assert_int_equal(stream.kept_bytes, bytes);
	if (in_store) {
		int fd;
		int64_t size;
		must(store_get(scene->store, &stream.sha256, &fd, &size, &err), &err);
		assert_int_equal(size, bytes);
		data = calloc(1, strlen(text) + 1);
		assert_int_equal(fd_read_full(fd, data, strlen(text)), (ssize_t)strlen(text));
		fd_close(&fd);
	}
	assert_memory_equal(data, text, strlen(text));
	free(data);
}
