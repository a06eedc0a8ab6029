/* name.c - the path of an artifact, and its spelling in JSON. */
#include "artifact/name.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

enum { ESCAPE_LENGTH = 4 }; /* \xHH */

bool artifact_path_valid(const char *path)
{
	if (strlen(path) > ARTIFACT_PATH_MAX)
		return false;
	for (const char *part = path;; part++) {
		size_t length = strcspn(part, "/");
		bool dots = (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.');
		if (length == 0 || dots)
			return false;
		part += length;
		if (!*part)
			return true;
	}
}

/* What json_set_bytes escapes when there is a byte that it must; with a backslash alone it would not. */
static int escape(const char *path, struct buf *ret, struct err *err)
{
	int result = 0;
	for (; result == 0 && *path; path++) {
		unsigned char byte = (unsigned char)*path;
		bool plain = byte >= 0x20 && byte < 0x7f && byte != '\\';
		result = plain ? buf_append(ret, path, 1, err) : buf_printf(ret, err, "\\x%02x", byte);
	}
	return result;
}

int artifact_set_path(json_t *object, const char *key, const char *path, struct err *err)
{
	size_t length = strlen(path);
	if (!strchr(path, '\\'))
		return json_set_bytes(object, key, path, length, err);
	BUF_AUTO struct buf text = BUF_INIT(length * ESCAPE_LENGTH);
	int result = escape(path, &text, err);
	if (result == 0 && json_object_set_new(object, key, json_stringn(text.data, text.len)) < 0)
		result = err_set(err, ERR_NO_MEMORY, "out of memory for a path");
	return result;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place. False for a backslash that begins no escape. */
static bool unescape(char *text)
{
	char *to = text;
	for (const char *from = text; *from; to++) {
		if (*from != '\\') {
			*to = *from++;
			continue;
		}
		int high = from[1] == 'x' ? hex_digit(from[2]) : -1, low = high >= 0 ? hex_digit(from[3]) : -1;
		if (low < 0 || high + low == 0)
			return false;
		*to = (char)(high << 4 | low);
		from += ESCAPE_LENGTH;
	}
	*to = '\0';
	return true;
}

/* Is this how the path is spelled, and not only a text that reads as it? */
static bool is_spelling(const char *text, const char *path)
{
	JSON_AUTO json_t *object = json_object();
	return artifact_set_path(object, "path", path, NULL) == 0 &&
	       strcmp(json_string_value(json_object_get(object, "path")), text) == 0;
}

int artifact_parse_text(const char *text, char **ret, struct err *err)
{
	char *path = strdup(text);
	if (!path)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a path");
	if (!unescape(path) || !is_spelling(text, path)) {
		free(path);
		return err_set(err, ERR_INVALID, "is not how a path is spelled");
	}
	*ret = path;
	return 0;
}

int artifact_parse_path(const char *text, char **ret, struct err *err)
{
	char *path = NULL;
	int result = artifact_parse_text(text, &path, err);
	if (result < 0)
		return result;
	if (!artifact_path_valid(path)) {
		free(path);
		return err_set(err, ERR_INVALID, "is no path of an artifact");
	}
	*ret = path;
	return 0;
}
