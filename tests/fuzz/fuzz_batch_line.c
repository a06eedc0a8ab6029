/* fuzz_batch_line.c - a line of a batch is a manifest that is valid, or an error that names the line; never both, and always under
 * a key. */
#include "fuzz.h"

#include <string.h>

#include "client/batch_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char prefix[] = "line 7: ";
	struct batch_line line;

	batch_line_parse((const char *)data, size, 7, "batch", &line);
	HOLDS(key_check(line.key, NULL) == 0);
	if (line.refusal.err.code) {
		HOLDS(!line.manifest && strncmp(line.refusal.err.text, prefix, strlen(prefix)) == 0);
	} else {
		BUF_AUTO struct buf text = BUF_INIT(MANIFEST_MAX_BYTES);
		MANIFEST_AUTO struct manifest *manifest = NULL;

		HOLDS(json_canonical(line.manifest, &text, NULL) == 0);
		HOLDS(manifest_parse(text.data, text.len, &manifest, NULL) == 0);
	}
	batch_line_done(&line);
	return 0;
}
