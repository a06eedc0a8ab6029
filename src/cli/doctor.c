/* doctor.c - `caisson doctor`: what this host can enforce. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/places.h"
#include "cli/wiring.h"
#include "keeper/trial.h"
#include "print/output.h"
#include "print/page.h"

/* The identity of no ledger: what a trial leaves when it is killed is no run's. */
#define TRIAL_LEDGER "led-doctordoctordoct"

enum { LEFT_MAX = 64, LEFT_CLEANUP_MS = 5000 };

struct findings {
	struct page page;
	json_t *lines; /* NULL: text is wanted */
	bool impossible;
};

static const char *result_name(enum probe_result result)
{
	switch (result) {
	case PROBE_OK:
		return "ok";
	case PROBE_DEGRADED:
		return "degraded";
	case PROBE_MISSING:
		return "missing";
	}
	return "unknown";
}

static int add_line(void *context, const struct probe_line *line)
{
	struct findings *findings = context;
	const char *result = result_name(line->result);

	findings->impossible |= line->required && line->result == PROBE_MISSING;
	if (findings->lines) {
		json_t *object = json_pack("{s:s,s:s,s:b,s:s,s:s}", "name", line->name, "result", result, "required",
		                           line->required, "reason", line->reason, "remedy", line->remedy);

		return json_array_append_new(findings->lines, object) ? ERR_NO_MEMORY : 0;
	}
	page_add(&findings->page, "%-8s  %-24s %s\n", result, line->name, line->reason);
	if (*line->remedy)
		page_add(&findings->page, "%-8s  %-24s remedy: %s\n", "", "", line->remedy);
	return findings->page.result;
}

static int print_findings(struct findings *findings, const char *profile, struct err *err)
{
	if (!findings->lines) {
		page_add(&findings->page, "a run with profile %s is %s here\n", profile,
		         findings->impossible ? "NOT possible" : "possible");
		return page_print(&findings->page, STDOUT_FILENO, err);
	}

	JSON_AUTO json_t *report =
		json_pack("{s:s,s:b,s:O}", "profile", profile, "possible", !findings->impossible, "lines", findings->lines);

	return report ? print_json(STDOUT_FILENO, report, err) : err_set(err, ERR_NO_MEMORY, "out of memory");
}

/* A run needs a ledger that it can trust; one that is not there yet is made by the first run. */
static int probe_ledger(const char *option, struct findings *findings, struct err *err)
{
	WIRING_AUTO struct wiring wiring = WIRING_INIT;
	struct probe_line line = {.name = "ledger", .result = PROBE_OK, .required = true};
	struct err reason = ERR_INIT;
	int result = wiring_open(option, WIRING_READ, &wiring, &reason);

	if (result == ERR_NO_MEMORY)
		return err_set(err, result, "out of memory");
	if (result == 0) {
		snprintf(line.reason, sizeof(line.reason), "%s", wiring.ledger->ops->id(wiring.ledger));
	} else if (result == ERR_NOT_FOUND) {
		snprintf(line.reason, sizeof(line.reason), "not there yet, the first run makes it");
	} else {
		line.result = PROBE_MISSING;
		snprintf(line.reason, sizeof(line.reason), "%.*s", (int)sizeof(line.reason) - 1, reason.text);
		snprintf(line.remedy, sizeof(line.remedy), "mend it, or choose another directory with --ledger or CAISSON_LEDGER");
	}
	return add_line(findings, &line);
}

/* Doctors alone make boundaries of TRIAL_LEDGER, and each holds the lock while it does. Who has it alone knows that those that are there were
 * left by doctors that died. The lock's descriptor. */
static int lock_trials(bool *ret_alone, struct err *err)
{
	FD_AUTO int dir = places_open_runtime(err);
	if (dir < 0)
		return dir;

	FD_AUTO int fd = openat(dir, "doctor", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, errno, "open the doctor's lock");
	*ret_alone = flock(fd, LOCK_EX | LOCK_NB) == 0;
	if (!*ret_alone && flock(fd, LOCK_SH) < 0)
		return err_sys(err, errno, "take the doctor's lock");
	return fd_take(&fd);
}

struct left {
	struct boundary_identity list[LEFT_MAX];
	size_t count;
};

static int note_left(void *context, const struct boundary_identity *identity)
{
	struct left *left = context;

	left->list[left->count++] = *identity;
	return left->count == LEFT_MAX;
}

/* Collected first: the walk is over the groups that are removed. What cannot be removed now is the next doctor's. */
static int remove_left(const struct boundary_provider *provider, int lock, struct err *err)
{
	struct left left = {.count = 0};
	int survivors, result = provider->ops->enumerate(provider->context, TRIAL_LEDGER, note_left, &left, err);

	if (result < 0)
		return result;
	for (size_t i = 0; i < left.count; i++)
		(void)provider->ops->recover(provider->context, &left.list[i], LEFT_CLEANUP_MS, &survivors, NULL);
	return flock(lock, LOCK_SH) < 0 ? err_sys(err, errno, "share the doctor's lock") : 0;
}

static int try_run(const struct boundary_provider *provider, struct probe_line *ret, struct err *err)
{
	struct boundary *boundary = NULL;
	struct boundary_identity identity = {.ledger_id = TRIAL_LEDGER};
	bool alone = false;
	FD_AUTO int lock = lock_trials(&alone, err);

	if (lock < 0)
		return lock;

	int result = alone ? remove_left(provider, lock, err) : 0;

	if (result == 0)
		result = provider->ops->open(provider->context, &boundary, err);
	if (result)
		return result;
	id_new("bnd", identity.boundary_id);
	result = trial_run(boundary, provider->ops->kind, &identity, NULL, ret, err);
	boundary->ops->free(boundary);
	return result;
}

/* A provider that cannot be made at all says why: that is the answer, not a failure of the question. */
static int probe(const char *profile, const char *cgroup_parent, struct findings *findings, struct err *err)
{
	const struct provider_factory *factory = wiring_factory(cgroup_parent);
	struct boundary_provider *provider = NULL;
	struct probe_line line = {.name = "provider", .result = PROBE_MISSING, .required = true};
	struct err reason = ERR_INIT;
	int result = factory->make(factory->context, profile, -1, &provider, &reason);

	if (result == 0) {
		struct probe_line trial;
		result = provider->ops->probe(provider->context, add_line, findings, &reason);
		if (result == 0 && !findings->impossible)
			result = try_run(provider, &trial, &reason);
		if (result == 0 && !findings->impossible)
			result = add_line(findings, &trial);
		factory->release(factory->context, provider);
	}
	if (result == 0)
		return 0;
	if (result == ERR_NO_MEMORY)
		return err_set(err, result, "out of memory");
	snprintf(line.reason, sizeof(line.reason), "%.*s", (int)sizeof(line.reason) - 1, reason.text);
	return add_line(findings, &line);
}

static int run(struct options *options, struct err *err)
{
	const char *profile = options->profile ? options->profile : "linux";
	struct findings findings = {.page = PAGE_INIT, .lines = options->json ? json_array() : NULL};
	int result = require_operands(options, 0, "no operand", err);

	if (result == 0)
		result = probe_ledger(options->ledger, &findings, err);
	if (result == 0)
		result = probe(profile, options->cgroup_parent, &findings, err);
	if (result == 0)
		result = print_findings(&findings, profile, err);
	page_done(&findings.page);
	json_decref(findings.lines);
	if (result)
		return result;
	return findings.impossible ? STATUS_NO : STATUS_OK;
}

const struct command command_doctor = {
	.name = "doctor",
	.bit = FOR_DOCTOR,
	.usage = "[options]",
	.summary = "Tries what this host can enforce: each line with its reason and remedy. Exit status 1: no run is possible.",
	.examples = "  caisson doctor\n"
		    "  caisson doctor --json\n",
	.run = run,
};
