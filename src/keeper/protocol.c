/* protocol.c - the phase table, and the messages as JSON. */
#include "keeper/protocol.h"

#include <string.h>

#include "base/id.h"
#include "base/json.h"
#include "keeper/fields.h"

enum {
	IN_IDLE = 1 << WORKER_IDLE,
	IN_OPENED = 1 << WORKER_OPENED,
	IN_PREPARED = 1 << WORKER_PREPARED,
	IN_SUSPENDED = 1 << WORKER_SUSPENDED,
	IN_ENROLLED = 1 << WORKER_ENROLLED,
	IN_LAUNCHED = 1 << WORKER_LAUNCHED,
	IN_EXITED = 1 << WORKER_EXITED,
	IN_CLEANED = 1 << WORKER_CLEANED,
	WITH_BOUNDARY = (1 << WORKER_PHASE_COUNT) - 1 - IN_IDLE,
	ANY = WITH_BOUNDARY | IN_IDLE,
	AFTER_LAUNCH = IN_LAUNCHED | IN_EXITED,
	STAY = WORKER_PHASE_COUNT,
};

/* The one table: in which phases a request is allowed, where its success and its failure lead, and what follows when the worker goes on. */
static const struct rule {
	const char *name;
	unsigned phases;
	int success, failure;
	bool silent; /* has no answer */
	size_t fds;
	enum request_kind then; /* none: REQUEST_OPEN, which follows nothing */
	bool begins;            /* makes or starts something */
} rules[REQUEST_COUNT] = {
	[REQUEST_OPEN] = {"open", IN_IDLE, WORKER_OPENED, STAY, false},
	[REQUEST_PREPARE] = {"prepare", IN_OPENED, WORKER_PREPARED, WORKER_EXITED, false, PREPARE_FDS, REQUEST_CREATE, true},
	[REQUEST_CREATE] = {"create", IN_PREPARED, WORKER_SUSPENDED, WORKER_EXITED, false, 0, REQUEST_ENROLL, true},
	[REQUEST_ENROLL] = {"enroll", IN_SUSPENDED, WORKER_ENROLLED, WORKER_EXITED, false},
	[REQUEST_LAUNCH] = {"launch", IN_ENROLLED, WORKER_LAUNCHED, WORKER_EXITED, false, .begins = true},
	[REQUEST_OBSERVE] = {"observe", AFTER_LAUNCH, STAY, STAY, false, 0, REQUEST_DRAIN},
	[REQUEST_TERMINATE] = {"terminate", AFTER_LAUNCH, STAY, STAY, false},
	[REQUEST_KILL] = {"kill", WITH_BOUNDARY, WORKER_EXITED, WORKER_EXITED, false},
	[REQUEST_DRAIN] = {"drain", AFTER_LAUNCH, STAY, STAY, false, 0, REQUEST_CLEANUP},
	[REQUEST_CLEANUP] = {"cleanup", WITH_BOUNDARY, WORKER_CLEANED, WORKER_EXITED, false, 0, REQUEST_VERIFY},
	[REQUEST_VERIFY] = {"verify", IN_CLEANED, STAY, STAY, false},
	[REQUEST_COLLECT] = {"collect", IN_CLEANED, STAY, STAY, false, COLLECT_FDS},
	[REQUEST_INTERRUPT] = {"interrupt", ANY, STAY, STAY, true},
	[REQUEST_FREE] = {"free", WITH_BOUNDARY, WORKER_IDLE, WORKER_IDLE, true},
};

static const char *const phase_names[WORKER_PHASE_COUNT] = {
	"idle", "opened", "prepared", "suspended", "enrolled", "launched", "exited", "cleaned",
};

bool protocol_allows(enum worker_phase phase, enum request_kind kind)
{
	return rules[kind].phases & (1u << phase);
}

bool protocol_replies(enum request_kind kind)
{
	return !rules[kind].silent;
}

size_t protocol_fds(enum request_kind kind)
{
	return rules[kind].fds;
}

bool protocol_begins(enum request_kind kind)
{
	return rules[kind].begins;
}

bool protocol_begun(const struct reply *reply)
{
	return !rules[reply->kind].begins || reply->error.code != ERR_FENCED;
}

enum worker_phase protocol_next(enum worker_phase phase, enum request_kind kind, bool succeeded, const struct boundary_event *event)
{
	if (event && (event->kind == BOUNDARY_MAIN_EXITED || event->kind == BOUNDARY_LOST))
		return WORKER_EXITED;
	int next = succeeded ? rules[kind].success : rules[kind].failure;
	return next == STAY ? phase : (enum worker_phase)next;
}

enum request_kind protocol_then(const struct reply *reply)
{
	enum request_kind then = rules[reply->kind].then;
	bool ended = reply->kind != REQUEST_OBSERVE || reply->event.kind == BOUNDARY_MAIN_EXITED;
	return reply->error.code == 0 && ended && then != REQUEST_OPEN ? then : REQUEST_COUNT;
}

const char *request_name(enum request_kind kind)
{
	return rules[kind].name;
}

const char *worker_phase_name(enum worker_phase phase)
{
	return phase_names[phase];
}

_Static_assert(sizeof(enum boundary_event_kind) == sizeof(int) && sizeof(enum boundary_limit) == sizeof(int) &&
               sizeof(enum boundary_exit) == sizeof(int) && sizeof(enum evidence_grade) == sizeof(int), "enums travel as FIELD_INT");

#define NUMBER(record, member, low, high) {#member, FIELD_INT64, offsetof(struct record, member), low, high}
#define SMALL(record, member, low, high) {#member, FIELD_INT, offsetof(struct record, member), low, high}
#define FLAG(record, member) {#member, FIELD_BOOL, offsetof(struct record, member), 0, 1}
#define TEXT(record, member) {#member, FIELD_TEXT, offsetof(struct record, member), 0, sizeof(((struct record *)NULL)->member)}
#define END {NULL, FIELD_INT, 0, 0, 0}

static const struct field identity_fields[] = {TEXT(boundary_identity, ledger_id), TEXT(boundary_identity, boundary_id), END};

static const struct field until_fields[] = {NUMBER(request, deadline_ns, INT64_MIN, INT64_MAX), END};

static const struct field error_fields[] = {SMALL(err, code, ERR_INTERNAL, -1), TEXT(err, text), END};

static const struct field line_fields[] = {
	TEXT(evidence_line, name),
	SMALL(evidence_line, grade, EVIDENCE_OBSERVED, EVIDENCE_PROBED),
	TEXT(evidence_line, detail),
	END,
};

static const struct field event_fields[] = {
	SMALL(boundary_event, kind, BOUNDARY_MAIN_EXITED, BOUNDARY_LOST),
	NUMBER(boundary_event, at_ns, INT64_MIN, INT64_MAX),
	SMALL(boundary_event, limit, BOUNDARY_LIMIT_WALL, BOUNDARY_LIMIT_MEMORY),
	SMALL(boundary_event, how, BOUNDARY_EXITED, BOUNDARY_NOT_EXECUTED),
	SMALL(boundary_event, status, 0, INT32_MAX),
	NUMBER(boundary_event, launched_at_ns, INT64_MIN, INT64_MAX),
	FLAG(boundary_event, killed_by_us),
	SMALL(boundary_event, descendants_alive, -1, INT32_MAX),
	TEXT(boundary_event, detail),
	END,
};

static const struct field drain_fields[] = {FLAG(boundary_drain, stdout_retained), FLAG(boundary_drain, stderr_retained), END};

static const struct field usage_fields[] = {
	NUMBER(boundary_usage, cpu_user_ns, -1, INT64_MAX),
	NUMBER(boundary_usage, cpu_system_ns, -1, INT64_MAX),
	NUMBER(boundary_usage, cpu_total_ns, -1, INT64_MAX),
	NUMBER(boundary_usage, memory_peak_bytes, -1, INT64_MAX),
	NUMBER(boundary_usage, memory_peak_anon_sampled_bytes, -1, INT64_MAX),
	NUMBER(boundary_usage, pids_peak, -1, INT64_MAX),
	NUMBER(boundary_usage, oom_kills, -1, INT64_MAX),
	SMALL(boundary_usage, survivors_killed, -1, INT32_MAX),
	FLAG(boundary_usage, space_full),
	END,
};

static const struct field capture_fields[] = {
	NUMBER(capture_state, total_bytes, 0, INT64_MAX),
	NUMBER(capture_state, kept_bytes, 0, INT64_MAX),
	NUMBER(capture_state, dropped_bytes, 0, INT64_MAX),
	FLAG(capture_state, overflow),
	FLAG(capture_state, drained),
	END,
};

/* Puts a new value (or NULL, when there was no memory for it) into an object. */
static int put(json_t *object, const char *key, json_t *value, struct err *err)
{
	if (json_object_set_new(object, key, value) == 0)
		return 0;
	return err_set(err, ERR_NO_MEMORY, "out of memory for a message");
}

static json_t *new_message(enum request_kind kind)
{
	json_t *message = json_object();
	if (message && json_object_set_new(message, "op", json_string(rules[kind].name)) < 0) {
		json_decref(message);
		return NULL;
	}
	return message;
}

/* Parses a message whose keys are a subset of these, and finds its kind. */
static int open_message(const char *text, size_t length, const char *const *keys, json_t **ret, struct json_at *ret_root,
                        enum request_kind *ret_kind, struct err *err)
{
	JSON_AUTO json_t *message = NULL;
	struct json_at op;
	const char *name = "";
	int result = json_parse(text, length, &message, err);
	if (result < 0)
		return result;
	json_at_root(message, ret_root);
	result = json_only_keys(ret_root, keys, err);
	json_at_key(ret_root, "op", &op);
	if (result == 0)
		result = json_read_string(&op, SIZE_MAX, &name, err);
	if (result < 0)
		return result;
	for (int kind = 0; kind < REQUEST_COUNT; kind++)
		if (strcmp(name, rules[kind].name) == 0) {
			*ret_kind = (enum request_kind)kind;
			*ret = message;
			message = NULL;
			return 0;
		}
	return err_set(err, ERR_INVALID, "%s: is no request", op.path);
}

static int read_part(const struct json_at *root, const char *key, const struct field *fields, void *record, struct err *err)
{
	struct json_at part;
	json_at_key(root, key, &part);
	return fields_read(fields, &part, record, err);
}

/* The part that a request's or a successful reply's kind carries besides "op"; fields NULL: none. */
struct part {
	const char *name;
	const struct field *fields;
	size_t offset;
};

static const struct part request_parts[REQUEST_COUNT] = {
	[REQUEST_PREPARE] = {"identity", identity_fields, offsetof(struct request, identity)},
	[REQUEST_OBSERVE] = {"until", until_fields, 0},
};

static const struct part reply_parts[REQUEST_COUNT] = {
	[REQUEST_OBSERVE] = {"event", event_fields, offsetof(struct reply, event)},
	[REQUEST_DRAIN] = {"drain", drain_fields, offsetof(struct reply, drain)},
	[REQUEST_CLEANUP] = {"usage", usage_fields, offsetof(struct reply, usage)},
};

int request_encode(const struct request *request, struct buf *ret, struct err *err)
{
	JSON_AUTO json_t *message = new_message(request->kind);
	const struct part *part = &request_parts[request->kind];
	if (!message)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a message");
	int result = 0;
	if (part->fields)
		result = put(message, part->name, fields_write(part->fields, (const char *)request + part->offset), err);
	if (result == 0 && rules[request->kind].begins)
		result = put(message, "lease_ends_at", json_integer(request->lease_ends_at_ns), err);
	if (result == 0 && request->go_on)
		result = put(message, "go_on", json_true(), err);
	return result < 0 ? result : json_canonical(message, ret, err);
}

/* There, it is true: a request that does not go on does not say so. */
static int read_go_on(const struct json_at *root, struct request *ret, struct err *err)
{
	struct json_at go_on;
	json_at_key(root, "go_on", &go_on);
	ret->go_on = go_on.value;
	if (!ret->go_on || (json_is_true(go_on.value) && (ret->kind == REQUEST_PREPARE || ret->kind == REQUEST_OBSERVE)))
		return 0;
	return err_set(err, ERR_INVALID, "%s: a request %s does not go on", go_on.path, rules[ret->kind].name);
}

static int read_lease_end(const struct json_at *root, struct request *ret, struct err *err)
{
	struct json_at end;
	json_at_key(root, "lease_ends_at", &end);
	return rules[ret->kind].begins ? json_read_int(&end, 0, INT64_MAX, &ret->lease_ends_at_ns, err) : 0;
}

static int decode_request(const char *text, size_t length, struct request *ret, struct err *err)
{
	static const char *const keys[] = {"op", "identity", "until", "lease_ends_at", "go_on", NULL};
	JSON_AUTO json_t *message = NULL;
	struct json_at root;
	int result = open_message(text, length, keys, &message, &root, &ret->kind, err);
	if (result < 0)
		return result;
	const struct part *part = &request_parts[ret->kind];
	result = read_go_on(&root, ret, err);
	if (result == 0)
		result = read_lease_end(&root, ret, err);
	if (result < 0)
		return result;
	if (json_object_size(message) != 1u + (part->fields != NULL) + rules[ret->kind].begins + ret->go_on)
		return err_set(err, ERR_INVALID, "$: a request %s has other parts", rules[ret->kind].name);
	if (part->fields)
		result = read_part(&root, part->name, part->fields, (char *)ret + part->offset, err);
	if (result == 0 && ret->kind == REQUEST_PREPARE &&
	    (!id_valid("led", ret->identity.ledger_id) || !id_valid("bnd", ret->identity.boundary_id)))
		return err_set(err, ERR_INVALID, "$.identity: is no ledger and boundary");
	return result;
}

int request_decode(const char *text, size_t length, struct request *ret, struct err *err)
{
	struct err inner = ERR_INIT;
	*ret = (struct request){0};
	int result = decode_request(text, length, ret, &inner);
	if (result < 0)
		return err_set(err, ERR_PROTOCOL, "a request: %s", inner.text);
	return 0;
}

static bool has_evidence(enum request_kind kind)
{
	return kind == REQUEST_PREPARE || kind == REQUEST_CREATE || kind == REQUEST_ENROLL;
}

static int put_evidence(json_t *message, const struct evidence_list *list, struct err *err)
{
	json_t *lines = json_array();
	int result = put(message, "evidence", lines, err);
	for (size_t i = 0; result == 0 && i < list->count; i++)
		if (json_array_append_new(lines, fields_write(line_fields, &list->lines[i])) < 0)
			result = err_set(err, ERR_NO_MEMORY, "out of memory for evidence");
	return result;
}

static int put_streams(json_t *message, const struct reply *reply, struct err *err)
{
	int result = put(message, "stdout", fields_write(capture_fields, &reply->standard_output), err);
	return result < 0 ? result : put(message, "stderr", fields_write(capture_fields, &reply->standard_error), err);
}

int reply_encode(const struct reply *reply, struct buf *ret, struct err *err)
{
	JSON_AUTO json_t *message = new_message(reply->kind);
	const struct part *part = &reply_parts[reply->kind];
	if (!message)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a message");
	int result = put(message, "at_ns", json_integer(reply->at_ns), err);
	if (result == 0 && reply->error.code < 0)
		result = put(message, "error", fields_write(error_fields, &reply->error), err);
	else if (result == 0 && part->fields)
		result = put(message, part->name, fields_write(part->fields, (const char *)reply + part->offset), err);
	if (result == 0 && has_evidence(reply->kind))
		result = put_evidence(message, &reply->evidence, err);
	if (result == 0 && reply->kind == REQUEST_DRAIN)
		result = put_streams(message, reply, err);
	return result < 0 ? result : json_canonical(message, ret, err);
}

static int read_evidence(const struct json_at *root, struct evidence_list *ret, struct err *err)
{
	struct json_at lines, line;
	json_at_key(root, "evidence", &lines);
	size_t count = json_array_size(lines.value);
	if (!json_is_array(lines.value) || count > EVIDENCE_MAX)
		return err_set(err, ERR_INVALID, "%s: must be an array of at most %d lines", lines.path, EVIDENCE_MAX);
	for (size_t i = 0; i < count; i++) {
		json_at_index(&lines, i, &line);
		int result = fields_read(line_fields, &line, &ret->lines[i], err);
		if (result < 0)
			return result;
	}
	ret->count = count;
	return 0;
}

static int decode_reply(const char *text, size_t length, struct reply *ret, struct err *err)
{
	static const char *const keys[] = {"op", "at_ns", "error", "event", "drain", "usage", "evidence", "stdout", "stderr", NULL};
	JSON_AUTO json_t *message = NULL;
	struct json_at root, error, at;
	int result = open_message(text, length, keys, &message, &root, &ret->kind, err);
	if (result < 0)
		return result;
	const struct part *part = &reply_parts[ret->kind];
	json_at_key(&root, "error", &error);
	json_at_key(&root, "at_ns", &at);
	size_t parts = 2;
	result = at.value ? json_read_int(&at, 0, INT64_MAX, &ret->at_ns, err) : err_set(err, ERR_INVALID, "%s: is missing", at.path);
	if (result < 0)
		return result;
	if (error.value) {
		parts++;
		result = fields_read(error_fields, &error, &ret->error, err);
	} else if (part->fields) {
		parts++;
		result = read_part(&root, part->name, part->fields, (char *)ret + part->offset, err);
	}
	if (result == 0 && has_evidence(ret->kind)) {
		parts++;
		result = read_evidence(&root, &ret->evidence, err);
	}
	if (result == 0 && ret->kind == REQUEST_DRAIN) {
		parts += 2;
		result = read_part(&root, "stdout", capture_fields, &ret->standard_output, err);
		if (result == 0)
			result = read_part(&root, "stderr", capture_fields, &ret->standard_error, err);
	}
	if (result == 0 && json_object_size(message) != parts)
		return err_set(err, ERR_INVALID, "$: a reply to %s has other parts", rules[ret->kind].name);
	return result;
}

int reply_decode(const char *text, size_t length, struct reply *ret, struct err *err)
{
	struct err inner = ERR_INIT;
	*ret = (struct reply){0};
	int result = decode_reply(text, length, ret, &inner);
	if (result < 0)
		return err_set(err, ERR_PROTOCOL, "a reply: %s", inner.text);
	return 0;
}
