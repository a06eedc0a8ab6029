/* draft.c - builds the manifest's document from options. */
#include "cli/draft.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "manifest/manifest.h"

enum { PATH_PART_MAX = 32 };

void draft_done(struct draft *draft)
{
	json_decref_p(&draft->document);
	draft->document = NULL;
}

static int no_memory(struct err *err)
{
	return err_set(err, ERR_NO_MEMORY, "out of memory");
}

/* The member `key` of `object`, made with `make` when it is not there. Borrowed; NULL when out of memory. */
static json_t *member(json_t *object, const char *key, json_t *(*make)(void))
{
	json_t *value = json_object_get(object, key);

	if (value)
		return value;
	value = make();
	return json_object_set_new(object, key, value) == 0 ? value : NULL;
}

/* Walks to the object that holds the last part of path. Borrowed; NULL when out of memory. */
static json_t *walk(struct draft *draft, const char *path, const char **ret_last)
{
	if (!draft->document)
		draft->document = json_object();

	json_t *at = draft->document;

	for (const char *dot = strchr(path, '.'); dot && at; dot = strchr(path, '.')) {
		char part[PATH_PART_MAX] = "";
		size_t length = (size_t)(dot - path);

		memcpy(part, path, length < sizeof(part) ? length : sizeof(part) - 1);
		at = member(at, part, json_object);
		path = dot + 1;
	}
	*ret_last = path;
	return at;
}

int draft_set(struct draft *draft, const char *path, json_t *value, struct err *err)
{
	const char *last = NULL;
	json_t *object = walk(draft, path, &last);

	if (json_object_set_new(object, last, value) != 0)
		return no_memory(err);
	return 0;
}

int draft_append(struct draft *draft, const char *path, json_t *value, struct err *err)
{
	const char *last = NULL;
	json_t *object = walk(draft, path, &last);
	json_t *array = object ? member(object, last, json_array) : NULL;

	if (json_array_append_new(array, value) != 0)
		return no_memory(err);
	return 0;
}

/* A new JSON string. Jansson refuses text that is not UTF-8. */
static int new_text(const char *text, size_t length, json_t **ret, struct err *err)
{
	json_t *value = json_stringn(text, length);

	if (!value)
		return err_set(err, ERR_INVALID, "the text is not valid UTF-8");
	*ret = value;
	return 0;
}

int draft_set_text(struct draft *draft, const char *path, const char *text, struct err *err)
{
	json_t *value = NULL;
	int result = new_text(text, strlen(text), &value, err);

	return result ? result : draft_set(draft, path, value, err);
}

int draft_set_pair(struct draft *draft, const char *path, const char *pair, struct err *err)
{
	const char *equals = strchr(pair, '=');
	const char *last = NULL;
	json_t *object = walk(draft, path, &last);
	json_t *pairs = object ? member(object, last, json_object) : NULL;
	json_t *value = NULL;

	if (!pairs)
		return no_memory(err);
	if (!equals || equals == pair)
		return err_set(err, ERR_INVALID, "\"%s\" is not NAME=VALUE", pair);

	int result = new_text(equals + 1, strlen(equals + 1), &value, err);

	if (result)
		return result;
	if (json_object_setn_new(pairs, pair, (size_t)(equals - pair), value) != 0)
		return err_set(err, ERR_INVALID, "the name is not valid UTF-8");
	return 0;
}

/* What the store has may be executed, a file as far as its owner may. */
static int input_mode(const char *source, bool is_digest, const char **ret, struct err *err)
{
	struct stat status = {.st_mode = S_IXUSR};

	if (!is_digest && stat(source, &status) < 0)
		return err_sys(err, errno, "%s", source);
	*ret = status.st_mode & S_IXUSR ? "0555" : "0444";
	return 0;
}

int draft_add_input(struct draft *draft, const char *pair, struct err *err)
{
	const char *colon = strrchr(pair, ':'), *mode = NULL;
	struct digest digest;

	if (!colon || colon == pair || !colon[1])
		return err_set(err, ERR_INVALID, "\"%s\" is not SRC:DEST, such as main.py:/box/main.py", pair);

	json_t *source = NULL;
	int result = new_text(pair, (size_t)(colon - pair), &source, err);

	if (result)
		return result;

	bool is_digest = digest_parse(json_string_value(source), &digest, NULL) == 0;

	result = input_mode(json_string_value(source), is_digest, &mode, err);
	if (result) {
		json_decref(source);
		return result;
	}

	json_t *input = json_pack("{s:o,s:s,s:s}", is_digest ? "digest" : "source", source, "target", colon + 1, "mode", mode);

	if (!input)
		return err_set(err, ERR_INVALID, "the target is not valid UTF-8");
	return draft_append(draft, "inputs", input, err);
}

int draft_set_command(struct draft *draft, char *const *argv, struct err *err)
{
	for (size_t i = 0; argv[i]; i++) {
		json_t *word = NULL;
		int result = new_text(argv[i], strlen(argv[i]), &word, err);

		if (result)
			return err_context(err, result, "word %zu of the command", i + 1);
		result = draft_append(draft, "command.argv", word, err);
		if (result)
			return result;
	}
	return 0;
}

int draft_text(struct draft *draft, struct buf *ret, struct err *err)
{
	int result = draft_set(draft, "version", json_string(MANIFEST_VERSION), err);

	return result ? result : json_canonical(draft->document, ret, err);
}
