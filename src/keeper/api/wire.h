/* wire.h - what the keeper and the front say to each other.
 *
 * Intake: the front's descriptor 3, a SEQPACKET socket. Each message hands one connection over: the text `{}`, and two descriptors,
 * the client's socket and that connection's channel. Who the client is the front never says: it is bound to the channel.
 *
 * Channel: messages as in keeper/channel.h, both ends non-blocking. The front asks, one request at a time:
 *
 *     {"op":"submit","idempotency_key":"…"}   the manifest as document, or as descriptor if it is long     → run, existing
 *     {"op":"list","limit":N,"cursor":"…","owner":"…","run":"…"}
 *     {"op":"run","run":"run-…","wait_ms":N}
 *     {"op":"cancel","run":"run-…"}                                                                        → sealed
 *     {"op":"logs","run":"run-…","stream":"stdout","offset":N,"wait_ms":N}                                 → next, end
 *     {"op":"artifacts","run":"run-…"}
 *     {"op":"artifact","run":"run-…"}         the path as document                                         → digest
 *     {"op":"events","run":"run-…","attempt":N,"seq":N,"wait_ms":N}                                        → attempt, seq, end
 *     {"op":"object_begin"}                   the reply has an unlinked file to write the bytes to
 *     {"op":"object_seal"}
 *     {"op":"tree_seal"}                      what was sent is the listing of a directory                  → stored
 *     {"op":"workers"} {"op":"recover","slot":N} {"op":"health"} {"op":"metrics"}
 *     {"op":"readiness"}                                                                                   → ready
 *
 * idempotency_key, cursor and owner may be absent. The answer is {"ok":{…}} with the members named on the right, and a body: in the
 * document, or, with {"bytes":N,"offset":N} in `ok`, N bytes from that offset of the descriptor. Or it is
 * {"error":CODE,"message":"…"}, with "path" where the place is known. CODE is an err_code_name, or "queue_full". */
#pragma once

#include <stdint.h>

enum {
	WIRE_BODY_MAX = 192 * 1024,          /* in a document; what is longer travels as a descriptor */
	WIRE_MANIFEST_MAX = 4 * 1024 * 1024,
	WIRE_PATH_MAX = 4095,                /* of an artifact */
	WIRE_KEY_MAX = 128,                  /* of idempotency: printable ASCII */
	WIRE_WAIT_MAX_MS = 60 * 1000,
	WIRE_LIST_MAX = 200,                 /* runs in one answer */
	WIRE_CONNECTIONS_MAX = 4096,
	WIRE_LISTING_MAX = 32 * 1024 * 1024, /* of a directory */
	WIRE_MISSING_MAX = 1000,             /* of its files, in one answer */
	WIRE_SUBJECT_MAX = 32,               /* a run's id, or a slot, with room to spare */
};
#define WIRE_OBJECT_MAX (INT64_C(1) << 33)

#define WIRE_QUEUE_FULL "queue_full"
