/* fuzz_listing.c - each line that is read of a directory's listing has a valid path, and what its kind has; reading ends. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "artifact/name.h"
#include "artifact/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size ? size : 1); /* so that reading past its end is seen */
	size_t lines = 0;
	int result;

	HOLDS(text);
	if (size)
		memcpy(text, data, size);
	struct tree_cursor cursor = TREE_CURSOR(text, size);
	struct tree_line line;

	while ((result = tree_next(&cursor, &line, NULL)) == 1) {
		HOLDS(++lines <= size && cursor.number == lines && cursor.at <= cursor.end);
		HOLDS(artifact_path_valid(line.path));
		HOLDS((line.kind == TREE_LINK) == (line.target != NULL));
		HOLDS(line.kind != TREE_FILE || line.size_bytes >= 0);
		tree_line_done(&line);
	}
	HOLDS(result <= 0 && !line.path && !line.target);
	free(text);
	return 0;
}
