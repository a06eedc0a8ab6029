/* fuzz_escape.c - whatever a guest writes and however it arrives in pieces, a terminal is shown no control character. */
#include "fuzz.h"

#include "print/escape.h"

static void check(const struct buf *shown)
{
	for (size_t i = 0; i < shown->len; i++) {
		unsigned char byte = (unsigned char)shown->data[i];
		unsigned char before = i > 0 ? (unsigned char)shown->data[i - 1] : 0;

		HOLDS(byte >= 0x20 || byte == '\n' || byte == '\t');
		HOLDS(byte != 0x7f);
		HOLDS(!(before == 0xc2 && byte < 0xa0)); /* C1 in UTF-8 */
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct escape escape = {0};
	BUF_AUTO struct buf shown = BUF_INIT(size * ESCAPE_GROWTH + ESCAPE_GROWTH);
	size_t cut = size > 0 ? data[0] % size : 0;

	HOLDS(escape_bytes(&escape, data, cut, &shown, NULL) == 0);
	HOLDS(escape_bytes(&escape, data + cut, size - cut, &shown, NULL) == 0);
	HOLDS(escape_finish(&escape, &shown, NULL) == 0);
	check(&shown);
	return 0;
}
