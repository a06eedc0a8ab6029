/* json.c - what Caisson adds to Jansson: strict parsing, the canonical form, and reading fields with their path. */
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

/* Jansson quotes a piece of the document: what is not printable there must not reach a terminal or a log. */
static void make_printable(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e)
			*text = '?';
}

static void *allocate_or_abort(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		abort();
	return memory;
}

static void make_jansson_abort(void)
{
	json_set_alloc_funcs(allocate_or_abort, free);
}

int json_parse(const char *text, size_t length, json_t **ret, struct err *err)
{
	/* Jansson's lexer does not notice when a token cannot grow: it would hand over a document in which bytes are missing. A program
	 * that ends is recovered from; one that runs another command than was asked for is not. */
	static once_flag once = ONCE_FLAG_INIT;
	call_once(&once, make_jansson_abort);

	json_error_t error;
	json_t *value = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);

	if (value) {
		*ret = value;
		return 0;
	}
	make_printable(error.text);
	const char *what = json_error_code(&error) == json_error_invalid_utf8 ? "invalid UTF-8: " : "";
	return err_set(err, ERR_INVALID, "line %d, column %d: %s%s", error.line, error.column, what, error.text);
}

/* Is there a real number anywhere? The recursion is as deep as the document, which the parser has bounded. */
static bool has_real(const json_t *value)
{
	if (json_is_array(value)) {
		size_t i;
		json_t *element;
		json_array_foreach ((json_t *)value, i, element)
			if (has_real(element))
				return true;
	} else if (json_is_object(value)) {
		const char *key;
		json_t *member;
		json_object_foreach ((json_t *)value, key, member)
			if (has_real(member))
				return true;
	}
	return json_is_real(value);
}

struct sink {
	struct buf *buf;
	struct err *err;
	int code;
};

static int sink_bytes(const char *bytes, size_t count, void *context)
{
	struct sink *sink = context;

	/* Jansson goes on after a key that could not be written: once failed, nothing more may get in. */
	if (sink->code == 0)
		sink->code = buf_append(sink->buf, bytes, count, sink->err);
	return sink->code;
}

int json_canonical(const json_t *value, struct buf *ret, struct err *err)
{
	struct sink sink = {.buf = ret, .err = err, .code = 0};

	if (has_real(value))
		return err_set(err, ERR_INVALID, "a number must be an integer");
	/* Jansson sorts keys by bytes and escapes only what JSON demands: '"', '\\' and control characters. */
	if (json_dump_callback(value, sink_bytes, &sink, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) != 0 && sink.code == 0)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	return sink.code;
}

void json_at_root(const json_t *value, struct json_at *ret)
{
	ret->value = value;
	memcpy(ret->path, "$", 2);
}

static bool plain_key(const char *key)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

	return *key != '\0' && key[strspn(key, plain)] == '\0';
}

void json_at_key(const struct json_at *at, const char *key, struct json_at *ret)
{
	struct json_at member = {.value = json_object_get(at->value, key)};
	size_t parent = strlen(at->path);

	memcpy(member.path, at->path, parent);
	snprintf(member.path + parent, sizeof member.path - parent, plain_key(key) ? ".%s" : "[\"%s\"]", key);
	make_printable(member.path);
	*ret = member;
}

void json_at_index(const struct json_at *at, size_t index, struct json_at *ret)
{
	struct json_at element = {.value = json_array_get(at->value, index)};
	size_t parent = strlen(at->path);

	memcpy(element.path, at->path, parent);
	snprintf(element.path + parent, sizeof element.path - parent, "[%zu]", index);
	*ret = element;
}

static bool listed(const char *key, const char *const *keys)
{
	for (; *keys; keys++)
		if (strcmp(key, *keys) == 0)
			return true;
	return false;
}

int json_only_keys(const struct json_at *at, const char *const *keys, struct err *err)
{
	const char *key;
	json_t *member;

	if (!json_is_object(at->value))
		return err_set(err, ERR_INVALID, "%s: must be an object", at->path);
	json_object_foreach ((json_t *)at->value, key, member) {
		if (listed(key, keys))
			continue;
		struct json_at unknown;
		json_at_key(at, key, &unknown);
		return err_set(err, ERR_INVALID, "%s: unknown field", unknown.path);
	}
	return 0;
}

int json_read_int(const struct json_at *at, int64_t min, int64_t max, int64_t *ret, struct err *err)
{
	if (!at->value)
		return 0;
	int64_t value = json_integer_value(at->value);
	if (!json_is_integer(at->value) || value < min || value > max)
		return err_set(err, ERR_INVALID, "%s: must be an integer from %" PRId64 " to %" PRId64, at->path, min, max);
	*ret = value;
	return 0;
}

int json_read_bool(const struct json_at *at, bool *ret, struct err *err)
{
	if (!at->value)
		return 0;
	if (!json_is_boolean(at->value))
		return err_set(err, ERR_INVALID, "%s: must be true or false", at->path);
	*ret = json_is_true(at->value);
	return 0;
}

int json_read_string(const struct json_at *at, size_t max, const char **ret, struct err *err)
{
	if (!at->value)
		return 0;
	if (!json_is_string(at->value))
		return err_set(err, ERR_INVALID, "%s: must be a string", at->path);
	size_t length = json_string_length(at->value);
	const char *text = json_string_value(at->value);
	if (length > max)
		return err_set(err, ERR_INVALID, "%s: must be at most %zu bytes", at->path, max);
	if (strlen(text) != length)
		return err_set(err, ERR_INVALID, "%s: must not contain a NUL", at->path);
	*ret = text;
	return 0;
}

int json_need_string(const struct json_at *at, const char *key, const char **ret, struct err *err)
{
	struct json_at member;
	json_at_key(at, key, &member);
	if (!member.value)
		return err_set(err, ERR_INVALID, "%s: is missing", member.path);
	return json_read_string(&member, SIZE_MAX, ret, err);
}

/* In UTF-8: the controls below space, DEL, and U+0080 to U+009F, which some terminals obey as well. */
static bool has_control(const unsigned char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] < 0x20 || bytes[i] == 0x7f)
			return true;
		if (bytes[i] == 0xc2 && i + 1 < length && bytes[i + 1] < 0xa0)
			return true;
	}
	return false;
}

static json_t *escaped(const unsigned char *bytes, size_t length, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(SIZE_MAX - 1);

	for (size_t i = 0; i < length; i++) {
		bool plain = bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '\\';
		int r = plain ? buf_append(&text, &bytes[i], 1, err) : buf_printf(&text, err, "\\x%02x", bytes[i]);
		if (r < 0)
			return NULL;
	}
	return json_stringn(text.data, text.len);
}

int json_set_bytes(json_t *object, const char *key, const void *bytes, size_t length, struct err *err)
{
	/* json_stringn refuses what is not UTF-8. */
	json_t *value = has_control(bytes, length) ? NULL : json_stringn(bytes, length);

	if (!value)
		value = escaped(bytes, length, err);
	if (!value || json_object_set_new(object, key, value) != 0)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	return 0;
}
