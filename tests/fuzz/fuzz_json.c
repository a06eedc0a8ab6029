/* fuzz_json.c - a document that parses has one canonical form, and that form is its own canonical form. */
#include "fuzz.h"

#include <string.h>

#include "base/json.h"

enum { CANONICAL_MAX = 16 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	JSON_AUTO json_t *value = NULL, *again = NULL;
	BUF_AUTO struct buf first = BUF_INIT(CANONICAL_MAX), second = BUF_INIT(CANONICAL_MAX);
	struct err err = ERR_INIT;

	if (json_parse((const char *)data, size, &value, &err) != 0) {
		HOLDS(err.code < 0 && err.text[0] != '\0' && !value);
		return 0;
	}
	if (json_canonical(value, &first, &err) != 0)
		return 0;
	HOLDS(json_parse(first.data, first.len, &again, NULL) == 0);
	HOLDS(json_canonical(again, &second, NULL) == 0);
	HOLDS(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	return 0;
}
