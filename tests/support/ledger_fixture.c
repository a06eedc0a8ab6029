/* ledger_fixture.c - a ledger in a directory of its own, and runs in it, for tests. Everything asserts. */
#include "ledger_fixture.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "evidence/receipt.h"
#include "evidence/record.h"
#include "ledger/ledger_dir.h"
#include "ledger/sqlite/sqlite_ledger.h"

enum { ARTIFACTS = 2 };

static const char manifest_text[] = "{\"command\":{\"argv\":[\"/bin/echo\",\"hello\"]},\"version\":\"caisson.manifest/v1\"}";
static const char plan_text[] = "{\"limits\":{\"wall_ms\":10000},\"version\":\"caisson.plan/v1\"}";

void fixture_open(struct ledger_fixture *fixture, const char *path, bool read_only)
{
	const struct sqlite_ledger_options options = {.read_only = read_only, .record_digest = record_digest};
	struct err err = ERR_INIT;

	memset(fixture, 0, sizeof *fixture);
	snprintf(fixture->path, sizeof fixture->path, "%s", path);
	assert_int_equal(ledger_dir_open(path, true, &fixture->dir, NULL, &err), 0);
	if (sqlite_ledger_open(fixture->dir, &options, &fixture->ledger, &err) < 0)
		fail_msg("%s", err.text);
	if (read_only)
		return;
	assert_int_equal(key_open(fixture->dir, &fixture->key, &err), 0);
	id_new("own", fixture->owner.owner_id);
	digest_of("epoch", 5, &fixture->owner.epoch);
	snprintf(fixture->owner.boot_id, sizeof fixture->owner.boot_id, "11111111-2222-3333-4444-555555555555");
	fixture->owner.started_at_ms = clock_wall_ms();
	if (fixture->ledger->ops->register_owner(fixture->ledger, &fixture->owner, &err) < 0)
		fail_msg("%s", err.text);
}

void fixture_make(struct ledger_fixture *fixture)
{
	char path[] = "/tmp/caisson-test-ledger-XXXXXX";

	assert_non_null(mkdtemp(path));
	fixture_open(fixture, path, false);
}

void fixture_share(struct ledger_fixture *fixture, bool with_reader, ledger_changed_fn changed, void *context)
{
	const struct sqlite_ledger_options options = {.read_only = true, .record_digest = record_digest};
	struct ledger *reader = NULL;
	struct err err = ERR_INIT;

	if (with_reader && sqlite_ledger_open(fixture->dir, &options, &reader, &err) < 0)
		fail_msg("%s", err.text);
	if (ledger_share(fixture->ledger, reader, changed, context, &fixture->ledger, &err) < 0)
		fail_msg("%s", err.text);
}

void fixture_close(struct ledger_fixture *fixture)
{
	if (fixture->ledger)
		fixture->ledger->ops->close(fixture->ledger);
	key_free(fixture->key);
	if (fixture->dir >= 0)
		close(fixture->dir);
	fixture->ledger = NULL;
	fixture->key = NULL;
	fixture->dir = -1;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void fixture_remove_tree(const char *path)
{
	assert_int_equal(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void fixture_copy_file(const char *from, const char *to)
{
	BUF_AUTO struct buf bytes = BUF_INIT(64 * 1024 * 1024);
	FD_AUTO int in = open(from, O_RDONLY | O_CLOEXEC);
	FD_AUTO int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(in >= 0 && out >= 0);
	assert_int_equal(fd_read_rest(in, &bytes, NULL), 0);
	assert_int_equal(fd_write_all(out, bytes.data, bytes.len), 0);
}

void fixture_remove(struct ledger_fixture *fixture)
{
	fixture_close(fixture);
	fixture_remove_tree(fixture->path);
}

void fixture_new_attempt(const struct ledger_fixture *fixture, struct ledger_attempt *ret)
{
	*ret = (struct ledger_attempt){.number = 1, .ttl_ms = 30000};
	id_new("run", ret->run_id);
	id_new("att", ret->attempt_id);
	id_new("bnd", ret->boundary_id);
	snprintf(ret->profile, sizeof ret->profile, "linux");
	snprintf(ret->state, sizeof ret->state, "queued");
	memcpy(ret->owner_id, fixture->owner.owner_id, sizeof ret->owner_id);
}

static struct ledger_run new_run(const char *run_id)
{
	struct ledger_run run = {.manifest = manifest_text, .plan = plan_text, .labels = "{\"problem\":\"42\"}",
	                         .created_at_ms = clock_wall_ms()};

	memcpy(run.run_id, run_id, sizeof run.run_id);
	snprintf(run.principal, sizeof run.principal, "uid:0");
	digest_of(manifest_text, strlen(manifest_text), &run.manifest_digest);
	digest_of(plan_text, strlen(plan_text), &run.plan_digest);
	return run;
}

static struct ledger_record first_record(void)
{
	return (struct ledger_record){.at_ms = clock_wall_ms(), .kind = "accepted", .body = "{\"by\":\"test\"}"};
}

int fixture_try_accept(struct ledger_fixture *fixture, struct ledger_attempt *attempt, bool durable, struct err *err)
{
	struct ledger_run run = new_run(attempt->run_id);
	const struct ledger_record record = first_record();

	run.attached = true;
	return fixture->ledger->ops->accept(fixture->ledger, &run, attempt, &record, 1, durable, err);
}

void fixture_accept(struct ledger_fixture *fixture, struct ledger_attempt *ret)
{
	struct err err = ERR_INIT;

	fixture_new_attempt(fixture, ret);
	if (fixture_try_accept(fixture, ret, false, &err) < 0)
		fail_msg("%s", err.text);
}

int fixture_try_submit(struct ledger_fixture *fixture, const char *principal, const char *key, char ret_run_id[static ID_SIZE],
                       bool *ret_existing, struct err *err)
{
	char run_id[ID_SIZE];
	struct ledger_run run;
	int r;

	id_new("run", run_id);
	run = new_run(run_id);
	snprintf(run.principal, sizeof run.principal, "%s", principal);
	r = fixture->ledger->ops->submit(fixture->ledger, &run, key, FIXTURE_QUEUE_MAX, ret_existing, err);
	memcpy(ret_run_id, run.run_id, sizeof run.run_id);
	return r;
}

void fixture_submit(struct ledger_fixture *fixture, const char *key, char ret_run_id[static ID_SIZE])
{
	struct err err = ERR_INIT;
	bool existing = true;

	if (fixture_try_submit(fixture, "uid:0", key, ret_run_id, &existing, &err) < 0)
		fail_msg("%s", err.text);
	assert_false(existing);
}

int fixture_try_claim(struct ledger_fixture *fixture, const char *run_id, struct ledger_attempt *ret, struct err *err)
{
	const struct ledger_record record = first_record();

	fixture_new_attempt(fixture, ret);
	memcpy(ret->run_id, run_id, sizeof ret->run_id);
	return fixture->ledger->ops->claim(fixture->ledger, ret, &record, 1, err);
}

void fixture_claim(struct ledger_fixture *fixture, const char *run_id, struct ledger_attempt *ret)
{
	struct err err = ERR_INIT;

	if (fixture_try_claim(fixture, run_id, ret, &err) < 0)
		fail_msg("%s", err.text);
}

int fixture_abandon(struct ledger_fixture *fixture, const struct ledger_attempt *attempt, struct err *err)
{
	const struct ledger_record record = {.at_ms = clock_wall_ms(), .kind = "abandoned", .body = "{\"reason\":\"keeper_lost\"}"};

	return fixture->ledger->ops->abandon(fixture->ledger, attempt->attempt_id, fixture->owner.owner_id, attempt->generation,
	                                     &record, 1, err);
}

int fixture_append(struct ledger_fixture *fixture, const struct ledger_attempt *attempt, const char *kind, const char *state,
                   struct err *err)
{
	struct ledger_record record = {.at_ms = clock_wall_ms(), .body = "{\"note\":\"a record of the test\"}"};

	snprintf(record.kind, sizeof record.kind, "%s", kind);
	return fixture->ledger->ops->append(fixture->ledger, attempt->attempt_id, fixture->owner.owner_id, attempt->generation,
	                                    state, &record, 1, false, err);
}

int fixture_intent(struct ledger_fixture *fixture, const struct ledger_attempt *attempt, struct err *err)
{
	const struct ledger_record record = {.at_ms = clock_wall_ms(), .kind = "launch_intent", .body = "{\"gate\":\"shut\"}"};

	return fixture->ledger->ops->commit_launch_intent(fixture->ledger, attempt->attempt_id, fixture->owner.owner_id,
	                                                  attempt->generation, &record, 1, err);
}

struct sealing {
	const struct ledger_fixture *fixture;
	const struct ledger_attempt *attempt;
	const struct ledger_stream *streams;
	const struct ledger_artifact *artifacts;
	char *receipt;
};

static struct receipt_stream stream_of(const struct ledger_stream *stream)
{
	return (struct receipt_stream){.sha256 = stream->sha256, .bytes = stream->bytes, .kept_bytes = stream->kept_bytes,
	                               .dropped_bytes = stream->dropped_bytes, .drained = stream->drained};
}

static json_t *artifacts_of(const struct ledger_artifact artifacts[static ARTIFACTS])
{
	json_t *list = json_array();

	for (int i = 0; i < ARTIFACTS; i++) {
		char digest[DIGEST_TEXT_SIZE];

		json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "mode", artifacts[i].mode == 0755 ? "0755" : "0644",
		                                      "size_bytes", (json_int_t)artifacts[i].size_bytes, "sha256",
		                                      digest_text(&artifacts[i].sha256, digest)));
		assert_int_equal(json_set_bytes(json_array_get(list, (size_t)i), "path", artifacts[i].path,
		                                strlen(artifacts[i].path), NULL), 0);
	}
	return list;
}

static int build(void *context, const struct ledger_seal_numbers *numbers, struct ledger_seal_built *ret, struct err *err)
{
	struct sealing *sealing = context;
	JSON_AUTO json_t *layers = json_pack("[s, s]", "pid", "net");
	JSON_AUTO json_t *evidence = json_pack("[{s:s, s:s, s:s}]", "name", "seccomp", "grade", "observed", "detail", "mode 2");
	JSON_AUTO json_t *limits = json_pack("{s:i}", "wall_ms", 10000);
	JSON_AUTO json_t *artifacts = artifacts_of(sealing->artifacts);
	struct receipt receipt = {.run_id = sealing->attempt->run_id,
	                          .attempt_id = sealing->attempt->attempt_id,
	                          .owner = "uid:0",
	                          .verdict = "succeeded",
	                          .reason = "",
	                          .detail = "",
	                          .limits = limits,
	                          .wall_ms = 12,
	                          .cpu_user_ms = 3,
	                          .cpu_system_ms = 1,
	                          .memory_peak_bytes = 1048576,
	                          .memory_peak_anon_sampled_bytes = -1,
	                          .pids_peak = 1,
	                          .standard_output = stream_of(&sealing->streams[0]),
	                          .standard_error = stream_of(&sealing->streams[1]),
	                          .artifacts = artifacts,
	                          .boundary_kind = "linux",
	                          .layers = layers,
	                          .evidence = evidence,
	                          .verified_empty = true,
	                          .has_plan = true,
	                          .lease_generations = numbers->lease_generations,
	                          .times = {.admitted_at = 1764450000000,
	                                    .launched_at = 1764450000004,
	                                    .exited_at = 1764450000016,
	                                    .sealed_at = 1764450000018,
	                                    .drain_ms = 0,
	                                    .cleanup_ms = 2},
	                          .last_record = numbers->last_record,
	                          .ledger_id = sealing->fixture->ledger->ops->id(sealing->fixture->ledger),
	                          .seal_seq = numbers->seal_seq,
	                          .previous_seal = numbers->previous};
	int r;

	digest_of(manifest_text, strlen(manifest_text), &receipt.manifest);
	digest_of(plan_text, strlen(plan_text), &receipt.plan);
	r = receipt_seal(&receipt, sealing->fixture->key, &sealing->receipt, &ret->digest, ret->signature, err);
	if (r < 0)
		return r;
	ret->receipt = sealing->receipt;
	memcpy(ret->public_key, key_public(sealing->fixture->key), sizeof ret->public_key);
	memcpy(ret->key, key_fingerprint(sealing->fixture->key), sizeof ret->key);
	return 0;
}

int fixture_seal(struct ledger_fixture *fixture, const struct ledger_attempt *attempt, const char *text, struct err *err)
{
	struct ledger_stream streams[] = {
		{.name = "stdout",
	         .bytes = (int64_t)strlen(text),
	         .kept_bytes = (int64_t)strlen(text),
	         .drained = true,
	         .data = strlen(text) <= LEDGER_STREAM_ROW_MAX ? text : NULL},
		{.name = "stderr", .drained = true, .data = ""},
	};
	const struct ledger_record record = {.at_ms = clock_wall_ms(), .kind = "cleaned", .body = "{\"verified_empty\":true}"};
	struct ledger_artifact artifacts[ARTIFACTS] = {
		{.path = "a\xff", .size_bytes = 0, .mode = 0755},
		{.path = "dir/b\n", .size_bytes = (int64_t)strlen(text), .mode = 0644},
	};
	struct sealing sealing = {.fixture = fixture, .attempt = attempt, .streams = streams, .artifacts = artifacts};
	struct ledger_seal seal = {
		.attempt_id = attempt->attempt_id, .generation = attempt->generation, .owner_id = fixture->owner.owner_id,
		.records = &record, .record_count = 1, .streams = streams, .stream_count = 2,
		.artifacts = artifacts, .artifact_count = ARTIFACTS, .verdict = "succeeded", .reason = "",
		.cancel_heard = true, .build = build, .context = &sealing};
	int r;

	digest_of(text, strlen(text), &streams[0].sha256);
	digest_of("", 0, &streams[1].sha256);
	artifacts[0].sha256 = streams[1].sha256;
	artifacts[1].sha256 = streams[0].sha256;
	memcpy(seal.key, key_fingerprint(fixture->key), sizeof seal.key);
	r = fixture->ledger->ops->seal(fixture->ledger, &seal, err);
	free(sealing.receipt);
	return r;
}

void fixture_run(struct ledger_fixture *fixture, struct ledger_attempt *ret)
{
	struct err err = ERR_INIT;

	fixture_accept(fixture, ret);
	if (fixture_append(fixture, ret, "prepared", "preparing", &err) < 0 ||
	    fixture_append(fixture, ret, "enrolled", "enrolled", &err) < 0 || fixture_intent(fixture, ret, &err) < 0 ||
	    fixture_append(fixture, ret, "exited", "exited", &err) < 0 || fixture_seal(fixture, ret, "hello\n", &err) < 0)
		fail_msg("%s", err.text);
}
