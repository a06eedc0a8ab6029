/* tree_listing.c - reads a listing line by line, without having all of it in memory twice. */
#include <stdlib.h>
#include <string.h>

#include "artifact/name.h"
#include "artifact/tree.h"
#include "base/json.h"

void tree_line_done(struct tree_line *line)
{
	free(line->path);
	free(line->target);
	*line = (struct tree_line){.path = NULL};
}

/* An element has no other inside: it ends with the first brace that is in no string. NULL: nowhere. */
static const char *element_end(const char *at, const char *end)
{
	bool in_string = false, escaped = false;
	for (; at < end; at++) {
		if (*at == '}' && !in_string)
			return at + 1;
		if (*at == '"' && !escaped)
			in_string = !in_string;
		escaped = in_string && *at == '\\' && !escaped;
	}
	return NULL;
}

static int read_kind(const struct json_at *at, enum tree_kind *ret, struct err *err)
{
	static const char *const names[] = {[TREE_DIR] = "dir", [TREE_FILE] = "file", [TREE_LINK] = "link"};
	const char *text = "";
	int result = json_need_string(at, "kind", &text, err);
	if (result < 0)
		return result;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		*ret = (enum tree_kind)i;
		if (strcmp(text, names[i]) == 0)
			return 0;
	}
	return err_set(err, ERR_INVALID, "%s.kind: must be dir, file or link", at->path);
}

static int read_file(const struct json_at *at, struct tree_line *ret, struct err *err)
{
	const char *mode = "", *digest = "";
	struct json_at size;
	ret->size_bytes = -1;
	int result = json_need_string(at, "mode", &mode, err);
	if (result == 0 && strcmp(mode, "0444") != 0 && strcmp(mode, "0555") != 0)
		result = err_set(err, ERR_INVALID, "%s.mode: must be 0444 or 0555", at->path);
	if (result == 0)
		result = json_need_string(at, "sha256", &digest, err);
	if (result == 0 && digest_parse(digest, &ret->sha256, NULL) < 0)
		result = err_set(err, ERR_INVALID, "%s.sha256: must be sha256: and 64 hex digits", at->path);
	json_at_key(at, "size_bytes", &size);
	if (result == 0)
		result = json_read_int(&size, 0, INT64_MAX, &ret->size_bytes, err);
	if (result == 0 && ret->size_bytes < 0)
		result = err_set(err, ERR_INVALID, "%s: is missing", size.path);
	ret->executable = strcmp(mode, "0555") == 0;
	return result;
}

static int read_link(const struct json_at *at, struct tree_line *ret, struct err *err)
{
	const char *target = "";
	int result = json_need_string(at, "target", &target, err);
	if (result < 0)
		return result;
	result = artifact_parse_text(target, &ret->target, err);
	return result < 0 ? err_context(err, result, "%s.target", at->path) : 0;
}

static int read_path(const struct json_at *at, struct tree_line *ret, struct err *err)
{
	const char *path = "";
	size_t depth = 1;
	int result = json_need_string(at, "path", &path, err);
	if (result < 0)
		return result;
	result = artifact_parse_path(path, &ret->path, err);
	if (result < 0)
		return err_context(err, result, "%s.path", at->path);
	for (const char *slash = ret->path; (slash = strchr(slash, '/')); slash++)
		depth++;
	return depth > TREE_DEPTH_MAX ? err_set(err, ERR_LIMIT, "%s.path: is more than %d levels deep", at->path, TREE_DEPTH_MAX) : 0;
}

static int read_line(const json_t *document, struct tree_line *ret, struct err *err)
{
	static const char *const keys[][6] = {
		[TREE_DIR] = {"kind", "path", NULL},
		[TREE_FILE] = {"kind", "mode", "path", "sha256", "size_bytes", NULL},
		[TREE_LINK] = {"kind", "path", "target", NULL},
	};
	struct json_at at;
	json_at_root(document, &at);
	int result = read_kind(&at, &ret->kind, err);
	if (result == 0)
		result = json_only_keys(&at, keys[ret->kind], err);
	if (result == 0 && ret->kind == TREE_FILE)
		result = read_file(&at, ret, err);
	if (result == 0 && ret->kind == TREE_LINK)
		result = read_link(&at, ret, err);
	return result == 0 ? read_path(&at, ret, err) : result;
}

/* Past what separates two lines: 1 when one follows, 0 at the end. */
static int step(struct tree_cursor *cursor, struct err *err)
{
	size_t left = (size_t)(cursor->end - cursor->at);
	if (left >= 2 && cursor->number == 0 && cursor->at[0] == '[' && cursor->at[1] == '{') {
		cursor->at++;
		return 1;
	}
	if (left >= 2 && cursor->number > 0 && cursor->at[0] == ',' && cursor->at[1] == '{') {
		cursor->at++;
		return 1;
	}
	if (cursor->number > 0 ? left == 1 && *cursor->at == ']' : left == 2 && memcmp(cursor->at, "[]", 2) == 0)
		return 0;
	return err_set(err, ERR_INVALID, "entry %zu: is not where canonical JSON has one", cursor->number + 1);
}

int tree_next(struct tree_cursor *cursor, struct tree_line *ret, struct err *err)
{
	JSON_AUTO json_t *document = NULL;
	*ret = (struct tree_line){.path = NULL};
	int result = step(cursor, err);
	if (result <= 0)
		return result;
	const char *end = element_end(cursor->at, cursor->end);
	if (!end)
		return err_set(err, ERR_INVALID, "entry %zu: has no end", cursor->number + 1);
	if (cursor->number == TREE_ENTRIES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d names in a directory input", TREE_ENTRIES_MAX);
	result = json_parse(cursor->at, (size_t)(end - cursor->at), &document, err);
	if (result == 0)
		result = read_line(document, ret, err);
	cursor->number++;
	cursor->at = end;
	if (result == 0)
		return 1;
	tree_line_done(ret);
	return err_context(err, result, "entry %zu", cursor->number);
}
