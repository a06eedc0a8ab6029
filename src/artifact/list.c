/* list.c - the list of what was collected, in memory and as JSON. */
#include "artifact/list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UTF8_MAX = 4 };

static const uint32_t plain_mode = 0644, executable_mode = 0755;

void artifact_list_done(struct artifact_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].path);
	free(list->items);
	*list = (struct artifact_list){0};
}

/* So that a cut does not make what is left look like no text: without the character that the cut went through. */
static size_t whole_characters(const char *text, size_t length)
{
	size_t end = length;
	while (end > 0 && length - end < UTF8_MAX - 1 && ((unsigned char)text[end - 1] & 0xc0) == 0x80)
		end--;
	return end > 0 && (unsigned char)text[end - 1] >= 0xc0 ? end - 1 : length;
}

void artifact_reject(struct artifact_list *list, const char *path, const char *format, ...)
{
	va_list arguments;
	if (list->rejected++ >= ARTIFACT_REJECTIONS_MAX)
		return;
	struct artifact_rejection *rejection = &list->rejections[list->rejected - 1];
	size_t length = strnlen(path, sizeof(rejection->path));
	if (length == sizeof(rejection->path))
		length = whole_characters(path, length - 1);
	memcpy(rejection->path, path, length);
	rejection->path[length] = '\0';
	va_start(arguments, format);
	vsnprintf(rejection->reason, sizeof(rejection->reason), format, arguments);
	va_end(arguments);
}

size_t artifact_rejections(const struct artifact_list *list)
{
	return list->rejected < ARTIFACT_REJECTIONS_MAX ? list->rejected : ARTIFACT_REJECTIONS_MAX;
}

/* Appends to the array, or drops it: a new reference or NULL from each, so that a failure is seen once, at the end. */
static json_t *append(json_t *array, json_t *item, const char *path)
{
	if (array && item && artifact_set_path(item, "path", path, NULL) == 0 && json_array_append(array, item) == 0) {
		json_decref(item);
		return array;
	}
	json_decref(item);
	json_decref(array);
	return NULL;
}

json_t *artifact_list_items(const struct artifact_list *list)
{
	json_t *array = json_array();
	for (size_t i = 0; array && i < list->count; i++) {
		const struct artifact *artifact = &list->items[i];
		char digest[DIGEST_TEXT_SIZE];
		const char *mode = artifact->mode == executable_mode ? "0755" : "0644";
		json_t *item = json_pack("{s:s, s:I, s:s}", "mode", mode, "size_bytes", (json_int_t)artifact->size_bytes, "sha256",
		                         digest_text(&artifact->sha256, digest));
		array = append(array, item, artifact->path);
	}
	return array;
}

json_t *artifact_list_rejections(const struct artifact_list *list)
{
	json_t *array = json_array();
	for (size_t i = 0; array && i < artifact_rejections(list); i++) {
		const struct artifact_rejection *rejection = &list->rejections[i];
		array = append(array, json_pack("{s:s}", "reason", rejection->reason), rejection->path);
	}
	return array;
}

int artifact_list_write(const struct artifact_list *list, struct buf *ret, struct err *err)
{
	JSON_AUTO json_t *document = json_pack("{s:o, s:I, s:o}", "artifacts", artifact_list_items(list), "rejected",
	                                       (json_int_t)list->rejected, "rejections", artifact_list_rejections(list));
	return document ? json_canonical(document, ret, err) : err_set(err, ERR_NO_MEMORY, "out of memory for a list of artifacts");
}

static int read_mode(const struct json_at *at, uint32_t *ret, struct err *err)
{
	const char *text = "";
	int result = json_need_string(at, "mode", &text, err);
	if (result < 0)
		return result;
	if (strcmp(text, "0644") != 0 && strcmp(text, "0755") != 0)
		return err_set(err, ERR_INVALID, "%s.mode: must be 0644 or 0755", at->path);
	*ret = strcmp(text, "0755") == 0 ? executable_mode : plain_mode;
	return 0;
}

static int read_artifact(const struct json_at *at, struct artifact *ret, struct err *err)
{
	static const char *const keys[] = {"mode", "path", "sha256", "size_bytes", NULL};
	const char *digest = "", *path = "";
	struct json_at size;
	ret->size_bytes = -1;
	int result = json_only_keys(at, keys, err);
	if (result == 0)
		result = read_mode(at, &ret->mode, err);
	if (result == 0)
		result = json_need_string(at, "sha256", &digest, err);
	if (result == 0)
		result = digest_parse(digest, &ret->sha256, err);
	json_at_key(at, "size_bytes", &size);
	if (result == 0)
		result = json_read_int(&size, 0, INT64_MAX, &ret->size_bytes, err);
	if (result == 0 && ret->size_bytes < 0)
		result = err_set(err, ERR_INVALID, "%s: is missing", size.path);
	if (result == 0)
		result = json_need_string(at, "path", &path, err);
	if (result < 0)
		return result;
	result = artifact_parse_path(path, &ret->path, err);
	return result < 0 ? err_context(err, result, "%s.path", at->path) : 0;
}

static int read_items(const struct json_at *at, struct artifact_list *ret, struct err *err)
{
	size_t count = json_array_size(at->value), names = 0;
	if (!json_is_array(at->value) || count > ARTIFACT_FILES_MAX)
		return err_set(err, ERR_INVALID, "%s: must be an array of at most %d", at->path, ARTIFACT_FILES_MAX);
	ret->items = calloc(count + 1, sizeof(*ret->items));
	if (!ret->items)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a list of artifacts");
	for (size_t i = 0; i < count; i++) {
		struct json_at element;
		json_at_index(at, i, &element);
		int result = read_artifact(&element, &ret->items[i], err);
		if (result < 0)
			return result;
		ret->count++;
		names += strlen(ret->items[i].path);
		if (names > ARTIFACT_NAMES_BYTES_MAX || (i > 0 && strcmp(ret->items[i - 1].path, ret->items[i].path) >= 0))
			return err_set(err, ERR_INVALID, "%s: is out of order, twice there, or too much", element.path);
	}
	return 0;
}

/* Reasons are ours: short, and printable ASCII. */
static bool is_reason(const char *text)
{
	if (strlen(text) >= ARTIFACT_REASON_SIZE)
		return false;
	while (*text >= ' ' && *text <= '~')
		text++;
	return !*text;
}

/* A path that was cut need not be one any more. */
static int read_rejection(const struct json_at *at, struct artifact_list *ret, struct err *err)
{
	const char *spelled = "", *reason = "";
	char *path = NULL;
	int result = json_need_string(at, "path", &spelled, err);
	if (result == 0)
		result = json_need_string(at, "reason", &reason, err);
	if (result == 0 && !is_reason(reason))
		result = err_set(err, ERR_INVALID, "%s.reason: is none", at->path);
	if (result == 0)
		result = artifact_parse_text(spelled, &path, err);
	if (result == 0)
		artifact_reject(ret, path, "%s", reason);
	free(path);
	return result;
}

static int read_rejections(const struct json_at *at, struct artifact_list *ret, struct err *err)
{
	if (!json_is_array(at->value) || json_array_size(at->value) > ARTIFACT_REJECTIONS_MAX)
		return err_set(err, ERR_INVALID, "%s: must be an array of at most %d", at->path, ARTIFACT_REJECTIONS_MAX);
	for (size_t i = 0; i < json_array_size(at->value); i++) {
		struct json_at element;
		json_at_index(at, i, &element);
		int result = read_rejection(&element, ret, err);
		if (result < 0)
			return result;
	}
	return 0;
}

static int read_list(const json_t *document, struct artifact_list *ret, struct err *err)
{
	static const char *const keys[] = {"artifacts", "rejected", "rejections", NULL};
	struct json_at root, items, rejected, rejections;
	int64_t total = -1;
	json_at_root(document, &root);
	json_at_key(&root, "artifacts", &items);
	json_at_key(&root, "rejected", &rejected);
	json_at_key(&root, "rejections", &rejections);
	int result = json_only_keys(&root, keys, err);
	if (result == 0)
		result = json_read_int(&rejected, 0, INT32_MAX, &total, err);
	if (result == 0)
		result = read_items(&items, ret, err);
	if (result == 0)
		result = read_rejections(&rejections, ret, err);
	if (result < 0)
		return result;
	if (total < (int64_t)ret->rejected || (total > 0 && (ret->count > 0 || ret->rejected == 0)))
		return err_set(err, ERR_INVALID, "%s: does not go with the rest", rejected.path);
	ret->rejected = (size_t)total;
	return 0;
}

int artifact_list_read(const char *text, size_t length, struct artifact_list *ret, struct err *err)
{
	JSON_AUTO json_t *document = NULL;
	int result = json_parse(text, length, &document, err);
	if (result < 0)
		return result;
	*ret = (struct artifact_list){0};
	result = read_list(document, ret, err);
	if (result < 0)
		artifact_list_done(ret);
	return result;
}
