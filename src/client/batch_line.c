/* batch_line.c - reads a line of a batch, and says what is wrong with it. */
#include "client/batch_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void batch_line_done(struct batch_line *line)
{
	json_decref_p(&line->manifest);
	line->manifest = NULL;
}

static void begin(int64_t number, const char *batch_key, struct batch_line *ret)
{
	*ret = (struct batch_line){.number = number};
	snprintf(ret->key, sizeof(ret->key), "%s-%lld", batch_key, (long long)number);
}

static void refuse(struct batch_line *line, struct err *err)
{
	refusal_of_error(err, &line->refusal);
	err_context(&line->refusal.err, err->code, "line %lld", (long long)line->number);
}

/* The parser counts the lines of the document, and this is one line of it: "line 1, column 7: …" becomes "column 7: …". */
static int parse_document(const char *text, size_t length, json_t **ret, struct err *err)
{
	static const char first[] = "line 1, ";
	struct err inner = ERR_INIT;
	int result = json_parse(text, length, ret, &inner);

	if (result == 0)
		return 0;
	return err_set(err, result, "%s", strncmp(inner.text, first, strlen(first)) == 0 ? inner.text + strlen(first) : inner.text);
}

static void free_text(char **text)
{
	free(*text);
}

/* Validates the manifest, which is at `path` of the line. Not the canonical form: that could not hold a fraction, and so not name
 * it. */
static int check_manifest(const json_t *document, const char *path, struct err *err)
{
	__attribute__((cleanup(free_text))) char *text = json_is_object(document) ? json_dumps(document, JSON_COMPACT) : NULL;
	MANIFEST_AUTO struct manifest *manifest = NULL;
	struct err inner = ERR_INIT;

	if (!json_is_object(document))
		return err_set(err, ERR_INVALID, "%s: must be an object", path);
	if (!text)
		return err_set(err, ERR_NO_MEMORY, "out of memory");

	int result = manifest_parse(text, strlen(text), &manifest, &inner);

	if (result == 0)
		return 0;
	if (*inner.text == '$')
		return err_set(err, result, "%s%s", path, inner.text + 1);
	return err_set(err, result, "%s: %s", path, inner.text);
}

static int read_wrapped(const json_t *document, struct batch_line *line, struct err *err)
{
	static const char *const keys[] = {"key", "manifest", NULL};
	struct json_at root, at;
	const char *key = NULL;

	json_at_root(document, &root);
	json_at_key(&root, "key", &at);

	int result = json_only_keys(&root, keys, err);

	if (result == 0)
		result = json_read_string(&at, KEY_MAX, &key, err);
	if (result == 0 && key) {
		result = key_check(key, err);
		if (result)
			return err_context(err, result, "%s", at.path);
		memcpy(line->key, key, strlen(key) + 1);
	}
	json_at_key(&root, "manifest", &at);
	if (result == 0)
		result = check_manifest(at.value, at.path, err);
	if (result == 0)
		line->manifest = json_incref(json_object_get(document, "manifest"));
	return result;
}

void batch_line_parse(const char *text, size_t length, int64_t number, const char *batch_key, struct batch_line *ret)
{
	JSON_AUTO json_t *document = NULL;
	struct err err = ERR_INIT;

	begin(number, batch_key, ret);

	int result = parse_document(text, length, &document, &err);

	if (result == 0 && json_object_get(document, "manifest")) {
		result = read_wrapped(document, ret, &err);
	} else if (result == 0) {
		result = check_manifest(document, "$", &err);
		if (result == 0)
			ret->manifest = json_incref(document);
	}
	if (result)
		refuse(ret, &err);
}

void batch_line_too_long(int64_t number, const char *batch_key, struct batch_line *ret)
{
	struct err err = ERR_INIT;

	begin(number, batch_key, ret);
	err_set(&err, ERR_LIMIT, "longer than %d bytes", BATCH_LINE_MAX);
	refuse(ret, &err);
}
