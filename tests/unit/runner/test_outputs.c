/* test_outputs.c - what becomes of a run's outputs: rows and a receipt, or every rejection by name, or nobody's success. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/list.h"
#include "stage.h"

enum { MANY = 200 };

static const struct recording_event exits[] = {{.at_ms = 5, .happening = RECORDING_EXIT}};

static void open_with(struct stage *stage, const struct recording_output *outputs, size_t count)
{
	stage_open(stage, "{}");
	stage->script = (struct recording_script){.events = exits, .event_count = 1, .outputs = outputs, .output_count = count};
}

static int append_row(void *context, const struct ledger_artifact *artifact)
{
	char *text = context;
	size_t used = strlen(text);
	snprintf(text + used, 256 - used, "%s:%lld:%o ", artifact->path, (long long)artifact->size_bytes, artifact->mode);
	return 0;
}

static void assert_rows(struct stage *stage, const char *expected)
{
	char text[256] = "";
	struct ledger *ledger = stage->ledger.inner;
	assert_int_equal(ledger->ops->artifacts(ledger, stage->run.attempt.run_id, append_row, text, NULL), 0);
	assert_string_equal(text, expected);
}

static void assert_receipt(const struct stage *stage, const char *path, const char *expected)
{
	char *found = scene_receipt_get(&stage->run.result, path);
	assert_string_equal(found, expected);
	free(found);
}

static void artifacts_are_sealed_as_rows_and_in_the_receipt(void **state)
{
	static const struct recording_output outputs[] = {{"a\nb", "text", false, NULL}, {"bin/tool", "", true, NULL}};
	struct stage stage;
	(void)state;
	open_with(&stage, outputs, 2);
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_SUCCEEDED, "");
	assert_rows(&stage, "a\nb:4:644 bin/tool:0:755 ");
	char *artifacts = scene_receipt_get(&stage.run.result, "artifacts");
	assert_non_null(strstr(artifacts, "\"path\": \"a\\\\x0ab\""));
	free(artifacts);
	assert_true(stage_is_recorded(&stage, "collected"));
	assert_int_equal(stage.ledger.calls[LEDGER_SHIM_APPEND], 0); /* no transaction more than without */
	stage_close(&stage);
}

static void cancel(struct ledger *inner, void *context)
{
	bool sealed;
	assert_int_equal(inner->ops->request_cancel(inner, ((struct scene_run *)context)->attempt.run_id, &sealed, NULL), 0);
}

static void a_cancellation_while_outputs_are_collected_leaves_none(void **state)
{
	static const struct recording_output outputs[] = {{"a", "text", false, NULL}};
	struct stage stage;
	(void)state;
	open_with(&stage, outputs, 1);
	stage.ledger.before_seal = cancel;
	stage.ledger.context = &stage.run;
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_CANCELLED, "cancel_requested");
	assert_receipt(&stage, "artifacts", "[]");
	assert_rows(&stage, "");
	assert_false(stage_is_recorded(&stage, "collected"));
	assert_true(stage_is_recorded(&stage, "cancel"));
	stage_close(&stage);
}

static void each_rejection_is_named_and_nothing_is_kept(void **state)
{
	static const struct recording_output outputs[] = {
		{"fifo", "", false, "is a FIFO"}, {"good", "text", false, NULL}, {"link\x1b", "", false, "is a symbolic link"}};
	struct stage stage;
	(void)state;
	open_with(&stage, outputs, 3);
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_FAILED, "artifact_rejected");
	assert_string_equal(stage.run.result.verdict.detail, "fifo: is a FIFO; link\\x1b: is a symbolic link");
	assert_receipt(&stage, "artifacts", "[]");
	assert_rows(&stage, "");
	assert_true(stage_is_recorded(&stage, "artifacts_rejected"));
	stage_close(&stage);
}

static void more_rejections_than_fit_are_counted(void **state)
{
	static struct recording_output outputs[MANY];
	static char names[MANY][32];
	struct stage stage;
	(void)state;
	for (int i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "%03d", i);
		outputs[i] = (struct recording_output){.path = names[i], .text = "", .rejected = "is a FIFO"};
	}
	open_with(&stage, outputs, MANY);
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_FAILED, "artifact_rejected");
	const char *detail = stage.run.result.verdict.detail, *more = strstr(detail, "; and ");
	int said = 0;
	for (const char *at = detail; (at = strstr(at, "is a FIFO")); at++)
		said++;
	assert_non_null(more);
	assert_int_equal(strtol(more + 6, NULL, 10) + said, MANY);
	stage_close(&stage);
}

static void a_name_that_is_longer_than_a_detail_is_cut(void **state)
{
	static char name[ARTIFACT_SHOWN_SIZE];
	struct stage stage;
	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	const struct recording_output outputs[] = {{name, "", false, "is a FIFO"}};
	open_with(&stage, outputs, 1);
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_FAILED, "artifact_rejected");
	assert_int_equal(strncmp(stage.run.result.verdict.detail, name, 100), 0);
	assert_string_equal(stage.run.result.verdict.detail + 100, "...: is a FIFO");
	stage_close(&stage);
}

static void what_is_required_and_missing_fails_the_run(void **state)
{
	struct stage stage;
	(void)state;
	open_with(&stage, NULL, 0);
	char **required = calloc(2, sizeof(*required));
	required[0] = strdup("result.json");
	free(stage.run.plan->required_outputs);
	stage.run.plan->required_outputs = required;
	stage.run.plan->required_output_count = 1;
	stage_drive(&stage);
	stage_assert_verdict(&stage, VERDICT_FAILED, "artifact_rejected");
	assert_string_equal(stage.run.result.verdict.detail, "result.json: is required, and no file is there");
	stage_close(&stage);
}

static void a_collection_that_fails_is_our_failure(void **state)
{
	static const struct recording_output outputs[] = {{"good", "text", false, NULL}};
	static const int codes[] = {ERR_NO_SPACE, ERR_IO, ERR_LOST};
	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct stage stage;
		open_with(&stage, outputs, 1);
		stage.script.fail[RECORDING_COLLECT] = codes[i];
		stage_drive(&stage);
		stage_assert_verdict(&stage, VERDICT_BOUNDARY_ERROR, "artifacts_not_kept");
		assert_receipt(&stage, "artifacts", "[]");
		assert_receipt(&stage, "boundary.verified_empty", "true");
		assert_rows(&stage, "");
		stage_close(&stage);
	}
}

/* A keeper that comes later finds an end that is proven, but no output place any more. */
static void a_recovery_calls_no_run_succeeded_without_its_outputs(void **state)
{
	static const char *const wrote[][2] = {
		{"launched", "{\"at_ns\":5000000}"},
		{"main_exited", "{\"at_ns\":6000000,\"exit_at_ns\":6000000,\"how\":\"exited\",\"code\":0,\"signal\":0,\"killed_by_us\":false,"
	                        "\"descendants_alive\":0}"},
		{"drained", "{\"at_ns\":7000000,\"stdout_retained\":false,\"stderr_retained\":false}"},
		{"cleaned", "{\"at_ns\":8000000,\"usage\":{\"cpu_total_ns\":1,\"oom_kills\":0,\"survivors_killed\":0}}"},
	};
	struct stage stage;
	struct err err = ERR_INIT;
	(void)state;
	stage_open(&stage, "{}");
	scene_accept(&stage.run);
	const struct ledger_attempt *attempt = &stage.run.attempt;
	struct ledger *ledger = stage.ledger.inner;
	struct ledger_record record = {.at_ms = 1000, .kind = "launch_intent", .body = "{}"};
	assert_int_equal(ledger->ops->commit_launch_intent(ledger, attempt->attempt_id, attempt->owner_id, 1, &record, 1, &err), 0);
	for (size_t i = 0; i < sizeof(wrote) / sizeof(wrote[0]); i++) {
		snprintf(record.kind, sizeof(record.kind), "%s", wrote[i][0]);
		record.body = wrote[i][1];
		assert_int_equal(ledger->ops->append(ledger, attempt->attempt_id, attempt->owner_id, 1, "cleaned", &record, 1, false, &err), 0);
	}
	stage.scene.ledger = ledger;
	scene_new_owner(&stage.scene);
	assert_int_equal(scene_recover(&stage.scene, &stage.provider, attempt->attempt_id, &stage.run.result, &err), 0);
	stage_assert_verdict(&stage, VERDICT_INTERRUPTED, "outputs_not_collected");
	assert_receipt(&stage, "artifacts", "[]");
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(artifacts_are_sealed_as_rows_and_in_the_receipt),
		cmocka_unit_test(a_cancellation_while_outputs_are_collected_leaves_none),
		cmocka_unit_test(each_rejection_is_named_and_nothing_is_kept),
		cmocka_unit_test(more_rejections_than_fit_are_counted),
		cmocka_unit_test(a_name_that_is_longer_than_a_detail_is_cut),
		cmocka_unit_test(what_is_required_and_missing_fails_the_run),
		cmocka_unit_test(a_collection_that_fails_is_our_failure),
		cmocka_unit_test(a_recovery_calls_no_run_succeeded_without_its_outputs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
