/* trial.c - a whole no-op run through a boundary: every step tried for real on this host. */
#include "keeper/trial.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "keeper/host.h"
#include "manifest/plan.h"

enum { TRIAL_MS = 10 * 1000, TRIAL_OUTPUT_MAX = 4096 };

struct trial {
	struct plan *plan;
	struct capture *standard_output, *standard_error;
	struct evidence_list evidence;
	struct boundary *boundary;
	const struct boundary_identity *identity;
	struct store *store;
};

static int make_plan(const char *profile, struct plan **ret, struct err *err)
{
	MANIFEST_AUTO struct manifest *manifest = NULL;
	const struct plan_sealed nothing = {.input_count = 0};
	struct digest policy;
	struct plan_host host;
	char text[256];

	snprintf(text, sizeof(text), "{\"version\":\"" MANIFEST_VERSION "\",\"profile\":\"%s\",\"command\":{\"argv\":[\"/bin/true\"]}}", profile);
	digest_of("", 0, &policy);
	int result = host_facts(&host, err);
	if (result == 0)
		result = manifest_parse(text, strlen(text), &manifest, err);
	return result ? result : plan_compile(manifest, &host, &nothing, &policy, ret, err);
}

static int await_exit(struct boundary *boundary, struct err *err)
{
	int64_t deadline_ns = clock_mono_ns() + TRIAL_MS * NS_PER_MS;
	struct boundary_event event;
	int result;

	do
		result = boundary->ops->observe(boundary, deadline_ns, &event, err);
	while (result == 0 && event.kind == BOUNDARY_INTERRUPTED);
	if (result)
		return result;
	if (event.kind != BOUNDARY_MAIN_EXITED || event.how != BOUNDARY_EXITED || event.status != 0)
		return err_set(err, ERR_UNVERIFIED, "run: /bin/true did not end with 0");
	return 0;
}

static int go(struct trial *trial, struct err *err)
{
	struct boundary *boundary = trial->boundary;
	struct boundary_drain drain;
	const struct boundary_spec spec = {
		.identity = *trial->identity,
		.plan = trial->plan,
		.store = trial->store,
		.standard_output = trial->standard_output,
		.standard_error = trial->standard_error,
	};

	int result = boundary->ops->prepare(boundary, &spec, &trial->evidence, err);
	if (result == 0)
		result = boundary->ops->create_suspended(boundary, &trial->evidence, err);
	if (result == 0)
		result = boundary->ops->enroll(boundary, &trial->evidence, err);
	if (result == 0)
		result = boundary->ops->launch(boundary, err);
	if (result == 0)
		result = await_exit(boundary, err);
	return result ? result : boundary->ops->drain(boundary, &drain, err);
}

/* Cleans up whatever came of it. */
static int carry_out(struct trial *trial, struct err *err)
{
	struct boundary_usage usage;
	struct err after = ERR_INIT;
	int result = go(trial, err);
	int cleaned = trial->boundary->ops->cleanup(trial->boundary, &usage, &after);

	if (cleaned == 0)
		cleaned = trial->boundary->ops->verify_empty(trial->boundary, &after);
	return result || cleaned == 0 ? result : err_set(err, cleaned, "cleanup: %s", after.text);
}

int trial_run(struct boundary *boundary, const char *profile, const struct boundary_identity *identity, struct store *store,
              struct probe_line *ret, struct err *err)
{
	struct trial trial = {.boundary = boundary, .identity = identity, .store = store};
	struct err reason = ERR_INIT;
	int result = make_plan(profile, &trial.plan, err);

	if (result == 0)
		result = capture_new(TRIAL_OUTPUT_MAX, OVERFLOW_TRUNCATE, -1, &trial.standard_output, err);
	if (result == 0)
		result = capture_new(TRIAL_OUTPUT_MAX, OVERFLOW_TRUNCATE, -1, &trial.standard_error, err);
	if (result == 0) {
		int went = carry_out(&trial, &reason);
		*ret = (struct probe_line){.name = "run", .result = went ? PROBE_MISSING : PROBE_OK, .required = true};
		if (went)
			snprintf(ret->reason, sizeof(ret->reason), "%.*s", (int)sizeof(ret->reason) - 1, reason.text);
		else
			snprintf(ret->reason, sizeof(ret->reason), "/bin/true, %zu properties verified, verified empty", trial.evidence.count);
	}
	capture_free(trial.standard_output);
	capture_free(trial.standard_error);
	plan_free(trial.plan);
	return result;
}
