/* fuzz_sse.c - a stream of events means the same however its bytes are cut. The first byte says where. */
#include "fuzz.h"

#include <string.h>

#include "client/sse.h"

enum { TOLD_MAX = 16 * 1024 * 1024 };

static int tell(void *context, const char *id, const char *name, const char *data)
{
	return buf_printf(context, NULL, "%s|%s|%s;", id, name, data);
}

static int feed(const uint8_t *data, size_t size, size_t piece, struct buf *told)
{
	SSE_AUTO struct sse sse = SSE_INIT(tell, told);
	int result = 0;

	for (size_t at = 0; at < size && result == 0; at += piece)
		result = sse_feed(&sse, data + at, size - at < piece ? size - at : piece, NULL);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	BUF_AUTO struct buf whole = BUF_INIT(TOLD_MAX), pieces = BUF_INIT(TOLD_MAX);

	if (size < 2)
		return 0;

	int first = feed(data + 1, size - 1, size, &whole), second = feed(data + 1, size - 1, (size_t)data[0] + 1, &pieces);

	HOLDS(first == second && whole.len == pieces.len);
	HOLDS(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
	return 0;
}
