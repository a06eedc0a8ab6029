/* guards.pml - the guards of the design, each of which can be taken out: -DNO_… */

#define FENCE_HOLDS (MINE.owner == OWNER && MINE.generation == ME.generation && !ENDED(ME.number))

#ifdef NO_FENCE_IN_INTENT
#define INTENT_FENCED true
#else
#define INTENT_FENCED FENCE_HOLDS
#endif

#ifdef NO_FENCE_IN_APPEND
#define APPEND_FENCED true
#else
#define APPEND_FENCED FENCE_HOLDS
#endif

#ifdef NO_FENCE_IN_SEAL
#define SEAL_FENCED true
#else
#define SEAL_FENCED FENCE_HOLDS
#endif

#ifdef NO_FENCE_IN_ABANDON
#define ABANDON_FENCED true
#else
#define ABANDON_FENCED FENCE_HOLDS
#endif

/* Who takes over gets the next generation. */
#ifdef NO_GENERATION
#define NEXT_GENERATION LAST.generation
#else
#define NEXT_GENERATION LAST.generation + 1
#endif

/* Right before it begins with an order, a worker looks whether the deadline, which lies within the lease, has passed … */
#ifdef NO_DEADLINE
#define IN_TIME true
#else
#define IN_TIME (!W.late)
#endif

/* … and whether its keeper is still there: with it goes what was not begun. */
#ifdef NO_LIVING_KEEPER
#define ORDERS_OUTLIVE true
#else
#define ORDERS_OUTLIVE false
#endif

/* An owner's flock is free when it is dead. */
#define KEEPER_LIVES(o) (owner_of[0] == o || owner_of[1] == o)
#ifdef NO_FLOCK
#define MAY_TAKE_OVER true
#else
#define MAY_TAKE_OVER (!KEEPER_LIVES(LAST.owner))
#endif

/* Whoever takes over an expired lease looks again, in the transaction, whether it was renewed. */
#ifdef NO_UNCHANGED
bool was_over;
#define WAS_OVER(yes) was_over = yes
#define MAY_EXPIRE was_over
#else
#define WAS_OVER(yes) skip
#define MAY_EXPIRE LAST.over
#endif

/* Whoever outlives a worker of his waits for its death before he cleans up behind it. */
#ifdef NO_REAPING
#define REAPED true
#else
#define REAPED (!HIS.holds)
#endif

/* An attempt with a launch intent is no one that another may follow: a recovery asks, and so does the transaction. */
#ifdef NO_INTENT_IN_ABANDON
#define REQUEUE_UNLAUNCHED true
#define ABANDON_UNLAUNCHED true
#else
#define REQUEUE_UNLAUNCHED (!ME.life.intent)
#define ABANDON_UNLAUNCHED (intent != ME.number + 1)
#endif

#ifdef NO_INTENT_IN_CLAIM
#define CLAIM_UNLAUNCHED true
#else
#define CLAIM_UNLAUNCHED (intent == 0)
#endif

#ifdef NO_ONE_INTENT
#define FIRST_INTENT true
#else
#define FIRST_INTENT (intent == 0)
#endif

#ifdef NO_QUEUED_IN_CLAIM
#define CLAIM_QUEUED true
#else
#define CLAIM_QUEUED (attempts == 0 || LAST.row == ABANDONED)
#endif

#ifdef NO_CANCEL_IN_INTENT
#define INTENT_UNCANCELLED true
#else
#define INTENT_UNCANCELLED (!cancelled)
#endif

#ifdef NO_CANCEL_IN_SEAL
#define CANCEL_HEARD true
#else
#define CANCEL_HEARD (!cancelled || ME.heard)
#endif

/* Only a commit that is told to be durable opens the gate. */
#ifdef NO_INTENT_FIRST
#define DURABLE true
#else
#define DURABLE told
#endif

#ifdef NO_VERIFY
#define EMPTY true
#else
#define EMPTY (MY_BOUNDARY == ABSENT)
#endif

/* What a recovery could not empty is quarantined, not sealed. */
#ifdef NO_QUARANTINE
#define NOT_EMPTIED EV_VERIFIED_EMPTY
#else
#define NOT_EMPTIED EV_CLEANUP_FAILED
#endif
