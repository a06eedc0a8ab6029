/* run.c - `caisson run`: one program, one boundary, one receipt. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admission/admission.h"
#include "cli/cli.h"
#include "cli/job.h"
#include "cli/outcome.h"
#include "cli/passthrough.h"
#include "cli/signals.h"
#include "cli/wiring.h"
#include "keeper/host.h"
#include "keeper/seal.h"
#include "print/output.h"

/* What one run holds on to. Freed in the opposite order. */
struct session {
	struct manifest *manifest;
	struct worker *worker;
	struct keeper *keeper;
	struct sealed sealed;
	struct plan *plan; /* NULL: refused */
	struct err refusal;
	struct passthrough *passthrough; /* NULL with --json */
	struct keeper_result result;
};

static void session_done(struct session *session)
{
	keeper_result_done(&session->result);
	passthrough_free(session->passthrough);
	plan_free(session->plan);
	seal_done(&session->sealed);
	keeper_leave(session->keeper);
	worker_free(session->worker);
	manifest_free(session->manifest);
}

/* A plan that cannot be made is a refusal, which is recorded as any other run; a value out of the contract's range is a bad
 * request. */
static int compile(struct session *session, struct err *err)
{
	struct plan_host host;
	int result = host_facts(&host, err);

	if (result)
		return result;
	result = plan_compile(session->manifest, &host, &session->sealed.plan, &admission_policy_default()->digest, &session->plan,
	                      &session->refusal);
	if (result == 0 || result == ERR_UNENFORCEABLE || result == ERR_UNSUPPORTED)
		return 0;
	*err = session->refusal;
	return result;
}

/* The start-up is part of every run: the worker is forked first, so that it makes its provider while we open the ledger. */
static int prepare(struct options *options, struct session *session, struct err *err)
{
	int result = job_manifest(options, "run", &session->manifest, err);
	struct keeper_recovered recovered;

	if (result == 0)
		result = worker_spawn(session->manifest->profile, wiring_factory(options->cgroup_parent), &session->worker, err);
	if (result == 0)
		result = wiring_open_keeper(options->ledger, &session->keeper, err);
	if (result)
		return result;

	const struct keeper_recovery leftovers = {.keeper = session->keeper, .factory = wiring_factory(options->cgroup_parent)};

	result = keeper_recover(&leftovers, &recovered, err);
	if (result == 0) /* until the run is accepted, so that no sweep takes what was found there */
		result = store_hold(session->keeper->store, err);
	if (result == 0)
		result = seal_inputs(session->keeper->store, session->manifest, &session->sealed, err);
	if (result)
		return result;
	result = compile(session, err);
	if (result && !options->manifest_file)
		options_explain(err);
	return result;
}

static int drive(const struct options *options, struct session *session, struct err *err)
{
	int result = 0;

	if (session->plan && !options->json)
		result = passthrough_new(&session->plan->limits, STDOUT_FILENO, STDERR_FILENO, &session->passthrough, err);
	if (result == 0)
		result = signals_catch(session->worker, err);
	if (result)
		return result;

	const struct keeper_once once = {
		.keeper = session->keeper,
		.worker = session->worker,
		.factory = wiring_factory(options->cgroup_parent),
		.manifest = session->manifest,
		.plan = session->plan,
		.plan_refusal = session->plan ? NULL : session->refusal.text,
		.plan_reason = session->refusal.code == ERR_UNSUPPORTED ? "unsupported" : "limit_unenforceable",
		.signals = signals_count(),
		.lasts = session->passthrough ? passthrough_follow : NULL,
		.context = session->passthrough,
	};

	result = keeper_run_once(&once, &session->result, err);
	signals_release();
	if (result == 0 && session->passthrough)
		passthrough_finish(session->passthrough, session->result.standard_output, session->result.standard_error);
	return result;
}

static int run(struct options *options, struct err *err)
{
	__attribute__((cleanup(session_done))) struct session session = {0};
	int result = 0;

	signals_ignore_pipe();
	result = prepare(options, &session, err);
	if (result == 0)
		result = drive(options, &session, err);
	if (result == 0)
		result = outcome_show(&session.result, options, err);
	return result ? result : outcome_status(&session.result, signals_first());
}

const struct command command_run = {
	.name = "run",
	.bit = FOR_RUN,
	.usage = "[options] -- PROGRAM [ARGUMENT...]\n       caisson run [--ledger DIR] [--json] --manifest FILE",
	.summary = "Runs a program in a verified boundary, shows its output, and seals a receipt.\n"
		   "Exit status: the program's; 124 out of time, 137 over a limit, 127 not found, 126 not executable,\n"
		   "128+n died of signal n; 125 for everything else.",
	.examples = "  caisson run -- python3 -c 'print(6*7)'\n"
		    "  caisson run --memory 512M --wall 30s --input main.cc:/box/main.cc -- c++ -o /out/main main.cc\n"
		    "  caisson run --stdin data.txt --pids 1 --summary -- /usr/bin/sort\n"
		    "  caisson run --json --manifest job.json\n",
	.run = run,
};
