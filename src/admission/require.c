/* require.c - compares one entry of `require` ("name" or "name>=N") with what a readiness report says is there. */
#include "admission/require.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A level is a plain decimal number; anything else meets nothing. */
static bool read_level(const char *text, long *ret)
{
	char *end;
	errno = 0;
	long level = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || text[0] < '0' || text[0] > '9')
		return false;
	*ret = level;
	return true;
}

/* feature: "name" (level 0) or "name=LEVEL". */
static bool feature_meets(const char *feature, const char *name, size_t name_length, long wanted)
{
	if (strncmp(feature, name, name_length) != 0)
		return false;
	long level = 0;
	if (feature[name_length] == '=') {
		if (!read_level(feature + name_length + 1, &level))
			return false;
	} else if (feature[name_length] != '\0') {
		return false;
	}
	return level >= wanted;
}

bool admission_require_met(const char *require, const char *const *features)
{
	const char *relation = strstr(require, ">=");
	size_t name_length = relation ? (size_t)(relation - require) : strlen(require);
	long wanted = 0;
	if (relation && !read_level(relation + 2, &wanted))
		return false;
	for (size_t i = 0; features[i]; i++) {
		if (feature_meets(features[i], require, name_length, wanted))
			return true;
	}
	return false;
}
