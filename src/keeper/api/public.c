/* public.c - the public view of a record: of each kind, the members that are named here, and nothing else.
 *
 * Ids of boundaries and owners, leases, paths of the host and details that may name them stay in the ledger (contract, "Evidence").
 * A kind that is new is shown without its members until somebody has decided. */
#include <string.h>

#include "base/clock.h"
#include "keeper/api/api_internal.h"

enum { MEMBERS_MAX = 4 };

static const struct {
	const char *kind;
	const char *members[MEMBERS_MAX + 1];
} views[] = {
	{"accepted", {"profile", "manifest", "plan"}},
	{"admission", {"admit", "admission", "policy", "findings"}},
	{"intent", {"steps"}},
	{"refused", {"reason"}},
	{"enrolled", {"evidence"}},
	{"step_failed", {"step", "reason"}},
	{"cancel", {"cause"}},
	{"limit", {"cause"}},
	{"main_exited", {"how", "code", "signal", "descendants_alive"}},
	{"drained", {"stdout_retained", "stderr_retained"}},
	{"boundary_lost", {"reason"}},
	{"cleaned", {"usage"}},
	{"cleanup_failed", {"reason"}},
	{"verify_failed", {"reason"}},
	{"recovery_started", {"reason"}},
	{"collected", {"artifacts"}},
	{"artifacts_rejected", {"rejected", "rejections"}},
	{"quarantined", {"reason"}},
	{"provisional_result", {"verdict", "reason"}},
};

static const char *const *members_of(const char *kind)
{
	static const char *const none[] = {NULL};
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
		if (strcmp(views[i].kind, kind) == 0)
			return views[i].members;
	return none;
}

json_t *public_record(const struct ledger_record *record)
{
	char at[CLOCK_TEXT_SIZE];
	JSON_AUTO json_t *body = NULL;
	json_t *view = json_pack("{s:s}", "at", clock_format(record->at_ms, at));
	if (!view || json_parse(record->body, strlen(record->body), &body, NULL))
		return view; /* a damaged one has nothing to show */
	for (const char *const *member = members_of(record->kind); *member; member++) {
		json_t *value = json_object_get(body, *member);
		if (value && json_object_set(view, *member, value) < 0) {
			json_decref(view);
			return NULL;
		}
	}
	return view;
}
