/* transitions.c - the one table of every move that an attempt may make; what is not in it is not allowed.
 *
 * It reads: from these states, on this event, when this holds: to that state, noting this, and do that. `SAME` stays. What the
 * guards and notes mean is in lifecycle.c; the reasons stand here. */
#include "lifecycle/transitions.h"

#define IN(state) (1u << LIFE_##state)
#define ROW(states, on, guard, next, effect, act) {states, LIFE_EV_##on, WHEN_##guard, LIFE_##next, NOTE_##effect, act}
#define LIFE_SAME LIFE_SAME_STATE
#define NONE {.count = 0}
#define DO(action) {{LIFE_DO_##action}, 1}
#define DO2(first, second) {{LIFE_DO_##first, LIFE_DO_##second}, 2}

enum {
	MADE_BEFORE_LAUNCH = IN(ADMITTED) | IN(PREPARING) | IN(SUSPENDED) | IN(ENROLLED),
	BEFORE_LAUNCH = IN(QUEUED) | MADE_BEFORE_LAUNCH,
	AFTER_EXIT = IN(EXITED) | IN(CLEANING) | IN(CLEANED),
	BEING_CLEANED = IN(CLEANING) | IN(RECOVERING),
	UNSEALED = BEFORE_LAUNCH | IN(RUNNING) | AFTER_EXIT | IN(QUARANTINED) | IN(RECOVERING),
};

const struct life_transition life_transitions[] = {
	/* Up to the gate, one step at a time. Launch is reachable from `enrolled` alone (R1), and only once the one intent is
	 * durable (R3). */
	ROW(IN(QUEUED),         ADMIT,            ALWAYS,               ADMITTED,    NOTHING,            DO(PREPARE)),
	ROW(IN(ADMITTED),       PREPARED,         ALWAYS,               PREPARING,   NOTHING,            DO(CREATE_SUSPENDED)),
	ROW(IN(PREPARING),      SUSPENDED,        ALWAYS,               SUSPENDED,   NOTHING,            DO(ENROLL)),
	ROW(IN(SUSPENDED),      ENROLLED,         ALWAYS,               ENROLLED,    NOTHING,            DO(COMMIT_INTENT)),
	ROW(IN(ENROLLED),       INTENT_DURABLE,   NO_INTENT,            SAME,        INTENT,             DO(LAUNCH)),
	ROW(IN(ENROLLED),       LAUNCHED,         INTENT,               RUNNING,     LAUNCH,             DO(OBSERVE)),

	/* Whatever goes wrong before the launch goes to cleanup, and from there no row leads back to the gate. In `queued`
	 * nothing has been made, so there is nothing to verify. A commit that was under way may still come true: the fact is
	 * kept, the gate stays shut. */
	ROW(IN(QUEUED),         REFUSE,           ALWAYS,               CLEANED,     REFUSAL,            DO(SEAL)),
	ROW(IN(QUEUED),         STOP,             CANCEL,               CLEANED,     CANCEL_OF_NOTHING,  DO(SEAL)),
	ROW(MADE_BEFORE_LAUNCH, STOP,             CANCEL,               CLEANING,    STOP,               DO(CLEANUP)),
	ROW(BEFORE_LAUNCH,      STEP_FAILED,      ALWAYS,               CLEANING,    STEP_FAILED,        DO(CLEANUP)),
	ROW(BEFORE_LAUNCH,      BOUNDARY_LOST,    NO_INTENT,            CLEANING,    LOST_BEFORE_LAUNCH, DO(CLEANUP)),
	ROW(IN(CLEANING),       INTENT_DURABLE,   COMMIT_MAY_COME,      SAME,        INTENT,             NONE),

	/* With the intent durable the gate may be open already: what is lost now counts as lost while it ran. */
	ROW(IN(ENROLLED),       BOUNDARY_LOST,    INTENT,               CLEANING,    LOST,               DO(CLEANUP)),

	/* Running, until main's exit, an event of its own (R4). A stop only begins to end it; main's exit is still waited for. */
	ROW(IN(RUNNING),        STOP,             STOP_KILLS,           SAME,        STOP_KILL,          DO2(KILL, OBSERVE)),
	ROW(IN(RUNNING),        STOP,             STOP_TERMINATES,      SAME,        STOP_TERMINATE,     DO2(TERMINATE, OBSERVE)),
	ROW(IN(RUNNING),        STOP,             STOP_CHANGES_NOTHING, SAME,        STOP,               DO(OBSERVE)),
	ROW(IN(RUNNING),        GRACE_OVER,       TERMINATING,          SAME,        KILL,               DO2(KILL, OBSERVE)),
	ROW(IN(RUNNING),        GRACE_OVER,       KILLING,              SAME,        NOTHING,            DO(OBSERVE)),
	ROW(IN(RUNNING),        MAIN_EXITED,      ALWAYS,               EXITED,      EXIT,               DO(DRAIN)),
	ROW(IN(RUNNING),        BOUNDARY_LOST,    ALWAYS,               EXITED,      LOST_KILL,          DO2(KILL, DRAIN)),

	/* A writer that still holds a stream cannot hold the run (R5): drained comes within drain_ms, retained or not. */
	ROW(IN(EXITED),         DRAINED,          ALWAYS,               CLEANING,    DRAIN,              DO(CLEANUP)),
	ROW(IN(EXITED),         BOUNDARY_LOST,    ALWAYS,               CLEANING,    LOST,               DO(CLEANUP)),
	/* A cancellation counts until the seal (R8), though by now there is nothing left for it to stop. */
	ROW(AFTER_EXIT,         STOP,             CANCEL,               SAME,        STOP,               NONE),

	/* Only what is verified empty is sealed; what is not is quarantined (R6). */
	ROW(IN(CLEANING),       CLEANED,          NOT_CLEANED,          SAME,        CLEANED,            DO(VERIFY_EMPTY)),
	ROW(IN(CLEANING),       VERIFIED_EMPTY,   CLEANED,              CLEANED,     EMPTY,              DO(SEAL)),
	ROW(BEING_CLEANED,      CLEANUP_FAILED,   ALWAYS,               QUARANTINED, QUARANTINE,         DO(QUARANTINE)),
	ROW(BEING_CLEANED,      VERIFY_FAILED,    ALWAYS,               QUARANTINED, QUARANTINE,         DO(QUARANTINE)),
	ROW(BEING_CLEANED,      BOUNDARY_LOST,    ALWAYS,               QUARANTINED, QUARANTINE,         DO(QUARANTINE)),

	/* A recovery may take over in every state before the seal (R9, R11); it alone leads out of quarantine. It verifies by
	 * itself, so that its word may come at once or in the two steps of an ordinary cleanup. */
	ROW(UNSEALED,           RECOVERY_STARTED, ALWAYS,               RECOVERING,  RECOVERY,           DO(RECOVER)),
	ROW(IN(RECOVERING),     CLEANED,          NOT_CLEANED,          SAME,        CLEANED,            DO(VERIFY_EMPTY)),
	ROW(IN(RECOVERING),     VERIFIED_EMPTY,   SEAL,                 CLEANED,     EMPTY,              DO(SEAL)),
	ROW(IN(CLEANED),        SEALED,           SEAL,                 SEALED,      NOTHING,            NONE),

	/* What was lost before its intent goes back to the queue, if another attempt may follow (R3). A cancellation that comes
	 * meanwhile is found there. */
	ROW(IN(RECOVERING),     VERIFIED_EMPTY,   REQUEUE,              CLEANED,     EMPTY,              DO(ABANDON)),
	ROW(IN(CLEANED),        ABANDONED,        REQUEUE,              ABANDONED,   NOTHING,            NONE),
};

const size_t life_transition_count = sizeof(life_transitions) / sizeof(life_transitions[0]);
