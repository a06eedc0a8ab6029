/* fuzz_protocol.c - what keeper and worker tell each other: a message that is read says the same when it is written and read again. */
#include "fuzz.h"

#include <string.h>

#include "keeper/protocol.h"

enum { MESSAGE_MAX = 1024 * 1024 };

static void try_request(const char *text, size_t size)
{
	struct request request, again;
	BUF_AUTO struct buf written = BUF_INIT(MESSAGE_MAX);

	if (request_decode(text, size, &request, NULL) != 0)
		return;
	HOLDS(request.kind >= 0 && request.kind < REQUEST_COUNT);
	HOLDS(request_encode(&request, &written, NULL) == 0);
	HOLDS(request_decode(written.data, written.len, &again, NULL) == 0);
	HOLDS(again.kind == request.kind && again.deadline_ns == request.deadline_ns && again.go_on == request.go_on);
	HOLDS(memcmp(&again.identity, &request.identity, sizeof again.identity) == 0);
}

/* Texts may be escaped and cut on their way; all else is exact. */
static void try_reply(const char *text, size_t size)
{
	static struct reply reply, again;
	BUF_AUTO struct buf written = BUF_INIT(MESSAGE_MAX);

	if (reply_decode(text, size, &reply, NULL) != 0)
		return;
	HOLDS(reply.kind >= 0 && reply.kind < REQUEST_COUNT && reply.error.code <= 0 && reply.evidence.count <= EVIDENCE_MAX);
	HOLDS(memchr(reply.error.text, '\0', sizeof reply.error.text));
	HOLDS(reply_encode(&reply, &written, NULL) == 0);
	HOLDS(reply_decode(written.data, written.len, &again, NULL) == 0);
	HOLDS(again.kind == reply.kind && again.error.code == reply.error.code && again.evidence.count == reply.evidence.count);
	HOLDS(again.event.at_ns == reply.event.at_ns && again.event.status == reply.event.status);
	HOLDS(again.usage.cpu_total_ns == reply.usage.cpu_total_ns && again.usage.space_full == reply.usage.space_full);
	HOLDS(again.standard_output.kept_bytes == reply.standard_output.kept_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_request((const char *)data, size);
	try_reply((const char *)data, size);
	return 0;
}
